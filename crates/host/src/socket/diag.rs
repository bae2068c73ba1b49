//! Socket diagnostics: the state of TCP connections of other processes, for programs that run in a namespace.
//!
//! The kernel lists the connections of a namespace (`sock_diag(7)`, `inet_diag`) with the structure that a socket's
//! owner gets by `TCP_INFO`. A read costs a few microseconds per connection. It also reports to its listeners each connection that has
//! ended, with its last state.
use super::tcp_info::TcpInfo;
use crate::FlowKey;
use crate::HostError;
use crate::Namespace;
use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6};
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket, SocketAddr};
use std::collections::HashSet;
use std::io;
use std::net::IpAddr;

/// A connection as the kernel shows it.
#[derive(Clone, PartialEq, Debug)]
pub struct Sample {
    /// Its state.
    pub info: TcpInfo,
    /// The kernel's name of its congestion control; empty for one that has ended.
    pub controller: String,
    /// Identifies the connection, also among earlier ones with the same addresses and ports.
    pub cookie: [u8; 8],
}

impl Sample {
    /// Whether its sender paces at the rate that the kernel shows. BBR does; other controllers do so only if pacing was requested.
    pub fn is_paced(&self) -> bool {
        self.controller.starts_with("bbr")
    }
}

/// Reads the connections of one namespace.
pub struct Diag {
    socket: Socket,
    /// Hears of connections that have ended.
    ended: Option<Socket>,
    buffer: Vec<u8>,
}

/// Room for the kernel's reports of ended connections between two calls, bytes; the kernel's own limit may be lower.
const ENDED_BUFFER: u32 = 4 << 20;
/// The kernel fills at most 32 KiB at a time.
const BUFFER: usize = 64 * 1024;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Established, and closed by one end or by both while the other end's acknowledgments are missing.
const CONNECTED: StateFlags = StateFlags::ESTABLISHED
    .union(StateFlags::FIN_WAIT1)
    .union(StateFlags::FIN_WAIT2)
    .union(StateFlags::CLOSE_WAIT)
    .union(StateFlags::LAST_ACK)
    .union(StateFlags::CLOSING);
/// Groups of linux/sock_diag.h: `SKNLGRP_INET_TCP_DESTROY`, `SKNLGRP_INET6_TCP_DESTROY`.
const DESTROYED: [u32; 2] = [1, 3];

impl Diag {
    /// Opens diagnostics for this namespace.
    ///
    /// # Errors
    /// When the kernel has no socket diagnostics.
    pub fn open(namespace: &Namespace) -> Result<Diag, HostError> {
        let open = || -> io::Result<Socket> {
            let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            Ok(socket)
        };
        let socket = namespace.run(open)?.map_err(HostError::system("open a socket for socket diagnostics"))?;
        Ok(Diag { socket, ended: None, buffer: vec![0; BUFFER] })
    }

    /// Opens diagnostics that hear also of connections that end from now on.
    ///
    /// # Errors
    /// When the kernel has no socket diagnostics, or does not answer this process (Linux 4.2, `CAP_NET_ADMIN`).
    pub fn with_ended(namespace: &Namespace) -> Result<Diag, HostError> {
        let open = || -> io::Result<Socket> {
            let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
            socket.bind_auto()?;
            DESTROYED.iter().try_for_each(|&group| socket.add_membership(group))?;
            socket.set_rx_buf_sz(ENDED_BUFFER)?;
            socket.set_non_blocking(true)?;
            Ok(socket)
        };
        let ended = namespace.run(open)?.map_err(HostError::system("hear of connections that end"))?;
        Ok(Diag { ended: Some(ended), ..Diag::open(namespace)? })
    }

    /// The TCP connections that have ended since the last call, each with its key and its last state. None without
    /// [`Diag::with_ended`].
    ///
    /// # Errors
    /// When the kernel had to drop some of its messages.
    pub fn ended(&mut self) -> Result<Vec<(FlowKey, Sample)>, HostError> {
        let mut found = Vec::new();
        let Some(socket) = &self.ended else { return Ok(found) };
        loop {
            match receive(socket, &mut self.buffer, |response| found.extend(read(response))) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(found),
                Err(error) => return Err(HostError::system("hear of connections that have ended")(error)),
            }
        }
    }

    /// All TCP connections that may carry data, each with the flow key of its outgoing packets.
    ///
    /// # Errors
    /// When the kernel refuses, as one without `inet_diag` does.
    pub fn connections(&mut self) -> Result<Vec<(FlowKey, Sample)>, HostError> {
        let mut found = Vec::new();
        for id in [SocketId::new_v4(), SocketId::new_v6()] {
            self.ask((TCP, id, CONNECTED), |response| found.extend(read(response)))
                .map_err(HostError::system("list this namespace's tcp connections"))?;
        }
        Ok(found)
    }

    /// The inode numbers of the sockets that wait for clients: TCP that listens, and UDP that has a port and no peer.
    ///
    /// # Errors
    /// When the kernel refuses, as one without `inet_diag` does. One without `udp_diag` shows TCP alone.
    pub fn servers(&mut self) -> Result<HashSet<u32>, HostError> {
        let mut found = HashSet::new();
        // A UDP socket without a peer has the state of a closed TCP socket.
        for (protocol, state) in [(TCP, StateFlags::LISTEN), (UDP, StateFlags::CLOSE)] {
            for id in [SocketId::new_v4(), SocketId::new_v6()] {
                let each = |response: &InetResponse| found.extend([response.header.inode]);
                match self.ask((protocol, id, state.clone()), each) {
                    Err(error) if protocol == UDP && error.kind() == io::ErrorKind::NotFound => {}
                    asked => asked.map_err(HostError::system("list the servers in this namespace"))?,
                }
            }
        }
        Ok(found)
    }

    /// Asks for the sockets of a protocol, of an IP version and in certain states.
    fn ask(
        &mut self,
        (protocol, socket_id, states): (u8, SocketId, StateFlags),
        mut each: impl FnMut(&InetResponse),
    ) -> io::Result<()> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        let request = InetRequest {
            family: if socket_id.source_address.is_ipv4() { AF_INET } else { AF_INET6 },
            protocol,
            extensions: ExtensionFlags::INFO | ExtensionFlags::CONG,
            states,
            socket_id,
        };
        let mut message = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        while receive(&self.socket, &mut self.buffer, &mut each)? {}
        Ok(())
    }
}

/// Reads one batch of messages; `false` after the last one of an answer.
fn receive(socket: &Socket, buffer: &mut [u8], mut each: impl FnMut(&InetResponse)) -> io::Result<bool> {
    let len = socket.recv(&mut &mut buffer[..], 0)?;
    let mut rest = &buffer[..len.min(buffer.len())];
    while !rest.is_empty() {
        let message = NetlinkMessage::<SockDiagMessage>::deserialize(rest).map_err(io::Error::other)?;
        match message.payload {
            NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) => each(&response),
            NetlinkPayload::Done(_) => return Ok(false),
            NetlinkPayload::Error(error) => return Err(error.to_io()),
            _ => {}
        }
        let length = (message.header.length as usize).next_multiple_of(4);
        rest = rest.get(length..).unwrap_or_default();
    }
    Ok(true)
}

/// A connection's key and state, if the kernel has sent both.
fn read(response: &InetResponse) -> Option<(FlowKey, Sample)> {
    let id = &response.header.socket_id;
    // A dual-stack socket shows IPv4 peers as mapped addresses, but their packets are IPv4.
    let plain = |address: IpAddr| address.to_canonical();
    let key = FlowKey {
        protocol: TCP,
        source: plain(id.source_address),
        destination: plain(id.destination_address),
        source_port: id.source_port,
        destination_port: id.destination_port,
    };
    let (mut info, mut controller) = (None, String::new());
    for attribute in &response.nlas {
        match attribute {
            Nla::TcpInfo(bytes) => info = TcpInfo::read(bytes),
            Nla::Congestion(name) => controller = name.clone(),
            _ => {}
        }
    }
    Some((key, Sample { info: info?, controller, cookie: id.cookie }))
}
