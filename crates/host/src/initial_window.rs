//! A connection's initial window, which Linux takes only from the route to its peer (`ip route … initcwnd`).
use crate::HostError;
use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_REPLACE, NLM_F_REQUEST};
use netlink_packet_core::{NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::route::{RouteAttribute, RouteFlags, RouteMessage, RouteMetric, RouteType};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use std::io;
use std::net::IpAddr;

/// `RT_TABLE_LOCAL`.
const LOCAL_TABLE: u8 = 255;

/// Sets the initial window of connections to this address to `packets`, by adding a route for the address alone with the same
/// next hop as its present route. Called in the sender's namespace.
pub(crate) fn set_initial_window(to: IpAddr, packets: u32) -> Result<(), HostError> {
    let set = || -> io::Result<()> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        let route = route_to(&socket, to)?.ok_or(io::ErrorKind::NetworkUnreachable)?;
        let replace = NLM_F_CREATE | NLM_F_REPLACE;
        exchange(&socket, RouteNetlinkMessage::NewRoute(with_window(route, to, packets)), replace)?;
        Ok(())
    };
    set().map_err(HostError::system(format!("set an initial window of {packets} packets on the route to {to}")))
}

/// The routing table's entry for packets to this address.
fn route_to(socket: &Socket, to: IpAddr) -> io::Result<Option<RouteMessage>> {
    let mut question = question(to);
    question.header.flags = RouteFlags::FibMatch;
    exchange(socket, RouteNetlinkMessage::GetRoute(question), 0)
}

fn question(to: IpAddr) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = if to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    message.header.destination_prefix_length = if to.is_ipv4() { 32 } else { 128 };
    message.attributes.push(RouteAttribute::Destination(to.into()));
    message
}

/// A copy of the route for this address alone, with the window.
fn with_window(found: RouteMessage, to: IpAddr, packets: u32) -> RouteMessage {
    let mut route = question(to);
    // While a namespace has no routing rules, the kernel reports the routes of its own addresses as part of the main table. A new
    // one still belongs into the local table.
    let is_local = found.header.kind == RouteType::Local;
    route.header.table = if is_local { LOCAL_TABLE } else { found.header.table };
    route.header.protocol = found.header.protocol;
    route.header.scope = found.header.scope;
    route.header.kind = found.header.kind;
    let mut metrics = vec![RouteMetric::InitCwnd(packets)];
    for attribute in found.attributes {
        match attribute {
            RouteAttribute::Metrics(others) => {
                metrics.extend(others.into_iter().filter(|metric| !matches!(metric, RouteMetric::InitCwnd(_))));
            }
            RouteAttribute::Table(_) if is_local => {}
            RouteAttribute::Table(_)
            | RouteAttribute::Oif(_)
            | RouteAttribute::Gateway(_)
            | RouteAttribute::Via(_)
            | RouteAttribute::MultiPath(_)
            | RouteAttribute::PrefSource(_) => route.attributes.push(attribute),
            _ => {}
        }
    }
    route.attributes.push(RouteAttribute::Metrics(metrics));
    route
}

/// Sends a request and returns the answer, if it has one other than an acknowledgment.
fn exchange(socket: &Socket, message: RouteNetlinkMessage, flags: u16) -> io::Result<Option<RouteMessage>> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
    let mut request = NetlinkMessage::new(header, NetlinkPayload::from(message));
    request.finalize();
    let mut bytes = vec![0; request.buffer_len()];
    request.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    let mut found = None;
    loop {
        let (bytes, _) = socket.recv_from_full()?;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest).map_err(io::Error::other)?;
            let length = (answer.header.length as usize).next_multiple_of(4);
            rest = rest.get(length..).unwrap_or_default();
            match answer.payload {
                NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewRoute(route)) => found = Some(route),
                NetlinkPayload::Error(error) if error.code.is_none() => return Ok(found),
                NetlinkPayload::Error(error) => return Err(error.to_io()),
                _ => {}
            }
        }
    }
}
