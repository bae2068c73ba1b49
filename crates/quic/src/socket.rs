//! Two UDP sockets that look like one: a subflow is a source port of its own.
//!
//! noq identifies a path by the peer's address. The second path has an alias of it, from a block that no network routes, and only the
//! second socket knows whom the alias stands for. A peer sees two ordinary paths from one address and two ports.
use crate::ecn::Tally;
use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, UdpSender};
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The peer's address, and what stands for it on the second path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alias {
    real: SocketAddr,
    alias: SocketAddr,
}

impl Alias {
    pub(crate) fn of(real: SocketAddr) -> Alias {
        // RFC 1112 §4: reserved. RFC 6666: the discard prefix.
        let ip = match real {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::new(240, 0, 0, 1)),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 1)),
        };
        Alias { real, alias: SocketAddr::new(ip, real.port()) }
    }

    /// The address of the second path, for noq.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.alias
    }
}

/// A socket whose packets may be marked with congestion experienced, or not.
#[derive(Debug)]
pub(crate) struct Socket {
    inner: Box<dyn AsyncUdpSocket>,
    ecn: bool,
    tally: Tally,
}

impl Socket {
    pub(crate) fn new(inner: Box<dyn AsyncUdpSocket>, ecn: bool, tally: Tally) -> Socket {
        Socket { inner, ecn, tally }
    }
}

impl AsyncUdpSocket for Socket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        let sender = self.inner.create_sender();
        if self.ecn { sender } else { Box::pin(WithoutEcn(sender)) }
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let received = self.inner.poll_recv(cx, buffers, meta);
        if let Poll::Ready(Ok(received)) = received {
            self.tally.count(&meta[..received]);
        }
        received
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_receive_segments(&self) -> NonZeroUsize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}

#[derive(Debug)]
struct WithoutEcn(Pin<Box<dyn UdpSender>>);

impl UdpSender for WithoutEcn {
    fn poll_send(mut self: Pin<&mut Self>, transmit: &Transmit<'_>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_send(&Transmit { ecn: None, ..transmit.clone() }, cx)
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        self.0.max_transmit_segments()
    }
}

/// Both sockets.
#[derive(Debug)]
pub(crate) struct TwoSockets {
    sockets: [Socket; 2],
    alias: Alias,
    /// The socket that is asked first changes every time, so that neither waits for the other.
    first: usize,
}

impl TwoSockets {
    pub(crate) fn new(sockets: [Socket; 2], alias: Alias) -> TwoSockets {
        TwoSockets { sockets, alias, first: 0 }
    }
}

impl AsyncUdpSocket for TwoSockets {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        let [one, two] = &self.sockets;
        Box::pin(TwoSenders { senders: [one.create_sender(), two.create_sender()], alias: self.alias })
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.first = 1 - self.first;
        for index in [self.first, 1 - self.first] {
            let Poll::Ready(received) = self.sockets[index].poll_recv(cx, buffers, meta) else { continue };
            let received = received?;
            if index == 1 {
                let from_peer = meta[..received].iter_mut().filter(|one| one.addr == self.alias.real);
                from_peer.for_each(|one| one.addr = self.alias.alias);
            }
            return Poll::Ready(Ok(received));
        }
        Poll::Pending
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.sockets[0].local_addr()
    }

    fn max_receive_segments(&self) -> NonZeroUsize {
        self.sockets[0].max_receive_segments().max(self.sockets[1].max_receive_segments())
    }

    fn may_fragment(&self) -> bool {
        self.sockets.iter().any(|socket| socket.may_fragment())
    }
}

#[derive(Debug)]
struct TwoSenders {
    senders: [Pin<Box<dyn UdpSender>>; 2],
    alias: Alias,
}

impl UdpSender for TwoSenders {
    fn poll_send(mut self: Pin<&mut Self>, transmit: &Transmit<'_>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if transmit.destination == self.alias.alias {
            let transmit = Transmit { destination: self.alias.real, ..transmit.clone() };
            self.senders[1].as_mut().poll_send(&transmit, cx)
        } else {
            self.senders[0].as_mut().poll_send(transmit, cx)
        }
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        self.senders[0].max_transmit_segments().min(self.senders[1].max_transmit_segments())
    }
}
