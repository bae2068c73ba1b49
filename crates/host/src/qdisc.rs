//! What the kernel counts of a queueing discipline, asked for again and again.
use crate::netlink::{Netlink, QdiscStats};
use crate::tun::index_of;
use crate::{HostError, Namespace};

/// The discipline on a device in a namespace.
#[derive(Debug)]
pub struct Qdisc {
    netlink: Netlink,
    index: u32,
    parent: (u16, u16),
}

impl Qdisc {
    /// The parent of the discipline at a device's root (`TC_H_ROOT`).
    pub const ROOT: (u16, u16) = (u16::MAX, u16::MAX);

    /// The parent of what packets pass that come in at a device (`TC_H_CLSACT`).
    pub const INGRESS: (u16, u16) = (u16::MAX, 0xfff1);

    /// The discipline on a device that is a child of this class: `(1, 1)` for `1:1`, or [`Qdisc::ROOT`].
    ///
    /// # Errors
    /// There is no such device in the namespace.
    pub fn open(namespace: &Namespace, device: &str, parent: (u16, u16)) -> Result<Qdisc, HostError> {
        let find = || {
            let index = index_of(device)?;
            Ok::<Qdisc, std::io::Error>(Qdisc { netlink: Netlink::open()?, index, parent })
        };
        namespace.run(find)?.map_err(HostError::system(format!("find the device {device}")))
    }

    /// Its counters now.
    ///
    /// # Errors
    /// The device or the discipline is gone.
    pub fn stats(&mut self) -> Result<QdiscStats, HostError> {
        self.ask().map(|told| told.0)
    }

    /// What it shows beside the counters that all have, as the structure of its kind (`TCA_STATS_APP`); empty if it shows nothing.
    ///
    /// # Errors
    /// The device or the discipline is gone.
    pub fn own_stats(&mut self) -> Result<Vec<u8>, HostError> {
        self.ask().map(|told| told.1)
    }

    fn ask(&mut self) -> Result<(QdiscStats, Vec<u8>), HostError> {
        let told = self.netlink.qdisc_stats(self.index, self.parent);
        told.map_err(HostError::system("ask for the counters of a queueing discipline"))
    }
}
