//! A flow's figures.
use super::application::{self, Datagrams, Messages, ONE_WAY};
use super::histogram::{Delays, Gathered};
use super::video::VideoRecord;
use super::{Bound, Track};
use crate::meters::{Meters, SenderStats};
use narrows_core::{Rate, Span, Time};
use narrows_results::summary::{Application, FlowSummary};
use narrows_results::{Cdf, Series};
use narrows_scenario::Traffic;

/// The measurements of a flow. The fields are in the order of use: those for a data packet's arrival, then for an acknowledgment.
#[repr(C)]
pub struct FlowRecord {
    /// Payload that arrived for the first time, bytes.
    payload: u64,
    /// All bytes that arrived, at the IP layer, retransmissions included.
    received: u64,
    tracks: Option<Box<Tracks>>,
    /// Packets lost on the way.
    pub lost: u64,
    gathered: Gathered,
    distributions: Option<Box<Distributions>>,
    digits: u8,
}

/// Of times that are longer than a packet's.
#[derive(Default)]
struct Distributions {
    rtt: Option<Delays>,
    // In boxes, because most flows have none.
    completions: Option<Box<Delays>>,
    datagrams: Option<Box<Datagrams>>,
}

// Every flow with a round-trip time has one.
const _: () = assert!(size_of::<Distributions>() <= 112);

#[derive(Default)]
struct Interval {
    received: u64,
    rtt_ns: u64,
    samples: u64,
}

struct Tracks {
    interval: Interval,
    /// Time in queues, of packets that arrived.
    sojourn: Delays,
    throughput: Track,
    rtt: Track,
    srtt: Track,
    cwnd: Track,
    ssthresh: Track,
    inflight: Track,
    pacing: Track,
    target: Track,
}

/// Longer stays in queues are rare.
const USUAL_SOJOURN: Span = Span::ms(100);

impl FlowRecord {
    /// With series of `samples` points, or none; quantiles with `digits` decimal digits.
    pub fn new(samples: Option<usize>, digits: u8) -> FlowRecord {
        let tracks = |n| Tracks {
            interval: Interval::default(),
            sojourn: Delays::new(3).with_room(USUAL_SOJOURN),
            throughput: Track::new("throughput_mbit", n),
            rtt: Track::new("rtt_ms", n),
            srtt: Track::of_state("srtt_ms", n),
            cwnd: Track::of_state("cwnd_packets", n),
            ssthresh: Track::of_state("ssthresh_packets", 0),
            inflight: Track::of_state("inflight_packets", n),
            pacing: Track::of_state("pacing_mbit", 0),
            target: Track::of_state("target_mbit", 0),
        };
        FlowRecord {
            payload: 0,
            received: 0,
            tracks: samples.map(|n| Box::new(tracks(n))),
            lost: 0,
            gathered: Gathered::default(),
            distributions: None,
            digits,
        }
    }

    /// Limits the length of its series from now on.
    pub fn bound(&mut self, bound: Bound) {
        let Some(tracks) = &mut self.tracks else { return };
        let Tracks { throughput, rtt, srtt, cwnd, ssthresh, inflight, pacing, target, .. } = &mut **tracks;
        [throughput, rtt, srtt, cwnd, ssthresh, inflight, pacing, target]
            .into_iter()
            .for_each(|track| track.bound(bound));
        if let Some(datagrams) = self.distributions.as_mut().and_then(|d| d.datagrams.as_mut()) {
            datagrams.bound(bound);
        }
    }

    /// Adds everything of another flow's record except its series and its application's figures, which a sum of flows does not have.
    pub fn absorb(&mut self, mut other: FlowRecord) {
        other.settle();
        self.payload += other.payload;
        self.received += other.received;
        self.lost += other.lost;
        let Some(theirs) = other.distributions else { return };
        if let Some(rtts) = &theirs.rtt {
            self.rtts().add(rtts);
        }
        if let Some(completions) = &theirs.completions {
            self.completions().add(completions);
        }
    }

    /// A datagram has reached the receiving application after this time.
    pub fn datagram(&mut self, delay: Span) {
        let digits = self.digits;
        let distributions = self.distributions.get_or_insert_default();
        let means = || self.tracks.as_ref().map(|tracks| tracks.throughput.beside(ONE_WAY));
        distributions.datagrams.get_or_insert_with(|| Box::new(Datagrams::new(digits, means()))).arrived(delay);
    }

    /// The figures of the flow's application; `None` if there are none. `messages` are those of a connection, `video` the frames of
    /// a call.
    pub fn application(
        &self,
        traffic: Option<&Traffic>,
        messages: Option<&Messages>,
        video: Option<&VideoRecord>,
        now: Time,
    ) -> Option<Application> {
        let distributions = self.distributions.as_deref();
        let measured = application::FlowMeasurements {
            datagrams: distributions.and_then(|d| d.datagrams.as_deref()).map(|datagrams| (datagrams, self.lost)),
            messages,
            video,
            rtts: distributions.and_then(|d| d.rtt.as_ref()),
        };
        measured.summary(traffic, now)
    }

    /// The number of points that its series have room for; `None` without series.
    pub fn samples(&self) -> Option<usize> {
        self.tracks.as_ref().map(|tracks| tracks.cwnd.room())
    }

    /// A packet arrived at the receiver after this time in queues; `payload` is zero if it had arrived before.
    #[inline]
    pub fn received(&mut self, ip_len: u32, payload: u32, sojourn: Span) {
        self.payload += u64::from(payload);
        self.received += u64::from(ip_len);
        if let Some(tracks) = &mut self.tracks {
            tracks.interval.received += u64::from(ip_len);
            tracks.sojourn.record(sojourn);
        }
    }

    /// Bytes have arrived at the receiver, in packets that nobody saw: at the IP layer, and the payload in them.
    pub fn arrived(&mut self, ip_bytes: u64, payload: u64) {
        self.payload += payload;
        self.received += ip_bytes;
        if let Some(tracks) = &mut self.tracks {
            tracks.interval.received += ip_bytes;
        }
    }

    /// Payload that arrived for the first time, bytes.
    pub fn payload(&self) -> u64 {
        self.payload
    }

    /// The sender has measured a round-trip time.
    // Called for every acknowledgment; usually costs a comparison and a store.
    #[inline(always)]
    pub fn rtt(&mut self, rtt: Span) {
        if !self.gathered.push(rtt) {
            self.settle_with(rtt);
        }
        if let Some(tracks) = &mut self.tracks {
            tracks.interval.rtt_ns += rtt.as_ns();
            tracks.interval.samples += 1;
        }
    }

    /// Records a round-trip time for which [`Gathered`] had no room, after emptying it.
    #[inline(never)]
    fn settle_with(&mut self, rtt: Span) {
        self.settle();
        self.rtts().record(rtt);
    }

    /// Moves the gathered round-trip times into the histogram.
    pub fn settle(&mut self) {
        if !self.gathered.is_empty() {
            let gathered = std::mem::take(&mut self.gathered);
            self.rtts().record_gathered(gathered);
        }
    }

    fn rtts(&mut self) -> &mut Delays {
        let digits = self.digits;
        self.distributions.get_or_insert_default().rtt.get_or_insert_with(|| Delays::new(digits))
    }

    /// A transfer is complete; it took this long.
    pub fn completed(&mut self, took: Span) {
        self.completions().record(took);
    }

    fn completions(&mut self) -> &mut Delays {
        self.distributions.get_or_insert_default().completions.get_or_insert_with(|| Box::new(Delays::new(3)))
    }

    /// Ends an interval of the series. `meters` is the sender's state, if it has one.
    pub fn sample(&mut self, now: Time, spacing: Span, meters: Option<Meters>) {
        let Some(tracks) = &mut self.tracks else { return };
        let interval = std::mem::take(&mut tracks.interval);
        tracks.throughput.push(now, interval.received as f64 * 8.0 / spacing.as_secs_f64() / 1e6);
        if interval.samples > 0 {
            tracks.rtt.push(now, interval.rtt_ns as f64 / interval.samples as f64 / 1e6);
        }
        if let Some(datagrams) = self.distributions.as_mut().and_then(|d| d.datagrams.as_mut()) {
            datagrams.sample(now);
        }
        let Some(meters) = meters else { return };
        tracks.cwnd.push(now, meters.cwnd);
        if let Some(inflight) = meters.inflight {
            tracks.inflight.push(now, inflight);
        }
        if let Some(srtt) = meters.srtt {
            tracks.srtt.push(now, srtt.as_ms_f64());
        }
        if let Some(ssthresh) = meters.ssthresh {
            tracks.ssthresh.push(now, ssthresh);
        }
        if let Some(rate) = meters.pacing {
            tracks.pacing.push(now, rate.as_mbit_f64());
        }
    }

    /// The encoder of the flow's application aims at this rate at the end of an interval.
    pub fn sample_target(&mut self, now: Time, rate: Rate) {
        if let Some(tracks) = &mut self.tracks {
            tracks.target.push(now, rate.as_mbit_f64());
        }
    }

    /// Takes over the receiver's side from another record of the same flow.
    pub fn join_arrivals(&mut self, other: FlowRecord) {
        (self.payload, self.received, self.lost) = (other.payload, other.received, other.lost);
        if let Some(datagrams) = other.distributions.and_then(|d| d.datagrams) {
            self.distributions.get_or_insert_default().datagrams = Some(datagrams);
        }
        if let (Some(tracks), Some(other)) = (&mut self.tracks, other.tracks) {
            tracks.sojourn = other.sojourn;
            tracks.throughput = other.throughput;
        }
    }

    /// Ends the warm-up: all records except the series start again.
    pub fn restart(&mut self) {
        (self.payload, self.received, self.lost) = (0, 0, 0);
        self.gathered = Gathered::default();
        if let Some(distributions) = &mut self.distributions {
            let Distributions { rtt, completions, datagrams } = &mut **distributions;
            rtt.iter_mut().chain(completions.as_deref_mut()).for_each(Delays::clear);
            datagrams.as_deref_mut().into_iter().for_each(Datagrams::restart);
        }
        if let Some(tracks) = &mut self.tracks {
            tracks.sojourn.clear();
        }
    }

    /// The figures of a flow that lasted `life` after the warm-up.
    pub fn summary(&self, name: String, controller: &str, life: Span, stats: SenderStats) -> FlowSummary {
        let mbit = |bytes: u64| match life.as_secs_f64() {
            seconds if seconds > 0.0 => bytes as f64 * 8.0 / seconds / 1e6,
            _ => 0.0,
        };
        let distributions = self.distributions.as_ref();
        FlowSummary {
            name,
            controller: controller.into(),
            goodput_mbit: mbit(self.payload),
            throughput_mbit: mbit(self.received),
            rtt_ms: distributions.and_then(|d| d.rtt.as_ref()?.rtt_ms()),
            sojourn_ms: self.tracks.as_ref().filter(|t| !t.sojourn.is_empty()).map(|t| t.sojourn.quantiles_ms()),
            retransmits: Some(stats.retransmits),
            timeouts: Some(stats.timeouts),
            lost_packets: Some(self.lost),
            completion_s: distributions.and_then(|d| Some(d.completions.as_ref()?.completion_s())),
            verdicts: None,
            route: None,
            five_tuple: None,
            active: None,
            application: None,
        }
    }

    /// The distributions.
    pub fn cdfs(&self, source: &str) -> impl Iterator<Item = Cdf> {
        let tracks = self.tracks.as_ref();
        let distributions = tracks.and(self.distributions.as_ref());
        let rtt = distributions.and_then(|d| d.rtt.as_ref()?.cdf(source, "rtt_ms"));
        let one_way = distributions.and_then(|d| d.datagrams.as_ref()?.cdf(source));
        rtt.into_iter().chain(one_way).chain(tracks.and_then(|tracks| tracks.sojourn.cdf(source, "sojourn_ms")))
    }

    /// The series.
    pub fn series(self, source: &str) -> impl Iterator<Item = Series> {
        let source = source.to_owned();
        let one_way = self.distributions.and_then(|d| d.datagrams?.into_means());
        let finished = self.tracks.map(move |tracks| {
            let Tracks { throughput, rtt, srtt, cwnd, ssthresh, inflight, pacing, target, .. } = *tracks;
            let all = [throughput, rtt, srtt, cwnd, ssthresh, inflight, pacing, target];
            all.into_iter().chain(one_way).filter_map(|track| track.finish(&source)).collect::<Vec<_>>()
        });
        finished.into_iter().flatten()
    }

    /// Memory in use, bytes.
    pub fn bytes(&self) -> usize {
        let tracks = self.tracks.as_ref().map_or(0, |t| {
            let all = [&t.throughput, &t.rtt, &t.srtt, &t.cwnd, &t.ssthresh, &t.inflight, &t.pacing, &t.target];
            size_of::<Tracks>() + t.sojourn.bytes() + all.iter().map(|track| track.bytes()).sum::<usize>()
        });
        let distributions = self.distributions.as_ref().map_or(0, |d| {
            let completions = d.completions.as_ref().map_or(0, |delays| size_of::<Delays>() + delays.bytes());
            let datagrams = d.datagrams.as_ref().map_or(0, |datagrams| size_of::<Datagrams>() + datagrams.bytes());
            size_of::<Distributions>() + d.rtt.as_ref().map_or(0, Delays::bytes) + completions + datagrams
        });
        distributions + tracks
    }
}
