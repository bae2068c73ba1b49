//! Requests to the kernel's routing socket; each call waits for the answer. A socket belongs to the network namespace of the
//! thread that opened it.
use std::io;
use std::net::IpAddr;

use netlink_packet_core::{Emitable, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_ECHO, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage, AddressScope};
use netlink_packet_route::link::{AfSpecInet6, AfSpecUnspec, In6AddrGenMode, LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcStats2};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use crate::Route;

mod qdisc;

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
    /// Bytes that wait.
    pub backlog_bytes: u32,
}

/// A routing socket.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    /// Opens one in the calling thread's network namespace.
    pub(crate) fn open() -> io::Result<Netlink> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Netlink { socket, sequence: 0 })
    }

    /// Sets a device up.
    pub(crate) fn set_up(&mut self, index: u32) -> io::Result<()> {
        let mut message = link(index);
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        self.change(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// A device's MTU and the length of its transmit queue, packets.
    pub(crate) fn set_sizes(&mut self, index: u32, mtu: u32, queue: u32) -> io::Result<()> {
        let mut message = link(index);
        message.attributes = vec![LinkAttribute::Mtu(mtu), LinkAttribute::TxQueueLen(queue)];
        self.change(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Makes senders hand a device one packet at a time. Without this the kernel's TCP still sends several at once and has them
    /// segmented just before a device that cannot do so.
    pub(crate) fn set_single_packets(&mut self, index: u32) -> io::Result<()> {
        let mut message = link(index);
        message.attributes = vec![LinkAttribute::GsoMaxSegs(1)];
        self.change(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Keeps the kernel from giving the device a link-local address. It would send router solicitations and multicast reports,
    /// which no scenario has.
    pub(crate) fn without_link_local(&mut self, index: u32) -> io::Result<()> {
        let mut message = link(index);
        let none = vec![AfSpecInet6::AddrGenMode(In6AddrGenMode::None)];
        message.attributes = vec![LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(none)])];
        self.change(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Gives a device an address that can be used at once, without duplicate address detection: nobody else is on such a link.
    pub(crate) fn add_address(&mut self, index: u32, address: IpAddr, prefix: u8) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = prefix;
        message.header.scope = AddressScope::Universe;
        message.header.index = index;
        message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
        if address.is_ipv6() {
            message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
        }
        self.change(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Adds a route through a device.
    pub(crate) fn add_route(&mut self, index: u32, route: &Route, family_of: IpAddr) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header = RouteHeader {
            address_family: family(family_of),
            destination_prefix_length: route.to.map_or(0, |(_, prefix)| prefix),
            table: RouteHeader::RT_TABLE_MAIN,
            protocol: RouteProtocol::Static,
            scope: if route.via.is_none() && family_of.is_ipv4() { RouteScope::Link } else { RouteScope::Universe },
            kind: RouteType::Unicast,
            ..RouteHeader::default()
        };
        message.attributes.push(RouteAttribute::Oif(index));
        message.attributes.extend(route.to.map(|(to, _)| RouteAttribute::Destination(RouteAddress::from(to))));
        message.attributes.extend(route.via.map(|via| RouteAttribute::Gateway(RouteAddress::from(via))));
        message.attributes.extend(route.src.map(|src| RouteAttribute::PrefSource(RouteAddress::from(src))));
        self.change(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// All addresses in the namespace, with their prefix lengths.
    pub(crate) fn addresses(&mut self) -> io::Result<Vec<(IpAddr, u8)>> {
        let mut found = Vec::new();
        self.dump(RouteNetlinkMessage::GetAddress(AddressMessage::default()), |answer| {
            let RouteNetlinkMessage::NewAddress(message) = answer else { return };
            let local = message.attributes.iter().find_map(|a| match a {
                AddressAttribute::Local(address) => Some(*address),
                _ => None,
            });
            // IPv6 has no LOCAL attribute unless the link has a peer.
            let address = local.or_else(|| {
                message.attributes.iter().find_map(|a| match a {
                    AddressAttribute::Address(address) => Some(*address),
                    _ => None,
                })
            });
            found.extend(address.map(|address| (address, message.header.prefix_len)));
        })?;
        Ok(found)
    }

    /// The destinations of all IPv4 routes in the namespace, from all tables, without default routes.
    pub(crate) fn destinations(&mut self) -> io::Result<Vec<(IpAddr, u8)>> {
        let mut found = Vec::new();
        let mut all = RouteMessage::default();
        all.header.address_family = AddressFamily::Inet;
        self.dump(RouteNetlinkMessage::GetRoute(all), |answer| {
            let RouteNetlinkMessage::NewRoute(message) = answer else { return };
            let prefix = message.header.destination_prefix_length;
            found.extend(message.attributes.iter().find_map(|a| match a {
                RouteAttribute::Destination(RouteAddress::Inet(to)) => Some((IpAddr::V4(*to), prefix)),
                _ => None,
            }));
        })?;
        Ok(found)
    }

    /// Packets dropped on their way out through a device: by the device, and by its queueing discipline.
    pub(crate) fn dropped(&mut self, index: u32) -> io::Result<u64> {
        let mut dropped = 0;
        self.send(RouteNetlinkMessage::GetLink(link(index)), NLM_F_REQUEST | NLM_F_ACK)?;
        self.answers(|answer| {
            let RouteNetlinkMessage::NewLink(message) = answer else { return };
            dropped += message
                .attributes
                .iter()
                .map(|a| if let LinkAttribute::Stats64(s) = a { s.tx_dropped } else { 0 })
                .sum::<u64>();
        })?;
        self.dump(RouteNetlinkMessage::GetQueueDiscipline(TcMessage::with_index(index as i32)), |answer| {
            // A dump covers all devices.
            let RouteNetlinkMessage::NewQueueDiscipline(message) = answer else { return };
            if message.header.index == index as i32 && message.header.parent == TcHandle::ROOT {
                dropped += message
                    .attributes
                    .iter()
                    .map(|a| if let TcAttribute::Stats(s) = a { u64::from(s.drops) } else { 0 })
                    .sum::<u64>();
            }
        })?;
        Ok(dropped)
    }

    /// The counters of the discipline that is the child of a class, and the structure of its own.
    pub(crate) fn qdisc_stats(&mut self, index: u32, (major, minor): (u16, u16)) -> io::Result<(QdiscStats, Vec<u8>)> {
        let mut message = TcMessage::with_index(index as i32);
        message.header.parent = TcHandle { major, minor };
        // The kernel's answer is a notification, which since Linux 7.2 goes only to a sender that asks for it.
        let asked = NLM_F_REQUEST | NLM_F_ACK | NLM_F_ECHO;
        self.send(RouteNetlinkMessage::GetQueueDiscipline(message), asked)?;
        let mut stats = None;
        self.answers(|answer| {
            let RouteNetlinkMessage::NewQueueDiscipline(message) = answer else { return };
            let (mut found, mut own) = (QdiscStats::default(), Vec::new());
            for attribute in &message.attributes {
                let TcAttribute::Stats2(parts) = attribute else { continue };
                for part in parts {
                    match part {
                        TcStats2::Basic(basic) => (found.bytes, found.packets) = (basic.bytes, basic.packets),
                        TcStats2::App(stats) => {
                            own = vec![0; stats.buffer_len()];
                            stats.emit(&mut own);
                        }
                        TcStats2::Queue(queue) => {
                            (found.drops, found.backlog, found.backlog_bytes) =
                                (queue.drops, queue.qlen, queue.backlog);
                        }
                        _ => {}
                    }
                }
            }
            stats = Some((found, own));
        })?;
        stats.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the kernel has sent no statistics"))
    }

    /// Sends a request for a change. The kernel's answer says whether it was made.
    fn change(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.send(message, NLM_F_REQUEST | NLM_F_ACK | flags)?;
        self.answers(|_| ())
    }

    fn dump(&mut self, message: RouteNetlinkMessage, each: impl FnMut(RouteNetlinkMessage)) -> io::Result<()> {
        self.send(message, NLM_F_REQUEST | NLM_F_DUMP)?;
        self.answers(each)
    }

    fn send(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = flags;
        header.sequence_number = self.sequence;
        let mut request = NetlinkMessage::new(header, NetlinkPayload::from(message));
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map(drop)
    }

    /// Reads answers until the kernel reports the end or an error.
    fn answers(&mut self, mut each: impl FnMut(RouteNetlinkMessage)) -> io::Result<()> {
        loop {
            let (bytes, _) = self.socket.recv_from_full()?;
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest)
                    .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e.to_string()))?;
                // Messages are padded to four bytes, except perhaps the last one of a datagram.
                let len = (answer.header.length as usize).next_multiple_of(4);
                rest = rest.get(len..).unwrap_or(&[]);
                if answer.header.sequence_number != self.sequence {
                    continue;
                }
                match answer.payload {
                    NetlinkPayload::Done(_) => return Ok(()),
                    NetlinkPayload::Error(error) if error.code.is_none() => return Ok(()),
                    NetlinkPayload::Error(error) => return Err(error.to_io()),
                    NetlinkPayload::InnerMessage(message) => each(message),
                    _ => {}
                }
            }
        }
    }
}

fn link(index: u32) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}
