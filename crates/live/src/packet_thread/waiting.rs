//! How a direction's thread waits, so that waking an idle CPU costs as little accuracy as possible.
//!
//! Waking an idle CPU takes tens of microseconds, in a virtual machine a hundred. Two methods reduce the error:
//! - If packets are far apart, the thread sleeps until shortly before the next one is due and polls the clock for the rest.
//! - An answer (an acknowledgment, an echo) usually leaves the receiving kernel while the other direction's thread is still
//!   writing the packet that it answers. That thread is awake and notes the time. The thread that reads the answer later uses
//!   that time as its arrival.
use narrows_core::{Span, Time};
use narrows_host::Clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::io::Errno;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Polling the clock is worthwhile for packets at least this far apart.
const SPARSE: Span = Span::ms(5);
/// How long before the next packet is due the polling begins.
const AHEAD: Span = Span::us(300);
/// Looking at the other device takes a microsecond or two. A look that took longer than this was interrupted and does not say
/// when the frame came: perhaps at the end of the interruption.
const LONGEST_LOOK: Span = Span::us(50);

/// One of two threads that wait for frames, each on the device to which the other one writes.
#[derive(Debug)]
pub struct Waiting {
    /// When the other thread saw a frame on this thread's device, ns; zero if it has not.
    seen: Arc<AtomicU64>,
    /// When this thread saw a frame on the other's device.
    shown: Arc<AtomicU64>,
    /// When this thread last read from its device, with or without success. A frame seen before that is not the next one.
    last_read: Time,
}

impl Waiting {
    /// The two threads of a bottleneck.
    pub fn both() -> [Waiting; 2] {
        let marks = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
        [0, 1].map(|own: usize| Waiting {
            seen: Arc::clone(&marks[own]),
            shown: Arc::clone(&marks[1 - own]),
            last_read: Time::ZERO,
        })
    }

    /// This thread has read from its device.
    pub fn has_read(&mut self, now: Time) {
        self.last_read = now;
    }

    /// This thread's device had nothing to read.
    pub fn found_empty(&mut self, now: Time) {
        self.seen.store(0, Ordering::Relaxed);
        self.has_read(now);
    }

    /// Waits until the device has something to read, but not beyond `until`. `last` is when packets were last handed over.
    ///
    /// # Errors
    /// When the system cannot wait.
    pub fn wait(&self, device: &impl AsFd, clock: Clock, until: Time, last: Time) -> Result<(), Errno> {
        if until.since(last) < SPARSE {
            return readable_within(device, until.since(clock.now())).map(drop);
        }
        let sleep = until.since(clock.now()).saturating_sub(AHEAD);
        if sleep > Span::ZERO && readable_within(device, sleep)? {
            return Ok(());
        }
        while clock.now() < until && !readable_within(device, Span::ZERO)? {
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// When the next frame to be read came to the device, if the other thread saw it there.
    pub fn first_came(&self) -> Option<Time> {
        let seen = Time::from_ns(self.seen.load(Ordering::Relaxed));
        (seen > self.last_read).then_some(seen)
    }

    /// After a write to the other thread's device: notes the time if the device already has something to read.
    ///
    /// # Errors
    /// When the system cannot poll.
    pub fn look_for_answers(&self, device: &impl AsFd, clock: Clock) -> Result<(), Errno> {
        let before = clock.now();
        if readable_within(device, Span::ZERO)? {
            self.show(before, clock.now());
        }
        Ok(())
    }

    /// Records that the other thread's device had a frame between these two times.
    fn show(&self, before: Time, after: Time) {
        if after.since(before) <= LONGEST_LOOK {
            // Stores the earlier time. If the other thread reads the frame at this moment, its last read is later. An earlier
            // sighting stays, because that frame is read first.
            let _ = self.shown.compare_exchange(0, before.as_ns(), Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

/// Whether there is something to read within this time.
fn readable_within(device: &impl AsFd, time: Span) -> Result<bool, Errno> {
    let ns = time.as_ns();
    let timeout = Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 };
    match poll(&mut [PollFd::new(device, PollFlags::IN)], Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use std::fs::File;
    use std::io::{Read, Write};

    fn pair() -> (File, File) {
        let (a, b) = socketpair(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::empty(), None).unwrap();
        (a.into(), b.into())
    }

    /// Repeats the look, which may be interrupted on a busy machine.
    fn look_until_seen(ours: &Waiting, theirs: &Waiting, device: &File, clock: Clock) -> Time {
        (0..1000)
            .find_map(|_| {
                ours.look_for_answers(device, clock).unwrap();
                theirs.first_came()
            })
            .expect("a look without an interruption sees it")
    }

    #[test]
    fn what_the_other_thread_saw_come_came_then() {
        let [ours, mut theirs] = Waiting::both();
        let (mut writer, mut reader) = pair();
        let clock = Clock::start();
        theirs.found_empty(clock.now());
        ours.look_for_answers(&reader, clock).unwrap();
        assert_eq!(theirs.first_came(), None, "there is nothing");
        writer.write_all(b"x").unwrap();
        let before = clock.now();
        let came = look_until_seen(&ours, &theirs, &reader, clock);
        let after = clock.now();
        assert!((before..=after).contains(&came));
        ours.look_for_answers(&reader, clock).unwrap();
        assert_eq!(theirs.first_came(), Some(came), "the first look counts");
        reader.read_exact(&mut [0]).unwrap();
        theirs.found_empty(clock.now());
        assert_eq!(theirs.first_came(), None, "it has been read");
    }

    #[test]
    fn a_sight_from_before_the_device_was_empty_tells_nothing_of_what_comes_after() {
        let [ours, mut theirs] = Waiting::both();
        let (mut writer, reader) = pair();
        let clock = Clock::start();
        writer.write_all(b"x").unwrap();
        ours.look_for_answers(&reader, clock).unwrap();
        // The other thread's reset came before this thread's note.
        theirs.last_read = clock.now();
        assert_eq!(theirs.first_came(), None);
    }

    #[test]
    fn regression_a_sight_belongs_to_one_frame_only() {
        let [ours, mut theirs] = Waiting::both();
        let (mut writer, mut reader) = pair();
        let clock = Clock::start();
        theirs.found_empty(clock.now());
        writer.write_all(b"x").unwrap();
        look_until_seen(&ours, &theirs, &reader, clock);
        reader.read_exact(&mut [0]).unwrap();
        theirs.has_read(clock.now());
        writer.write_all(b"y").unwrap();
        assert_eq!(theirs.first_came(), None, "it was x that was seen");
    }

    #[test]
    fn regression_a_look_that_was_interrupted_says_nothing() {
        let [ours, theirs] = Waiting::both();
        let at = Time::ZERO + Span::s(1);
        ours.show(at, at + Span::ms(80));
        assert_eq!(theirs.first_came(), None, "the frame may have come at any time of the 80 ms");
        ours.show(at, at + Span::us(2));
        assert_eq!(theirs.first_came(), Some(at));
    }

    #[test]
    fn a_wait_ends_with_its_time_or_with_a_frame_and_not_before() {
        let [ours, _] = Waiting::both();
        let (mut writer, reader) = pair();
        let clock = Clock::start();
        for apart in [Span::ZERO, SPARSE * 2] {
            let last = clock.now();
            let until = last + SPARSE * 2;
            let last = until - apart;
            ours.wait(&reader, clock, until, last).unwrap();
            assert!(clock.now() >= until, "{apart}");
        }
        writer.write_all(b"x").unwrap();
        let far = clock.now() + Span::s(60);
        ours.wait(&reader, clock, far, clock.now()).unwrap();
        assert!(clock.now() < far);
    }
}
