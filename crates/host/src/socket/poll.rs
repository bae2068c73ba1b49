//! Waiting for sockets, for timers and for other threads, all at once.
use narrows_core::{Span, Time};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd};
use rustix::io::Errno;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// The number of a waker among a loop's sources.
pub(crate) const WOKEN: u64 = u64::MAX;
/// The rest is still there the next time.
const AT_A_TIME: usize = 128;

/// Wakes a loop from another thread.
#[derive(Clone, Debug)]
pub(crate) struct Waker(Arc<OwnedFd>);

impl Waker {
    /// Wakes it; a loop that is awake already loses nothing.
    pub(crate) fn wake(&self) {
        // It fails only when it has been woken 2⁶⁴ − 2 times without noticing.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }
}

/// What a loop waits for.
pub(crate) struct Poll {
    epoll: OwnedFd,
    woken: Arc<OwnedFd>,
}

impl Poll {
    /// Waits for nothing yet but its waker.
    pub(crate) fn new() -> io::Result<Poll> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let woken = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        epoll::add(&epoll, &woken, epoll::EventData::new_u64(WOKEN), epoll::EventFlags::IN)?;
        Ok(Poll { epoll, woken: Arc::new(woken) })
    }

    pub(crate) fn waker(&self) -> Waker {
        Waker(Arc::clone(&self.woken))
    }

    /// From now on it waits for this, too. Closing it ends that.
    pub(crate) fn add(&self, source: impl AsFd, number: u64, flags: epoll::EventFlags) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, source, epoll::EventData::new_u64(number), flags)?)
    }

    /// Waits until something happens or `until` has come (`None`: as long as it takes), and puts the numbers of what happened
    /// into `happened`.
    pub(crate) fn wait(&self, now: Time, until: Option<Time>, happened: &mut Vec<u64>) -> io::Result<()> {
        happened.clear();
        // epoll's own timeout is in milliseconds where the kernel is older than 5.11; that of ppoll is exact everywhere.
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
