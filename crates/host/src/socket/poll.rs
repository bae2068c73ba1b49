//! Waits for sockets, timers and other threads in one call.
use narrows_core::{Span, Time};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd};
use rustix::io::Errno;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// The number that reports a wake-up, among the numbers of a loop's sources.
pub(crate) const WOKEN: u64 = u64::MAX;
/// Events returned per call. The others are returned by the next call.
const AT_A_TIME: usize = 128;

/// Wakes a polling loop from another thread.
#[derive(Clone, Debug)]
pub(crate) struct Waker(Arc<OwnedFd>);

impl Waker {
    /// Wakes the loop. If it is awake, its next wait returns at once.
    pub(crate) fn wake(&self) {
        // This fails only after 2⁶⁴ − 2 wake-ups that the loop has not read.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }
}

/// The sources that a loop waits for.
pub(crate) struct Poll {
    epoll: OwnedFd,
    woken: Arc<OwnedFd>,
}

impl Poll {
    /// Makes one with no source but its waker.
    pub(crate) fn new() -> io::Result<Poll> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let woken = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        epoll::add(&epoll, &woken, epoll::EventData::new_u64(WOKEN), epoll::EventFlags::IN)?;
        Ok(Poll { epoll, woken: Arc::new(woken) })
    }

    pub(crate) fn waker(&self) -> Waker {
        Waker(Arc::clone(&self.woken))
    }

    /// Adds a source. Closing its descriptor removes it.
    pub(crate) fn add(&self, source: impl AsFd, number: u64, flags: epoll::EventFlags) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, source, epoll::EventData::new_u64(number), flags)?)
    }

    /// Waits until something happens or until the time `until` (`None`: without limit), and puts the numbers of the ready sources
    /// into `happened`.
    pub(crate) fn wait(&self, now: Time, until: Option<Time>, happened: &mut Vec<u64>) -> io::Result<()> {
        happened.clear();
        // epoll's own timeout counts milliseconds before Linux 5.11; ppoll's is exact in every version.
        let left = until.map(|at| at.since(now));
        if left != Some(Span::ZERO) {
            let timeout = left.map(timespec);
            let mut fds = [PollFd::new(&self.epoll, PollFlags::IN)];
            match rustix::event::poll(&mut fds, timeout.as_ref()) {
                Ok(0) | Err(Errno::INTR) => return Ok(()),
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut room = [const { MaybeUninit::<epoll::Event>::uninit() }; AT_A_TIME];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let events = match epoll::wait(&self.epoll, &mut room, Some(&at_once)) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for event in events {
            let number = event.data.u64();
            if number == WOKEN {
                let _ = rustix::io::read(&*self.woken, &mut [0_u8; 8]);
            }
            happened.push(number);
        }
        Ok(())
    }
}

fn timespec(span: Span) -> Timespec {
    let ns = span.as_ns();
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ }
}
