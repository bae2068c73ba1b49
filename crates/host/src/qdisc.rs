//! What the kernel counts of a queueing discipline, asked for again and again.
use crate::netlink::Netlink;
use crate::{HostError, Namespace};
use rustix::net::{AddressFamily, SocketType, netdevice, socket};

/// A discipline's counters since it was added, and its length now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QdiscStats {
    /// Packets sent. The kernel counts modulo 2³².
    pub packets: u32,
    /// Bytes sent, as the discipline counts a packet's length.
    pub bytes: u64,
    /// Packets dropped, before they waited or after.
    pub drops: u32,
    /// Packets that wait.
    pub backlog: u32,
}

/// The discipline on a device in a namespace.
#[derive(Debug)]
pub struct Qdisc {
    netlink: Netlink,
    index: u32,
    parent: (u16, u16),
}

impl Qdisc {
    /// The discipline on a device that is a child of this class: `(1, 1)` for `1:1`.
    ///
    /// # Errors
    /// There is no such device in the namespace.
    pub fn open(namespace: &Namespace, device: &str, parent: (u16, u16)) -> Result<Qdisc, HostError> {
        let find = || {
            let any = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
            let index = netdevice::name_to_index(any, device)?;
            Ok::<Qdisc, std::io::Error>(Qdisc { netlink: Netlink::open()?, index, parent })
        };
        namespace.run(find)?.map_err(HostError::system(format!("find the device {device}")))
    }

    /// Its counters now.
    ///
    /// # Errors
    /// The device or the discipline is gone.
    pub fn stats(&mut self) -> Result<QdiscStats, HostError> {
        let stats = self.netlink.qdisc_stats(self.index, self.parent);
        stats.map_err(HostError::system("ask for the counters of a queueing discipline"))
    }
}
