//! Sockets with the options that a flow asks for.
use super::spec::{Spec, TcpSpec, UdpSpec};
use crate::HostError;
use crate::socket::option::Opt;
use narrows_core::Ecn;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

/// Linux's default maximum, enough for 100 ms at 300 Mbit/s.
const USUAL_BUFFER: u64 = 4 << 20;
/// Receive and send buffers of datagram sockets: 20 ms at 3 Gbit/s, for when a thread is late.
const DATAGRAMS: u32 = 8 << 20;
/// TCP's header without options. The kernel's segment size does not include it.
const TCP_HEADER: u32 = 20;
/// The range that the kernel allows for a segment size (`TCP_MIN_MSS`, `MAX_TCP_WINDOW`).
const SEGMENT: (u32, u32) = (88, 32_767);
/// RFC 3168 §5.
const TOS_ECT0: u32 = 0b10;
const TOS_ECT1: u32 = 0b01;
/// A pacing rate that limits nothing. It differs from the value that switches pacing off.
const NO_LIMIT: u64 = 1 << 60;

/// Whether new connections negotiate ECN (Linux: ip-sysctl).
pub(super) const TCP_ECN: &str = "/proc/sys/net/ipv4/tcp_ecn";
/// Requests ECN and accepts it.
pub(super) const ECN_ASKED: &[u8] = b"1";
/// Accepts ECN if the peer requests it.
pub(super) const ECN_ACCEPTED: &[u8] = b"2";

/// Makes the sockets of one flow; its errors name the flow.
pub(super) struct Making<'a> {
    pub(super) spec: &'a Spec,
    pub(super) from: IpAddr,
    pub(super) to: SocketAddr,
}

/// Changes the settings of the current namespace: buffers large enough for any window, no metrics kept from earlier connections,
/// ECN only on request. Where the settings cannot be written (containers often mount them read-only), the present values are
/// accepted if they are sufficient.
pub(super) fn settle(receive_buffers: &str, send_buffers: &str) -> Result<(), HostError> {
    let most = |setting: &str| setting.split_whitespace().nth(2)?.parse::<u64>().ok();
    let is_roomy = |setting: &str| most(setting) >= Some(USUAL_BUFFER);
    set("tcp_wmem", send_buffers, is_roomy)?;
    set("tcp_rmem", receive_buffers, is_roomy)?;
    set("tcp_no_metrics_save", "1", |setting| setting == "1")?;
    set("tcp_ecn", "2", |setting| setting == "2")
}

fn set(name: &str, value: &str, is_enough: impl Fn(&str) -> bool) -> Result<(), HostError> {
    let path = format!("/proc/sys/net/ipv4/{name}");
    let Err(error) = fs::write(&path, value) else { return Ok(()) };
    match fs::read_to_string(&path) {
        Ok(setting) if is_enough(setting.trim()) => Ok(()),
        _ => Err(HostError::system(format!("set net.ipv4.{name} to {value}"))(error)),
    }
}

impl Making<'_> {
    /// A socket bound to the sender's address, not yet connected.
    pub(super) fn tcp_sender(&self, tcp: &TcpSpec) -> Result<Socket, HostError> {
        let doing = |what: &str| HostError::system(format!("{what} for flow `{}`", self.spec.name));
        let socket = self.socket(Type::STREAM)?;
        self.control(&socket, tcp.controller)?;
        Opt::BIND_NO_PORT.set(&socket, 1_i32.to_ne_bytes()).map_err(doing("bind an address without a port"))?;
        self.bind(&socket, SocketAddr::new(self.from, 0))?;
        socket.set_tcp_nodelay(true).map_err(doing("set TCP_NODELAY"))?;
        socket.set_tcp_notsent_lowat(tcp.unsent).map_err(doing("set TCP_NOTSENT_LOWAT"))?;
        self.segment_size(&socket, tcp.packet)?;
        self.class(&socket, Ecn::NotEct)?;
        if tcp.pace {
            Opt::MAX_PACING_RATE.set(&socket, NO_LIMIT.to_ne_bytes()).map_err(doing("pace"))?;
        }
        if let Some(least) = tcp.min_rto {
            let us = i32::try_from(least.as_ns() / 1000).unwrap_or(i32::MAX);
            Opt::TCP_RTO_MIN_US.set(&socket, us.to_ne_bytes()).map_err(|error| {
                self.refuse(format!("this kernel's tcp refuses min_rto = {} ms: {error}", least.as_ms_f64()))
            })?;
        }
        Ok(socket)
    }

    /// A socket listening at the receiver's address.
    pub(super) fn tcp_listener(&self, tcp: &TcpSpec, read_at_least: u32) -> Result<Socket, HostError> {
        let socket = self.socket(Type::STREAM)?;
        socket.set_reuse_address(true).map_err(HostError::system("reuse a port"))?;
        if tcp.is_bulk && read_at_least > 1 {
            let set = Opt::RCVLOWAT.set(&socket, read_at_least.to_ne_bytes());
            set.map_err(HostError::system("set SO_RCVLOWAT"))?;
        }
        self.segment_size(&socket, tcp.packet)?;
        if tcp.takes_both_ends() {
            self.control(&socket, tcp.controller)?;
        }
        self.bind(&socket, self.to)?;
        socket.listen(1).map_err(HostError::system(format!("listen for flow `{}`", self.spec.name)))?;
        Ok(socket)
    }

    /// A socket that sends datagrams to the receiver. It is connected unless each datagram is to have a new source port.
    pub(super) fn udp_sender(&self, udp: &UdpSpec) -> Result<Socket, HostError> {
        let socket = self.socket(Type::DGRAM)?;
        if Opt::SNDBUF_FORCE.set(&socket, DATAGRAMS.to_ne_bytes()).is_err() {
            socket.set_send_buffer_size(DATAGRAMS as usize).map_err(HostError::system("set a send buffer"))?;
        }
        self.bind(&socket, SocketAddr::new(self.from, 0))?;
        self.class(&socket, udp.ecn)?;
        if !udp.ever_new {
            let connected = socket.connect(&SockAddr::from(self.to));
            connected.map_err(HostError::system(format!("connect flow `{}` to {}", self.spec.name, self.to)))?;
        }
        Ok(socket)
    }

    /// A socket that receives datagrams.
    pub(super) fn udp_receiver(&self) -> Result<Socket, HostError> {
        let socket = self.socket(Type::DGRAM)?;
        if Opt::RCVBUF_FORCE.set(&socket, DATAGRAMS.to_ne_bytes()).is_err() {
            socket.set_recv_buffer_size(DATAGRAMS as usize).map_err(HostError::system("set a receive buffer"))?;
        }
        self.bind(&socket, self.to)?;
        Ok(socket)
    }

    /// A datagram socket bound to this address, for QUIC.
    pub(super) fn udp_for_quic(&self, at: SocketAddr) -> Result<UdpSocket, HostError> {
        let socket = self.socket(Type::DGRAM)?;
        // Acknowledgments and data of a whole round trip may come while the thread is busy.
        for (opt, doing) in [(Opt::SNDBUF_FORCE, "set a send buffer"), (Opt::RCVBUF_FORCE, "set a receive buffer")] {
            // Without the right to exceed the system's limit, its default has to do.
            if let Err(error) = opt.set(&socket, DATAGRAMS.to_ne_bytes())
                && error.kind() != io::ErrorKind::PermissionDenied
            {
                return Err(HostError::system(doing)(error));
            }
        }
        self.bind(&socket, at)?;
        Ok(socket.into())
    }

    fn socket(&self, kind: Type) -> Result<Socket, HostError> {
        let protocol = if kind == Type::STREAM { Protocol::TCP } else { Protocol::UDP };
        let socket = Socket::new(Domain::for_address(self.to), kind.nonblocking().cloexec(), Some(protocol));
        socket.map_err(HostError::system(format!("open a socket for flow `{}`", self.spec.name)))
    }

    fn bind(&self, socket: &Socket, at: SocketAddr) -> Result<(), HostError> {
        let bound = socket.bind(&SockAddr::from(at));
        bound.map_err(HostError::system(format!("bind flow `{}` to {at}", self.spec.name)))
    }

    fn refuse(&self, what: impl std::fmt::Display) -> HostError {
        HostError::Unsupported(format!("flow `{}`: {what}", self.spec.name))
    }

    fn control(&self, socket: &Socket, controller: &str) -> Result<(), HostError> {
        socket.set_tcp_congestion(controller.as_bytes()).map_err(|error| {
            let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
            let known = known.split_whitespace().collect::<Vec<_>>().join(", ");
            match error.kind() {
                io::ErrorKind::NotFound => self.refuse(format!("this kernel has no {controller}; it has: {known}")),
                io::ErrorKind::PermissionDenied => HostError::NotAllowed(format!(
                    "flow `{}`: this kernel allows {controller} to root only; run as root, or list it in \
                     net.ipv4.tcp_allowed_congestion_control",
                    self.spec.name
                )),
                _ => HostError::system(format!("set {controller} for flow `{}`", self.spec.name))(error),
            }
        })
    }

    /// Limits segments to the scenario's packet size, in case the device allows longer packets.
    fn segment_size(&self, socket: &Socket, packet: u32) -> Result<(), HostError> {
        let headers = ip_header(self.to.ip()) + TCP_HEADER;
        let (least, most) = SEGMENT;
        let size = packet.saturating_sub(headers);
        if size < least {
            return Err(self.refuse(format!("the kernel's tcp has no packets under {} B", least + headers)));
        }
        if size > most {
            // Only the device's MTU can set a size this large.
            return Ok(());
        }
        socket.set_tcp_mss(size).map_err(HostError::system(format!("set the packet size of flow `{}`", self.spec.name)))
    }

    /// Sets DSCP and ECN of outgoing packets. The kernel sets the ECN bits of TCP packets itself.
    fn class(&self, socket: &Socket, ecn: Ecn) -> Result<(), HostError> {
        let bits = match ecn {
            Ecn::NotEct => 0,
            Ecn::Ect0 => TOS_ECT0,
            Ecn::Ect1 => TOS_ECT1,
            Ecn::Ce => TOS_ECT0 | TOS_ECT1,
        };
        let value = u32::from(self.spec.dscp.0) << 2 | bits;
        if value == 0 {
            return Ok(());
        }
        let set = if self.to.is_ipv4() { socket.set_tos_v4(value) } else { socket.set_tclass_v6(value) };
        set.map_err(HostError::system(format!("set the class of flow `{}`", self.spec.name)))
    }
}

/// Length of the IP header without options, bytes.
pub(super) const fn ip_header(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(_) => 20,
        IpAddr::V6(_) => 40,
    }
}

#[cfg(test)]
mod tests {
    use super::super::spec::{self, Carrier};
    use super::*;
    use crate::Namespace;
    use narrows_scenario::{NoTraces, Scenario};
    use std::net::{Ipv4Addr, Ipv6Addr};

    const SCENARIO: &str = r#"
        name = "options"
        duration = "1s"
        [[hop]]
        name = "link"
        rate = "8mbit"
        queue = "fifo"
        [[flow]]
        name = "tcp"
        route = ["link"]
        rtt = "10ms"
        dscp = "ef"
        controller = "new_reno"
        transport = { kind = "tcp", packet = "1000B", min_rto = "100ms", pacing = true }
        [[flow]]
        name = "udp"
        route = ["link"]
        rtt = "10ms"
        dscp = "cs1"
        traffic = "cbr"
        transport = { kind = "udp", ecn = "ect1" }
    "#;

    #[test]
    fn sockets_have_the_class_and_the_limits_of_their_flows() {
        let here = match Namespace::create() {
            Ok(here) => here,
            Err(reason) => return println!("skipped: {reason}"),
        };
        let scenario = Scenario::parse(SCENARIO, "options.toml", &NoTraces).unwrap();
        let specs = spec::flows(&scenario).unwrap();
        let class = |socket: &Socket| match socket.domain().unwrap() {
            Domain::IPV4 => socket.tos_v4().unwrap(),
            _ => socket.tclass_v6().unwrap(),
        };
        let check = |address: IpAddr, headers: u32| {
            for (port, spec) in (10_000..).zip(&specs) {
                let making = Making { spec, from: address, to: (address, port).into() };
                match &spec.carrier {
                    Carrier::Tcp(tcp) => {
                        let socket = making.tcp_sender(tcp).unwrap();
                        assert_eq!(
                            socket.tcp_congestion().unwrap().trim_ascii_end().split(|&b| b == 0).next(),
                            Some(&b"reno"[..])
                        );
                        assert_eq!(class(&socket), 46 << 2, "expedited forwarding");
                        assert_eq!(socket.tcp_notsent_lowat().unwrap(), 96 * 1024, "20 ms at 8 Mbit/s are less");
                        assert!(socket.tcp_nodelay().unwrap());
                        assert_eq!(socket.local_addr().unwrap().as_socket().unwrap().ip(), address);
                        making.tcp_listener(tcp, 1).unwrap();
                    }
                    Carrier::Udp(udp) => {
                        let _receiver = making.udp_receiver().unwrap();
                        let socket = making.udp_sender(udp).unwrap();
                        assert_eq!(class(&socket), 8 << 2 | 1, "lower effort, ECT(1)");
                        assert_eq!(socket.peer_addr().unwrap().as_socket(), Some((address, port).into()));
                    }
                    Carrier::Program | Carrier::Quic(_) | Carrier::Video(_) => {
                        unreachable!("no flow here is one of these")
                    }
                }
                assert_eq!(ip_header(address), headers);
            }
        };
        here.run(|| {
            settle(super::super::RECEIVE_BUFFERS, super::super::SEND_BUFFERS).unwrap();
            check(Ipv4Addr::LOCALHOST.into(), 20);
            check(Ipv6Addr::LOCALHOST.into(), 40);
        })
        .unwrap();
    }
}
