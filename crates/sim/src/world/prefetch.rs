//! The simulator prefetches the cache lines of flows whose events come next.
//!
//! With thousands of flows the state of an event's flow is not in the caches, and waiting for memory is most of the event's cost.
//! The loop knows which flows come next: acknowledgments are in the return pipes in order, and each wire has a packet. It
//! therefore prefetches the state of these flows. Queues, controllers and transports are not involved. The book gives the effect,
//! under "Many flows".
//!
//! An ordinary early read would stall the processor, which waits for it before it retires later instructions. The prefetch is
//! `unsafe` because the hint has no safe form; it reads and changes no byte.
use super::Hosts;
use crate::endpoint::Connection;
use crate::host::Flow;
use crate::segment::Segment;
use crate::side::{Delivery, Destination, Receivers, Side};
use crate::tcp::Tcp;
use crate::transport::Transport;
use core::mem::offset_of;
use core::ops::Range;
use narrows_core::Pool;
use narrows_core::link::Link;

/// How early the loop prefetches the state of flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Prefetch {
    /// None: all flows fit into the nearest cache.
    Off,
    /// The receiver's state, one event early: all flows fit into the caches of one core.
    Receivers,
    /// Also the sender's state, several events early: the flows are in memory.
    Ahead,
}

/// Sizes of the nearest cache and of all caches of one core that can be expected, bytes.
const NEAREST_CACHE: usize = 1 << 15;
const NEAR_CACHES: usize = 1 << 22;
/// A sender's state is prefetched this many acknowledgments ahead.
const SENDER_AHEAD: usize = 6;
/// A receiver's state is prefetched this many packets ahead, where it is known which packets come.
const RECEIVER_AHEAD: usize = 4;
/// The same for its segments in flight, which can be found only from that state.
const SEGMENTS_AHEAD: usize = 2;

/// Offset of a flow's TCP connection. `Transport` stores its variant in a niche of a field, so no tag precedes it.
const TCP: usize = offset_of!(Flow, transport);
const CONNECTION: usize = TCP + offset_of!(Tcp, connection);

impl Prefetch {
    /// The choice for a run of this many flows.
    pub(crate) fn of(flows: usize) -> Prefetch {
        match flows * size_of::<Flow>() {
            bytes if bytes <= NEAREST_CACHE => Prefetch::Off,
            bytes if bytes <= NEAR_CACHES => Prefetch::Receivers,
            _ => Prefetch::Ahead,
        }
    }

    /// Prefetches the receiver's state for the packet on the wire.
    #[inline(always)]
    pub(super) fn receiver(self, link: &Link, pool: &Pool, segments: &[Segment], flows: &[Flow]) {
        if self != Prefetch::Off {
            receiver_of_packet_on_wire(link, pool, segments, flows);
        }
    }

    /// Prefetches where the packet on the wire goes, if its receiver is in another part.
    #[inline(always)]
    pub(super) fn destination(self, link: &Link, pool: &Pool, segments: &[Segment], destinations: &[Destination]) {
        if self != Prefetch::Off
            && let Some(id) = link.sending()
        {
            prefetch(&segments[id.index()]);
            prefetch(&destinations[pool.meta(id).flow.0 as usize]);
        }
    }
}

#[inline(never)]
fn receiver_of_packet_on_wire(link: &Link, pool: &Pool, segments: &[Segment], flows: &[Flow]) {
    if let Some(id) = link.sending() {
        prefetch(&segments[id.index()]);
        prefetch_part(&flows[pool.meta(id).flow.0 as usize], 0..CONNECTION + offset_of!(Connection, ecn));
    }
}

impl Hosts<Receivers> {
    /// Prefetches the receiver's state for one of the next packets of a batch.
    #[inline(always)]
    pub(super) fn prefetch_receiver(&self, deliveries: &[Delivery], present: usize) {
        if self.prefetch != Prefetch::Off
            && let Some(next) = deliveries.get(present + RECEIVER_AHEAD)
        {
            prefetch_part(&self.flows[next.flow as usize], 0..CONNECTION + offset_of!(Connection, ecn));
        }
    }
}

impl<S: Side> Hosts<S> {
    /// Prefetches the senders' state for the next acknowledgments of this return pipe.
    #[inline]
    pub(super) fn prefetch_senders(&self, pipe: usize) {
        if self.prefetch == Prefetch::Ahead {
            self.prefetch_senders_ahead(pipe);
        }
    }

    #[inline(never)]
    fn prefetch_senders_ahead(&self, pipe: usize) {
        if let Some(flow) = self.flow_of_ack(pipe, SENDER_AHEAD) {
            prefetch_part(flow, 0..TCP);
            prefetch_part(flow, CONNECTION..CONNECTION + offset_of!(Connection, written));
            prefetch_part(flow, TCP + offset_of!(Tcp, spin)..TCP + size_of::<Tcp>());
        }
        if let Some(Transport::Tcp(tcp)) = self.flow_of_ack(pipe, SEGMENTS_AHEAD).map(|flow| &flow.transport) {
            tcp.sender.board.edges().into_iter().for_each(prefetch);
        }
    }

    /// The flow of the n-th acknowledgment in a return pipe.
    #[inline]
    fn flow_of_ack(&self, pipe: usize, n: usize) -> Option<&Flow> {
        let ack = self.pipes[pipe].underway.get(n)?;
        Some(&self.flows[ack.flow as usize])
    }
}

/// Prefetches all cache lines of a value.
#[inline]
fn prefetch<T>(value: &T) {
    prefetch_part(value, 0..size_of::<T>());
}

/// Prefetches some bytes of a value. Their offset must be known without reading the value: reading an enum's variant could
/// already be a cache miss.
#[inline]
fn prefetch_part<T>(value: &T, bytes: Range<usize>) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = core::ptr::from_ref(value).cast::<i8>();
        let load = |at: usize| {
            #[expect(unsafe_code, reason = "a hint: nothing is read, whatever the address")]
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(at));
            }
        };
        // A value with a cache line's alignment begins at one. Otherwise its last byte may be in an additional line.
        let aligned = align_of::<T>() >= LINE;
        let mut at = if aligned { bytes.start / LINE * LINE } else { bytes.start };
        while at < bytes.end {
            load(at);
            at += LINE;
        }
        if !aligned && bytes.len() > SMALL {
            load(bytes.end - 1);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (value, bytes);
}

/// Bytes in a cache line.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;
/// An allocation of up to this many bytes is within one line, because allocators align to as many.
#[cfg(target_arch = "x86_64")]
const SMALL: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::{Receiver, Sender, Spin};
    use narrows_core::congestion::ControllerConfig;
    use narrows_core::{Rng, Span};
    use narrows_scenario::transport::TcpParams;

    #[test]
    fn a_connection_begins_where_it_is_loaded_from() {
        let params = TcpParams::default();
        let config = ControllerConfig::Cubic(Default::default());
        let transport = Transport::Tcp(Tcp {
            receiver: Receiver::new(&params, narrows_scenario::Family::V4, Span::ms(10)),
            connection: Connection::new(config.into(), false, Rng::stream(1, "controller")),
            spin: Spin::default(),
            sender: Sender::new(&params),
        });
        let Transport::Tcp(tcp) = &transport else { panic!("it is a TCP connection") };
        assert!(std::ptr::addr_eq(&transport, tcp), "only the speed depends on it");
    }
}
