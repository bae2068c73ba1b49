//! The seam: our own TCP behind [`Peer`] does what it does without.
use super::*;
use crate::Session;
use crate::build;
use crate::side::{Share, Whole};
use crate::transport::Carried as _;
use crate::{host::Flow, segment::SegmentKind, tcp::Tcp};
use narrows_core::{Bytes, Ecn};
use narrows_scenario::{NoTraces, Scenario};
use narrows_world::Wanted;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// A connection of ours, which both ends share.
struct Own {
    flow: Flow,
    /// What is underway, by the number that stands in a datagram.
    segments: Vec<Segment>,
    returning: Vec<Returning>,
    leaving: VecDeque<(u32, u32, Ecn)>,
    answers: VecDeque<(u32, u32)>,
    opened: Option<Time>,
}

impl Own {
    fn tcp(&mut self) -> &mut Tcp {
        Tcp::of(&mut self.flow.transport).expect("it is a TCP connection")
    }

    fn send(&mut self, segment: Segment, ip_len: u32, ecn: Ecn) {
        self.leaving.push_back((self.segments.len() as u32, ip_len, ecn));
        self.segments.push(segment);
    }

    fn answer(&mut self, what: Returning) {
        self.answers.push_back((self.returning.len() as u32, self.flow.answer_len(&what)));
        self.returning.push(what);
    }
}

struct OwnSender(Arc<Mutex<Own>>, Time);
struct OwnReceiver(Arc<Mutex<Own>>, u64);

fn written(datagram: &mut Datagram, number: u32, ip_len: u32, ecn: Ecn) -> bool {
    datagram.bytes.extend(number.to_le_bytes());
    datagram.bytes.resize(ip_len as usize, 0);
    (datagram.headers, datagram.ecn) = (Bytes(0), ecn);
    true
}

fn number(datagram: &Datagram) -> usize {
    u32::from_le_bytes(datagram.bytes[..4].try_into().expect("four bytes")) as usize
}

impl Peer for OwnSender {
    fn receive(&mut self, datagram: &mut Datagram, now: Time) {
        self.1 = now;
        let mut own = self.0.lock().expect("one thread");
        match own.returning[number(datagram)] {
            Returning::SynAck => {
                let rtt = now.since(own.opened.expect("it was opened"));
                let rng = own.tcp().connection.rng.take().expect("it is opened once");
                own.tcp().established(Some(rtt), now, rng);
            }
            what => drop(own.tcp().on_ack(&what, now)),
        }
    }

    fn transmit(&mut self, datagram: &mut Datagram, now: Time) -> bool {
        self.1 = now;
        let mut own = self.0.lock().expect("one thread");
        if own.leaving.is_empty() && own.flow.transport.connection().is_some_and(|connection| connection.rng.is_none())
        {
            let Flow { transport, place, header, .. } = &mut own.flow;
            let out = Tcp::of(transport).and_then(|tcp| tcp.poll_transmit(place, *header, now));
            if let Some(Outgoing { segment, bits }) = out {
                own.send(segment, segment.transit.ip_len, bits.ecn);
            }
        }
        own.leaving.pop_front().is_some_and(|(number, ip_len, ecn)| written(datagram, number, ip_len, ecn))
    }

    fn timeout(&self) -> Option<Time> {
        let mut own = self.0.lock().expect("one thread");
        let tcp = own.tcp();
        tcp.next_timer(self.1).into_iter().chain(tcp.next_pace(self.1)).min()
    }

    fn on_timeout(&mut self, now: Time) {
        let mut own = self.0.lock().expect("one thread");
        let tcp = own.tcp();
        if tcp.next_timer(now).is_some_and(|at| at <= now) {
            tcp.on_timer(now);
        }
        if tcp.next_pace(now).is_some_and(|at| at <= now) {
            tcp.on_pace(now);
        }
    }

    fn application(&mut self, _stream: &mut Stream, now: Time) {
        let mut own = self.0.lock().expect("one thread");
        if own.opened.is_none() {
            own.opened = Some(now);
            own.tcp().write(None, now);
            let len = own.flow.handshake_len();
            own.send(Segment { kind: SegmentKind::Syn, ..Segment::default() }, len, Ecn::NotEct);
        }
    }
}

impl Peer for OwnReceiver {
    fn receive(&mut self, datagram: &mut Datagram, now: Time) {
        let mut own = self.0.lock().expect("one thread");
        let segment = own.segments[number(datagram)];
        if segment.kind == SegmentKind::Syn {
            return own.answer(Returning::SynAck);
        }
        if own.tcp().must_report(&segment) {
            let ack = own.tcp().acknowledge(0, now);
            own.answer(ack);
        }
        let payload = datagram.bytes.len() as u32 - own.flow.header;
        let arrival = own.tcp().on_packet(&segment, payload, datagram.ecn == Ecn::Ce, now);
        self.1 += u64::from(arrival.new);
        if arrival.acknowledge {
            let ack = own.tcp().acknowledge(0, now);
            own.answer(ack);
        }
    }

    fn transmit(&mut self, datagram: &mut Datagram, _now: Time) -> bool {
        let mut own = self.0.lock().expect("one thread");
        own.answers.pop_front().is_some_and(|(number, ip_len)| written(datagram, number, ip_len, Ecn::NotEct))
    }

    fn timeout(&self) -> Option<Time> {
        self.0.lock().expect("one thread").tcp().next_ack()
    }

    fn on_timeout(&mut self, now: Time) {
        let mut own = self.0.lock().expect("one thread");
        while own.tcp().overdue(now).is_some() {
            let ack = own.tcp().acknowledge(0, now);
            own.answer(ack);
        }
    }

    fn application(&mut self, stream: &mut Stream, _now: Time) {
        stream.has_read(std::mem::take(&mut self.1) as usize);
    }
}

#[test]
fn our_own_tcp_behind_peers_gives_the_simulators_figures() {
    for (controller, queue, ecn) in
        [("cubic", "fifo", false), ("new_reno", "codel", true), ("bbr", "fq_codel", false), ("prague", "dualpi2", true)]
    {
        let text = format!(
            "name = \"seam\"\nduration = \"20s\"\n[[hop]]\nname = \"link\"\nrate = \"20mbit\"\nqueue = \"{queue}\"\n[[flow]]\nname = \
             \"own\"\nrtt = \"40ms\"\ncontroller = \"{controller}\"\ntransport = {{ kind = \"tcp\", ecn = {ecn} }}\n[[flow]]\nname = \
             \"beside\"\nrtt = \"30ms\"\ncontroller = \"cubic\"\n"
        );
        let scenario = Scenario::parse(&text, "seam", &NoTraces).expect("it is a scenario");
        let plain = Session::new(scenario.clone(), &Wanted::RESULT).finish().expect("it runs").result;
        let mut built = build::world::<Whole>(&scenario, &Wanted::RESULT, Share::ALL);
        let flow = built.hosts.flows.swap_remove(0);
        let (leaving, answers) = (VecDeque::new(), VecDeque::new());
        let own = Own { flow, segments: Vec::new(), returning: Vec::new(), leaving, answers, opened: None };
        let own = Arc::new(Mutex::new(own));
        let mut session = Session::new(scenario, &Wanted::RESULT);
        session.attach(0, [Box::new(OwnSender(Arc::clone(&own), Time::ZERO)), Box::new(OwnReceiver(own, 0))]);
        let behind = session.finish().expect("it runs").result;
        assert_eq!(plain.summary.hops, behind.summary.hops, "{controller} over {queue}");
        // A peer's throughput has the packets of its handshake, which the simulator's own flows do not count.
        let goodputs = |flows: &[narrows_results::summary::FlowSummary]| {
            flows.iter().map(|flow| (flow.goodput_mbit, flow.lost_packets)).collect::<Vec<_>>()
        };
        assert_eq!(goodputs(&plain.summary.flows), goodputs(&behind.summary.flows), "{controller} over {queue}");
    }
}
