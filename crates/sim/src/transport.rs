//! The choice of a transport: an enum of everything that implements [`Endpoint`]. Instead of a function table, the code that
//! handles an event is compiled once for each transport ([`dispatch`]).
use crate::endpoint::{Armed, Awaited, Connection, Endpoint, Records};
use crate::media::Media;
#[cfg(feature = "peers")]
use crate::peers::Peers;
use crate::quic::Quic;
use crate::segment::Segment;
use crate::tcp::Tcp;
use crate::udp::Udp;
use narrows_core::{Rng, Span, Time};
use narrows_world::meters::{Meters, SenderStats};
use narrows_world::peer::Datagram;

/// The transport of a flow.
// A box would cost a cache miss per event of a TCP flow, and would keep the state from being prefetched with the flow's.
#[expect(clippy::large_enum_variant, reason = "datagram flows are few and pay for it with memory only")]
pub(crate) enum Transport {
    Tcp(Tcp),
    Quic(Box<Quic>),
    Udp(Udp),
    Media(Box<Media>),
    #[cfg(feature = "peers")]
    Peers(Box<Peers>),
}

/// An endpoint that [`Transport`] has a variant for.
pub(crate) trait Carried: Endpoint {
    /// The flow's ends, if they use this transport.
    fn of(transport: &mut Transport) -> Option<&mut Self>;
}

macro_rules! carried {
    ($($Ends:ident),*) => {
        $(impl Carried for $Ends {
            #[inline(always)]
            fn of(transport: &mut Transport) -> Option<&mut $Ends> {
                if let Transport::$Ends(ends) = transport { Some(ends) } else { None }
            }
        })*
    };
}
carried!(Tcp, Quic, Udp, Media);
#[cfg(feature = "peers")]
carried!(Peers);

/// Calls a function that is generic over [`Endpoint`], for the transport of a flow. TCP's comes without a jump through a table.
macro_rules! dispatch {
    ($transport:expr, $End:ident => $call:expr) => {
        match $transport {
            Transport::Tcp(_) => {
                type $End = $crate::tcp::Tcp;
                $call
            }
            Transport::Quic(_) => {
                type $End = $crate::quic::Quic;
                core::hint::cold_path();
                $call
            }
            Transport::Udp(_) => {
                type $End = $crate::udp::Udp;
                core::hint::cold_path();
                $call
            }
            Transport::Media(_) => {
                type $End = $crate::media::Media;
                core::hint::cold_path();
                $call
            }
            #[cfg(feature = "peers")]
            Transport::Peers(_) => {
                type $End = $crate::peers::Peers;
                core::hint::cold_path();
                $call
            }
        }
    };
}
pub(crate) use dispatch;

/// Calls a method of a flow's ends.
macro_rules! each {
    ($transport:expr, $ends:ident => $call:expr) => {
        match $transport {
            Transport::Tcp($ends) => $call,
            Transport::Quic($ends) => $call,
            Transport::Udp($ends) => $call,
            Transport::Media($ends) => $call,
            #[cfg(feature = "peers")]
            Transport::Peers($ends) => $call,
        }
    };
}

/// Operations on a flow of any transport that are not frequent.
impl Transport {
    /// See [`Endpoint::handshake_len`].
    pub(crate) fn handshake_len(&self) -> u32 {
        each!(self, ends => ends.handshake_len())
    }

    /// See [`Endpoint::steady_syns`].
    pub(crate) fn steady_syns(&self) -> u32 {
        each!(self, ends => ends.steady_syns())
    }

    /// See [`Endpoint::connection`].
    #[inline]
    pub(crate) fn connection(&mut self) -> Option<&mut Connection> {
        each!(self, ends => ends.connection())
    }

    /// See [`Endpoint::armed`].
    #[inline]
    pub(crate) fn armed(&mut self) -> Option<&mut Armed> {
        each!(self, ends => ends.armed())
    }

    /// See [`Endpoint::established`].
    pub(crate) fn established(&mut self, rtt: Option<Span>, now: Time, rng: Rng) {
        each!(self, ends => ends.established(rtt, now, rng));
    }

    /// See [`Endpoint::await_transfer`].
    pub(crate) fn await_transfer(&mut self, bytes: u64, now: Time) {
        each!(self, ends => ends.await_transfer(bytes, now));
    }

    /// See [`Endpoint::awaited`].
    pub(crate) fn awaited(&mut self) -> Option<&mut Awaited> {
        each!(self, ends => ends.awaited())
    }

    /// See [`Endpoint::write`].
    pub(crate) fn write(&mut self, bytes: Option<u64>, now: Time) {
        each!(self, ends => ends.write(bytes, now));
    }

    /// See [`Endpoint::stop`].
    pub(crate) fn stop(&mut self) {
        each!(self, ends => ends.stop());
    }

    /// See [`Endpoint::meters`].
    pub(crate) fn meters(&self) -> Option<Meters> {
        each!(self, ends => ends.meters())
    }

    /// See [`Endpoint::stats`].
    pub(crate) fn stats(&self) -> SenderStats {
        each!(self, ends => ends.stats())
    }

    /// See [`Endpoint::reset_stats`].
    pub(crate) fn reset_stats(&mut self) {
        each!(self, ends => ends.reset_stats());
    }

    /// See [`Endpoint::records`].
    pub(crate) fn records(&mut self) -> Records<'_> {
        each!(self, ends => ends.records())
    }

    /// The network has dropped one of its packets.
    #[inline]
    pub(crate) fn dropped(&mut self, _segment: &Segment) {
        #[cfg(feature = "peers")]
        if let Transport::Peers(peers) = self {
            peers.dropped(_segment.tag);
        }
    }

    /// The network has sent one of its packets twice: `segment` becomes the copy's.
    pub(crate) fn copied(&mut self, _segment: &mut Segment) {
        #[cfg(feature = "peers")]
        if let Transport::Peers(peers) = self {
            _segment.tag = peers.copied(_segment.tag);
        }
    }

    /// A datagram of a peer, which is underway; `None` if the flow has none.
    pub(crate) fn datagram(&self, _slot: u32) -> Option<&Datagram> {
        #[cfg(feature = "peers")]
        if let Transport::Peers(peers) = self {
            return Some(peers.datagram(_slot));
        }
        None
    }

    /// Payload of a peer's full-sized packets, bytes; `None` if the flow has none.
    pub(crate) fn peer_mss(&self) -> Option<u64> {
        #[cfg(feature = "peers")]
        if let Transport::Peers(peers) = self {
            return Some(peers.mss());
        }
        None
    }

    /// See [`Endpoint::heap_bytes`].
    pub(crate) fn heap_bytes(&self) -> usize {
        each!(self, ends => ends.heap_bytes())
    }
}
