//! The host's own network devices and their queueing disciplines, for what is put on a real interface.
use std::io;

use narrows_core::{Bytes, Rate, Span};
use netlink_packet_route::link::LinkAttribute;
use netlink_packet_route::tc::TcHandle;

use crate::netlink::Netlink;

/// A network device.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Device {
    /// Its number in the namespace.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Longest packet without link header, bytes.
    pub mtu: u32,
    /// Packets are sent when it is up.
    pub is_up: bool,
    /// Its packets begin with an Ethernet header.
    pub has_ethernet_header: bool,
    /// Most segments in a packet that a sender hands to it (GSO). `None` from a kernel that does not say it.
    pub gso_max_segs: Option<u32>,
    /// Most bytes in a packet that is joined from received ones (GRO).
    pub gro_max_size: Option<u32>,
    /// The same for IPv4.
    pub gro_ipv4_max_size: Option<u32>,
}

/// A queueing discipline at a device's root or ingress.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Qdisc {
    /// At the ingress (`ingress`, `clsact`), not the root.
    pub is_ingress: bool,
    /// Its name: `fq_codel`.
    pub kind: String,
    /// Major and minor number. Zero for one that the kernel put there by itself.
    pub handle: u32,
    /// Its options as they are sent over netlink.
    pub options: Vec<u8>,
}

/// A routing socket of the calling thread's network namespace. All requests need `CAP_NET_ADMIN` but those for lists.
pub struct Devices {
    netlink: Netlink,
}

impl Devices {
    /// Opens one.
    ///
    /// # Errors
    /// When the system gives no socket.
    pub fn open() -> io::Result<Devices> {
        Ok(Devices { netlink: Netlink::open()? })
    }

    /// Every device of the namespace.
    ///
    /// # Errors
    /// When the kernel refuses, as with all requests below.
    pub fn list(&mut self) -> io::Result<Vec<Device>> {
        self.netlink.devices()
    }

    /// Sets the number of segments in a packet that senders hand to a device.
    ///
    /// # Errors
    /// See [`Devices::list`].
    pub fn set_gso_max_segs(&mut self, index: u32, segments: u32) -> io::Result<()> {
        self.netlink.set_attributes(index, vec![LinkAttribute::GsoMaxSegs(segments)])
    }

    /// Sets the size up to which received packets are joined: for IPv6, and for IPv4. With 1 none is.
    ///
    /// # Errors
    /// See [`Devices::list`].
    pub fn set_gro_max_sizes(&mut self, index: u32, v6: u32, v4: u32) -> io::Result<()> {
        // A small size for IPv6 is one for IPv4, too, so IPv4's comes second.
        let sizes = vec![LinkAttribute::GroMaxSize(v6), LinkAttribute::GroIpv4MaxSize(v4)];
        self.netlink.set_attributes(index, sizes)
    }

    /// Lets packets through a device.
    ///
    /// # Errors
    /// See [`Devices::list`].
    pub fn set_up(&mut self, index: u32) -> io::Result<()> {
        self.netlink.set_up(index)
    }

    /// Makes a device of the kind `ifb`, which sends what is redirected to it through its queueing discipline.
    ///
    /// # Errors
    /// See [`Devices::list`]; when there is a device of this name.
    pub fn add_ifb(&mut self, name: &str) -> io::Result<()> {
        self.netlink.add_ifb(name)
    }

    /// Removes a device.
    ///
    /// # Errors
    /// See [`Devices::list`].
    pub fn delete(&mut self, index: u32) -> io::Result<()> {
        self.netlink.delete_device(index)
    }

    /// The disciplines at a device's root and ingress.
    ///
    /// # Errors
    /// See [`Devices::list`].
    pub fn qdiscs(&mut self, index: u32) -> io::Result<Vec<Qdisc>> {
        self.netlink.qdiscs(index)
    }

    /// Puts a discipline at a device's root, in place of what is there. With a handle of zero the kernel chooses one.
    ///
    /// # Errors
    /// See [`Devices::list`].
    pub fn replace_root(&mut self, index: u32, kind: &str, handle: u32, options: &[u8]) -> io::Result<()> {
        self.netlink.replace_root(index, kind, handle, options)
    }

    /// Changes the rate to which the `cake` at a device's root shapes.
    ///
    /// # Errors
    /// See [`Devices::list`].
    pub fn set_cake_rate(&mut self, index: u32, rate: Rate) -> io::Result<()> {
        self.netlink.change_root(index, "cake", &attribute(TCA_CAKE_BASE_RATE64, &(rate.as_bps() / 8).to_ne_bytes()))
    }

    /// Changes the rate of the class `1:1` of the `htb` at a device's root.
    ///
    /// # Errors
    /// See [`Devices::list`].
    pub fn set_htb_rate(&mut self, index: u32, rate: Rate) -> io::Result<()> {
        let parameters = htb_parameters(rate);
        let class = TcHandle { major: 1, minor: 1 };
        self.netlink.change_class(index, class, "htb", &attribute(TCA_HTB_PARMS, &parameters))
    }

    /// Takes the discipline off a device's root. The kernel puts its default there.
    ///
    /// # Errors
    /// See [`Devices::list`].
    pub fn delete_root(&mut self, index: u32) -> io::Result<()> {
        self.netlink.delete_root(index)
    }

    /// Sends what comes in at a device out through another one, by a `clsact` and a filter.
    ///
    /// # Errors
    /// See [`Devices::list`]; the `clsact` stays if the filter is refused.
    pub fn redirect_ingress(&mut self, from: u32, to: u32) -> io::Result<()> {
        self.netlink.add_clsact(from)?;
        self.netlink.redirect_ingress(from, to)
    }

    /// Removes a device's `clsact` and its filters.
    ///
    /// # Errors
    /// See [`Devices::list`].
    pub fn delete_clsact(&mut self, index: u32) -> io::Result<()> {
        self.netlink.delete_clsact(index)
    }
}

/// linux/pkt_sched.h.
const TCA_CAKE_BASE_RATE64: u16 = 2;
const TCA_HTB_PARMS: u16 = 1;
const TC_LINKLAYER_ETHERNET: u8 = 1;
/// What `htb` may send at once beyond its rate's time: a timer's inexactness and a packet.
const HTB_BURST: Span = Span::ms(1);
const HTB_PACKET: Bytes = Bytes(1600);
/// For several classes; there is one.
const HTB_QUANTUM: u32 = 3028;

/// An attribute with a value of whole words.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let len = value.len() as u16 + 4;
    [&len.to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat()
}

/// `struct tc_htb_opt` with the same rate as its ceiling.
fn htb_parameters(rate: Rate) -> Vec<u8> {
    let bytes_per_s = u32::try_from(rate.as_bps() / 8).unwrap_or(u32::MAX).max(1);
    let mut spec = vec![0, TC_LINKLAYER_ETHERNET, 0, 0, 0, 0, 0, 0];
    spec.extend(bytes_per_s.to_ne_bytes());
    // In ticks of 64 ns.
    let burst = HTB_BURST + rate.tx_time(HTB_PACKET).unwrap_or(Span::ZERO);
    let ticks = u32::try_from(burst.as_ns() >> 6).unwrap_or(u32::MAX);
    let numbers = [ticks, ticks, HTB_QUANTUM, 0, 0].map(u32::to_ne_bytes);
    [&spec[..], &spec, numbers.as_flattened()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_of_htb_have_their_places() {
        let parameters = htb_parameters(Rate::mbit(8));
        assert_eq!(parameters.len(), 44, "struct tc_htb_opt");
        let word = |at: usize| u32::from_ne_bytes(parameters[at..at + 4].try_into().expect("four bytes"));
        assert_eq!([word(8), word(20)], [1_000_000; 2], "bytes per second");
        assert_eq!([word(24), word(28)], [(1_000_000 + 1_600_000) / 64; 2], "ticks");
        assert_eq!(attribute(2, &[7; 8]).len(), 12);
    }
}
