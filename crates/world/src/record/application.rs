//! What an application's user would feel: delay, jitter and loss of datagrams, delay of messages, and the scores made of them.
use super::histogram::Delays;
use super::track::{Bound, Track};
use super::video::VideoRecord;
use crate::quality::{self, emodel, outcome};
use narrows_core::{Span, Time};
use narrows_results::Cdf;
use narrows_results::summary::{self, Application, Voice};
use narrows_scenario::Traffic;
use std::collections::VecDeque;

/// The arrivals of a flow's datagrams.
pub struct Datagrams {
    delays: Delays,
    previous: Option<Span>,
    /// The estimate of RFC 3550 §6.4.1, ms, and its sum over the arrivals.
    jitter: f64,
    jitters: f64,
    /// Number of arrivals after which there was an estimate.
    estimates: u64,
    /// The means over intervals, and the sum and the number of delays in the present one.
    means: Option<Track>,
    interval: (u64, u64),
}

impl Datagrams {
    /// Quantiles with this many significant digits, and the means over intervals in this series.
    pub fn new(digits: u8, means: Option<Track>) -> Datagrams {
        Datagrams {
            delays: Delays::new(digits),
            previous: None,
            jitter: 0.0,
            jitters: 0.0,
            estimates: 0,
            means,
            interval: (0, 0),
        }
    }

    /// A datagram has arrived after this time.
    pub fn arrived(&mut self, delay: Span) {
        self.delays.record(delay);
        self.interval = (self.interval.0 + delay.as_ns(), self.interval.1 + 1);
        if let Some(previous) = self.previous.replace(delay) {
            // J(i) = J(i−1) + (|D(i−1, i)| − J(i−1)) / 16; D is the difference of two one-way delays.
            let difference = (delay.as_ms_f64() - previous.as_ms_f64()).abs();
            self.jitter += (difference - self.jitter) / 16.0;
            self.jitters += self.jitter;
            self.estimates += 1;
        }
    }

    /// Ends an interval of the series; one without arrivals has no point.
    pub fn sample(&mut self, now: Time) {
        let (sum, count) = std::mem::take(&mut self.interval);
        if let Some(means) = self.means.as_mut().filter(|_| count > 0) {
            means.push(now, sum as f64 / count as f64 / 1e6);
        }
    }

    /// Limits the length of the series from now on.
    pub fn bound(&mut self, bound: Bound) {
        self.means.iter_mut().for_each(|means| means.bound(bound));
    }

    /// The distribution of the delays, if there are any.
    pub fn cdf(&self, source: &str) -> Option<Cdf> {
        self.delays.cdf(source, ONE_WAY)
    }

    /// The series of their means over intervals.
    pub fn into_means(self) -> Option<Track> {
        self.means
    }

    /// Ends the warm-up. The estimate of jitter goes on.
    pub fn restart(&mut self) {
        self.delays.clear();
        (self.jitters, self.estimates) = (0.0, 0);
    }

    /// Memory in use apart from its own size, bytes.
    pub fn bytes(&self) -> usize {
        self.delays.bytes() + self.means.as_ref().map_or(0, Track::bytes)
    }
}

/// One-way delays, as series and distributions call them.
pub const ONE_WAY: &str = "one_way_ms";

/// The messages of a connection, from the write at the sender to the read of their last byte at the receiver.
#[derive(Clone, Debug)]
pub struct Messages {
    delays: Delays,
    /// Messages written and not read: their ends in the stream, and the times of their writes.
    unread: VecDeque<(u64, Time)>,
    /// Too many were unread to remember them all.
    overflow: bool,
    /// Payload that has arrived without a gap, and the number of the packet that continues it.
    read: u64,
    next: u64,
    /// Packets beyond a gap, ascending: number and payload.
    beyond: VecDeque<(u64, u32)>,
}

/// Number of unread messages that are remembered.
const MAX_UNREAD: usize = 1 << 20;

impl Messages {
    /// Quantiles with this many significant digits.
    pub fn new(digits: u8) -> Messages {
        Messages {
            delays: Delays::new(digits),
            unread: VecDeque::new(),
            overflow: false,
            read: 0,
            next: 0,
            beyond: VecDeque::new(),
        }
    }

    /// The application has written a message, with which it has written `end` bytes.
    pub fn written(&mut self, end: u64, now: Time) {
        self.overflow |= self.unread.len() >= MAX_UNREAD;
        if !self.overflow {
            self.unread.push_back((end, now));
        }
    }

    /// A packet with this number, and this payload that is new, has arrived. Packets are numbered from 0 in the order of the stream.
    pub fn arrived(&mut self, number: u64, payload: u32, now: Time) {
        if number != self.next {
            let place = self.beyond.partition_point(|&(other, _)| other < number);
            return self.beyond.insert(place, (number, payload));
        }
        self.proceed(payload);
        while let Some((_, payload)) = self.beyond.pop_front_if(|&mut (number, _)| number == self.next) {
            self.proceed(payload);
        }
        self.finish(now);
    }

    /// The receiver has read this many bytes more of the stream, as reported by a world that does not see single packets.
    pub fn read(&mut self, bytes: u64, now: Time) {
        self.read += bytes;
        self.finish(now);
    }

    /// Messages whose last byte has been read are.
    fn finish(&mut self, now: Time) {
        while let Some((_, at)) = self.unread.pop_front_if(|&mut (end, _)| end <= self.read) {
            self.delays.record(now.since(at));
        }
    }

    /// The number of the next packet in the order of the stream.
    pub const fn next(&self) -> u64 {
        self.next
    }

    fn proceed(&mut self, payload: u32) {
        self.next += 1;
        self.read += u64::from(payload);
    }

    /// Ends the warm-up.
    pub fn restart(&mut self) {
        self.delays.clear();
    }

    /// Memory in use apart from its own size, bytes.
    pub fn bytes(&self) -> usize {
        let unread = self.unread.capacity() * size_of::<(u64, Time)>();
        self.delays.bytes() + unread + self.beyond.capacity() * size_of::<(u64, u32)>()
    }

    /// The delays of messages that were read, and of those that have been unread for longer than any of them took; `None` if some
    /// are not known.
    fn all(&self, now: Time) -> Option<Delays> {
        if self.overflow {
            return None;
        }
        let mut all = self.delays.clone();
        let ages = self.unread.iter().map(|&(_, at)| now.since(at));
        ages.filter(|&age| age > self.delays.longest()).for_each(|age| all.record(age));
        Some(all).filter(|all| !all.is_empty())
    }
}

/// The measurements of a flow from which its application's figures are made.
#[derive(Default)]
pub struct FlowMeasurements<'a> {
    /// Datagrams that arrived, and the number of those that were lost.
    pub datagrams: Option<(&'a Datagrams, u64)>,
    /// Messages of a connection.
    pub messages: Option<&'a Messages>,
    /// Round-trip times.
    pub rtts: Option<&'a Delays>,
    /// Frames of a video call.
    pub video: Option<&'a VideoRecord>,
}

/// Intervals between packets of a call: from 10 ms, the shortest frame of common codecs, to 60 ms.
const OF_A_CALL: std::ops::RangeInclusive<Span> = Span::ms(10)..=Span::ms(60);

impl FlowMeasurements<'_> {
    /// The figures of this traffic; `None` if there are none.
    pub fn summary(&self, traffic: Option<&Traffic>, now: Time) -> Option<Application> {
        let mut figures = Application::default();
        let thin = match traffic {
            Some(Traffic::Thin(thin)) => Some(thin),
            _ => None,
        };
        let mut scores = |delays: &Delays, lost: u64| {
            let Some(thin) = thin else { return };
            figures.qoo = Some(quality_of_outcome(delays, lost));
            figures.voice = OF_A_CALL.contains(&thin.interval).then(|| voice(delays, lost, thin.interval)).flatten();
        };
        if let Some((datagrams, lost)) = self.datagrams.filter(|(datagrams, _)| !datagrams.delays.is_empty()) {
            scores(&datagrams.delays, lost);
            figures.one_way_ms = Some(datagrams.delays.quantiles_ms());
            figures.jitter_ms = (datagrams.estimates > 0).then(|| datagrams.jitters / datagrams.estimates as f64);
            figures.loss = Some(lost as f64 / (lost + datagrams.delays.count()) as f64);
        } else if let Some((messages, delays)) = self.messages.and_then(|messages| Some((messages, messages.all(now)?)))
        {
            scores(&delays, 0);
            figures.messages = Some(summary::Messages {
                count: delays.count(),
                delay_ms: delays.quantiles_ms(),
                unread: messages.unread.len() as u64,
            });
        }
        if let Some(video) = self.video {
            figures.video = video.summary(now);
            figures.loss = video.loss();
        }
        if let (Some(Traffic::Bulk(_)), Some(rtts)) = (traffic, self.rtts) {
            figures.rpm = rtts.trimmed_mean_ms(quality::TRIMMED).map(quality::round_trips_per_minute);
        }
        (figures != Application::default()).then_some(figures)
    }
}

fn quality_of_outcome(delays: &Delays, lost: u64) -> f64 {
    let requirement = outcome::EXAMPLE;
    let latency = delays.at_shares(requirement.latency.iter().map(|&(share, _)| share));
    outcome::score(&requirement, [latency[0], latency[1]], lost as f64 / (lost + delays.count()) as f64)
}

/// The score of a call of such packets. Its receiver plays each packet at a constant time after it was sent: the time, of those in
/// the distribution, with which R is highest. Packets that come later count as lost. The mouth-to-ear delay is that time and one
/// interval, in which the sender fills a packet.
fn voice(delays: &Delays, lost: u64, interval: Span) -> Option<Voice> {
    let sent = lost + delays.count();
    let scored = delays.steps_ms().map(|(playout_ms, in_time)| {
        let loss = (sent - in_time) as f64 / sent as f64;
        let r = emodel::rating(playout_ms + interval.as_ms_f64(), 100.0 * loss, emodel::G711);
        Voice { r, mos: emodel::mos(r), playout_ms, loss }
    });
    // Of equal ratings the shortest delay.
    scored.reduce(|best, next| if next.r > best.r { next } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_scenario::traffic::Thin;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::ms(ms)
    }

    /// Delays of 10, 26, 26, 10 ms: |D| is 16, 0, 16 ms, so J is 1, 15/16, 15/16 + (16 − 15/16)/16.
    #[test]
    fn jitter_is_that_of_rfc_3550() {
        let mut datagrams = Datagrams::new(3, None);
        [10, 26, 26, 10].into_iter().for_each(|ms| datagrams.arrived(Span::ms(ms)));
        let found = FlowMeasurements { datagrams: Some((&datagrams, 1)), ..FlowMeasurements::default() };
        let found = found.summary(None, at(1)).expect("there were datagrams");
        let last = 15.0 / 16.0 + (16.0 - 15.0 / 16.0) / 16.0;
        assert!((found.jitter_ms.unwrap() - (1.0 + 15.0 / 16.0 + last) / 3.0).abs() < 1e-12);
        assert_eq!(found.loss, Some(0.2));
        assert_eq!(found.one_way_ms.map(|ms| (ms.mean, ms.max)), Some((18.0, 26.0)));
        assert_eq!((found.voice, found.qoo, found.rpm), (None, None, None), "the traffic is not known");
    }

    /// An interval has the mean of its arrivals, one without any has no point, and the distribution has all of them.
    #[test]
    fn delays_have_means_over_intervals_and_a_distribution() {
        let mut datagrams = Datagrams::new(3, Some(Track::new(ONE_WAY, 4)));
        let room = datagrams.bytes();
        for (interval, delays) in [[10, 20].as_slice(), &[], &[40]].into_iter().enumerate() {
            delays.iter().for_each(|&ms| datagrams.arrived(Span::ms(ms)));
            datagrams.sample(at(100 * (interval as u64 + 1)));
        }
        let cdf = datagrams.cdf("flow:call").expect("there were datagrams");
        assert_eq!((cdf.metric.as_str(), cdf.points.last().map(|point| point.1)), (ONE_WAY, Some(1.0)));
        assert!(room >= 4 * size_of::<(f64, f64)>(), "the series is counted");
        let series = datagrams.into_means().and_then(|means| means.finish("flow:call")).expect("it has points");
        assert_eq!(series.points, [(0.1, 15.0), (0.3, 40.0)]);
    }

    #[test]
    fn a_message_waits_for_what_was_written_before_it() {
        let mut messages = Messages::new(3);
        for n in 0..4 {
            messages.written(100 * (n + 1), at(10 * n));
        }
        messages.arrived(0, 100, at(20));
        // The second is lost at first; the third and the fourth are read with it.
        messages.arrived(3, 100, at(55));
        messages.arrived(2, 100, at(60));
        assert_eq!(messages.delays.count(), 1);
        messages.arrived(1, 100, at(90));
        assert_eq!(messages.next(), 4);
        let quantiles = messages.delays.quantiles_ms();
        // 20, 80, 70 and 60 ms.
        assert_eq!((quantiles.mean, quantiles.max), (57.5, 80.0));
        messages.written(500, at(100));
        messages.written(600, at(190));
        let found = FlowMeasurements { messages: Some(&messages), ..FlowMeasurements::default() }
            .summary(None, at(200))
            .unwrap();
        let found = found.messages.unwrap();
        assert_eq!((found.count, found.unread, found.delay_ms.max), (5, 2, 100.0), "the older one has waited longest");
    }

    /// Nine of ten packets come after 20 ms, one after 400 ms. Waiting for it would cost a call more than losing it.
    #[test]
    fn a_packet_that_comes_too_late_is_lost_to_a_call() {
        let mut datagrams = Datagrams::new(3, None);
        (0..1000).for_each(|n| datagrams.arrived(if n % 100 == 0 { Span::ms(400) } else { Span::ms(20) }));
        let thin = Traffic::Thin(Thin::default());
        let found = FlowMeasurements { datagrams: Some((&datagrams, 0)), ..FlowMeasurements::default() };
        let found = found.summary(Some(&thin), at(1)).unwrap();
        let voice = found.voice.unwrap();
        assert!((voice.playout_ms - 20.0).abs() < 0.1, "{voice:?}");
        assert_eq!(voice.loss, 0.01);
        assert_eq!(voice.r, emodel::rating(voice.playout_ms + 20.0, 1.0, emodel::G711));
        // Its 99.9 % quantile is unacceptable.
        assert_eq!(found.qoo, Some(0.0));
        let slow = Traffic::Thin(Thin { interval: Span::ms(100), ..Thin::default() });
        let found = FlowMeasurements { datagrams: Some((&datagrams, 0)), ..FlowMeasurements::default() }
            .summary(Some(&slow), at(1));
        assert_eq!(found.unwrap().voice, None, "no call sends a packet in 100 ms");
    }

    /// 95 of 100 round trips take 20 ms, five take a second: 60 000 ÷ 20 trips per minute.
    #[test]
    fn responsiveness_leaves_out_the_longest_round_trips() {
        let mut rtts = Delays::new(3);
        (0..100).for_each(|n| rtts.record(if n < 95 { Span::ms(20) } else { Span::s(1) }));
        let bulk = Traffic::Bulk(Default::default());
        let found =
            FlowMeasurements { rtts: Some(&rtts), ..FlowMeasurements::default() }.summary(Some(&bulk), at(1)).unwrap();
        assert!((found.rpm.unwrap() - 3000.0).abs() < 3.0, "{found:?}");
        assert_eq!(FlowMeasurements { rtts: Some(&rtts), ..FlowMeasurements::default() }.summary(None, at(1)), None);
    }
}
