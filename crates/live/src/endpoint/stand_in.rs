//! Stands in for the sandbox's namespace until that is there.
use crate::LiveError;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use std::fs::File;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;

/// A network namespace.
#[derive(Debug)]
pub struct Namespace(OwnedFd);

impl Namespace {
    /// The calling thread's.
    pub fn current() -> Result<Namespace, LiveError> {
        let file = File::open("/proc/thread-self/ns/net").map_err(LiveError::system("open a network namespace"))?;
        Ok(Namespace(file.into()))
    }

    /// A new one.
    #[allow(deprecated)]
    pub fn create() -> Result<Namespace, LiveError> {
        std::thread::scope(|scope| {
            let made = scope.spawn(|| {
                rustix::thread::unshare(UnshareFlags::NEWNET).map_err(LiveError::system("make a network namespace"))?;
                let up = std::process::Command::new("ip").args(["link", "set", "lo", "up"]).status();
                up.map_err(LiveError::system("bring up lo"))?;
                Namespace::current()
            });
            made.join().unwrap()
        })
    }

    /// Runs something in it.
    pub fn run<T: Send>(&self, f: impl FnOnce() -> T + Send) -> Result<T, LiveError> {
        std::thread::scope(|scope| {
            let done = scope.spawn(|| {
                move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))
                    .map_err(LiveError::system("enter a network namespace"))?;
                Ok(f())
            });
            done.join().unwrap()
        })
    }
}
