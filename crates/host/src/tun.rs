//! TUN devices: they carry IP packets without a link layer, each behind a header of ten bytes (`virtio_net_hdr`) that says which
//! checksum or segmentation is still to be done.
//!
//! A device is made in a namespace, gets its sizes, addresses and routes, and is up when [`Tun::create`] returns. It keeps the
//! system's default queueing discipline. The kernel's TCP paces by itself if that is not `fq`.
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};

use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::HostError;
use crate::netlink::Netlink;
use crate::{Namespace, privilege, sys};

/// The settings of a new device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TunSpec {
    /// Its name; `%d` is replaced by the first free number.
    pub name: String,
    /// The longest packet, bytes.
    pub mtu: u32,
    /// Its addresses, with the length of the prefix that is on the link.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Other destinations that it reaches.
    pub routes: Vec<Route>,
    /// Whether the kernel may hand over packets of up to 64 KiB for the reader to segment, and packets without checksums. If not, its TCP
    /// sends packet by packet.
    pub offload: bool,
    /// Length of the transmit queue, packets. When it is full the kernel drops packets, or makes its own sockets wait.
    pub queue: u32,
}

impl Default for TunSpec {
    /// `narrows%d`, MTU 1500, no addresses, offloads, 1000 packets.
    fn default() -> Self {
        TunSpec {
            name: "narrows%d".into(),
            mtu: 1500,
            addresses: Vec::new(),
            routes: Vec::new(),
            offload: true,
            queue: 1000,
        }
    }
}

/// A route through a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The destination, with the prefix length; `None` is the default route.
    pub to: Option<(IpAddr, u8)>,
    /// The next router; `None` if the destination is on the link.
    pub via: Option<IpAddr>,
    /// The source address of packets whose program chose none.
    pub src: Option<IpAddr>,
}

impl Route {
    /// An address of the route's family; IPv4 for a default route without addresses.
    fn family(&self) -> IpAddr {
        let given = self.to.map(|(to, _)| to).or(self.via).or(self.src);
        given.unwrap_or(IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED))
    }
}

/// A device that is up; dropping this removes it. A read or write transfers ten bytes of offload header and one packet. A read
/// without a packet fails with `WouldBlock`.
pub struct Tun {
    file: File,
    name: String,
    ipv6: bool,
    index: u32,
    /// A routing socket in the device's namespace, which callers need not be in.
    netlink: Mutex<Netlink>,
}

impl Tun {
    /// Makes a device in a namespace.
    ///
    /// # Errors
    /// When there is no TUN driver, the name is taken, or an address or a route is refused.
    pub fn create(namespace: &Namespace, spec: &TunSpec) -> Result<Tun, HostError> {
        namespace.run(|| make(spec))??.ok_or_else(|| {
            let error = io::Error::from_raw_os_error(libc::EBUSY);
            HostError::System { doing: format!("make the TUN device {}", spec.name), error }
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it carries IPv6. If the system has switched it off, IPv6 addresses and routes were left out.
    pub fn ipv6(&self) -> bool {
        self.ipv6
    }

    /// Packets that the system dropped since the device was made, because nobody read them in time.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn dropped(&self) -> io::Result<u64> {
        self.netlink.lock().unwrap_or_else(PoisonError::into_inner).dropped(self.index)
    }
}

impl fmt::Debug for Tun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tun").field("name", &self.name).field("ipv6", &self.ipv6).finish_non_exhaustive()
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// `virtio_net_hdr` without `num_buffers`.
const HEADER: i32 = 10;

/// `TUN_F_CSUM`, `TUN_F_TSO4`, `TUN_F_TSO6`, `TUN_F_TSO_ECN` (`linux/if_tun.h`): packets without checksums, and TCP super-packets
/// over IPv4 and IPv6, with ECN.
const OFFLOADS: u32 = 0x01 | 0x02 | 0x04 | 0x08;

/// Makes a device on a thread in its namespace; `None` if another device there has the name.
pub(crate) fn make(spec: &TunSpec) -> Result<Option<Tun>, HostError> {
    let file = privilege::open_device()?;
    let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR | libc::IFF_TUN_EXCL;
    let name = match sys::attach(&file, &spec.name, flags) {
        Ok(name) => name,
        Err(error) => {
            return match error.raw_os_error() {
                Some(libc::EBUSY) => Ok(None),
                Some(libc::EPERM) => Err(HostError::NotAllowed(
                    "a TUN device needs CAP_NET_ADMIN in its network namespace: run narrows as root, or in a container with `--cap-add NET_ADMIN`"
                        .into(),
                )),
                _ => Err(HostError::System { doing: format!("make the TUN device {}", spec.name), error }),
            };
        }
    };
    let failed = |doing: &str| HostError::system(format!("{doing} {name}"));
    sys::set_header_len(&file, HEADER).map_err(failed("set the header of"))?;
    sys::set_offloads(&file, if spec.offload { OFFLOADS } else { 0 }).map_err(failed("set the offloads of"))?;

    let index = index_of(&name).map_err(failed("find"))?;
    let mut netlink = Netlink::open().map_err(HostError::system("open a routing socket"))?;
    netlink.set_sizes(index, spec.mtu, spec.queue).map_err(failed("set MTU and queue of"))?;
    if !spec.offload {
        netlink.set_single_packets(index).map_err(failed("keep packets single on"))?;
    }
    let ipv6 = netlink.without_link_local(index).is_ok() && enable_ipv6(&name);
    netlink.set_up(index).map_err(failed("bring up"))?;
    for &(address, prefix) in spec.addresses.iter().filter(|(a, _)| ipv6 || a.is_ipv4()) {
        let doing = format!("give {name} the address {address}/{prefix}");
        netlink.add_address(index, address, prefix).map_err(HostError::system(doing))?;
    }
    for route in spec.routes.iter().filter(|r| ipv6 || r.family().is_ipv4()) {
        let to = route.to.map_or("default".into(), |(to, prefix)| format!("{to}/{prefix}"));
        let doing = format!("add the route {to} through {name}");
        netlink.add_route(index, route, route.family()).map_err(HostError::system(doing))?;
    }
    Ok(Some(Tun { file, name, ipv6, index, netlink: Mutex::new(netlink) }))
}

/// The index of a device in the calling thread's namespace.
pub(crate) fn index_of(name: &str) -> io::Result<u32> {
    let any = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    Ok(name_to_index(any, name)?)
}

/// Enables IPv6 on the device where the namespace's default has switched it off. Forwarding is off for the device itself (the
/// namespace's own setting forwards packets), because a router's device sends reports of the routers' multicast group on the
/// link.
fn enable_ipv6(name: &str) -> bool {
    let setting = |what: &str| format!("/proc/sys/net/ipv6/conf/{name}/{what}");
    let is = |what: &str, value: &str| {
        fs::read_to_string(setting(what)).is_ok_and(|text| text.trim() == value)
            || fs::write(setting(what), value).is_ok()
    };
    is("forwarding", "0");
    is("disable_ipv6", "0")
}
