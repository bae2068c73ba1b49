//! The figures of both directions, with grades and advice.
use crate::error::{Code, Error};
use crate::limiter::Limiter;
use crate::measured::{Ecn, Fairness, Isolation, LATE, Measured, STEADY};
use crate::steps::Steps;
use serde::Serialize;
use std::fmt::{self, Write as _};

/// The result of a probe. A figure that was not measured is left out.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Answer {
    /// The server's address.
    pub server: String,
    /// Paths at the end, 1 or 2.
    pub paths: u8,
    /// Why there is one path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_path: Option<String>,
    /// Lowest RTT of a ping without load, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_rtt_ms: Option<f64>,
    /// Steps of the base RTT, if they were watched for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Steps>,
    /// From the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upload: Option<Measured>,
    /// To the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub download: Option<Measured>,
    /// UDP payload that was sent, bytes.
    pub sent_bytes: u64,
    /// Data of the download that were received, bytes.
    pub received_bytes: u64,
    /// Why it ended early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<PartialEnd>,
}

/// Why a probe ended early.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PartialEnd {
    /// By the user.
    pub interrupted: bool,
    /// In words.
    pub why: String,
}

impl PartialEnd {
    pub(crate) fn of(error: &Error) -> PartialEnd {
        let why = match error {
            Error::Closed(Code::Time) => "the server allows no more time (its --for)".into(),
            Error::Closed(Code::Data) => "the server allows no more data (its --max-data)".into(),
            other => other.to_string(),
        };
        PartialEnd { interrupted: matches!(error, Error::Stopped), why }
    }
}

/// A grade for the delay that load adds: its 95th percentile above the base RTT. A+ below 5 ms, A 30, B 60, C 200, D 400, F above.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Grade {
    /// Below 5 ms.
    APlus,
    /// Below 30 ms.
    A,
    /// Below 60 ms.
    B,
    /// Below 200 ms.
    C,
    /// Below 400 ms.
    D,
    /// 400 ms or more.
    F,
}

impl Grade {
    /// For this added delay, ms.
    pub fn of(added: f64) -> Grade {
        let bounds = [(5.0, Grade::APlus), (30.0, Grade::A), (60.0, Grade::B), (200.0, Grade::C), (400.0, Grade::D)];
        bounds.into_iter().find(|&(below, _)| added < below).map_or(Grade::F, |(_, grade)| grade)
    }
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Grade::APlus => "A+",
            Grade::A => "A",
            Grade::B => "B",
            Grade::C => "C",
            Grade::D => "D",
            Grade::F => "F",
        })
    }
}

/// The part of the measured rate that a shaper in front of the queue should have, so that the queue moves to it.
const SHAPED: f64 = 0.95;
/// An added delay below this is no nuisance, ms.
const HARMLESS: f64 = 30.0;

impl Measured {
    /// The delay that load adds to the base RTT at the 95th percentile, ms.
    pub fn added_ms(&self) -> Option<f64> {
        Some((self.working_rtt_ms?.p95 - self.base_rtt_ms?).max(0.0))
    }

    /// Whether the rate varied while packets waited.
    pub fn varies(&self) -> bool {
        self.rate_range_mbit.is_some_and(|[low, high]| high > STEADY * low)
    }

    /// The grade of the delay under load.
    pub fn grade(&self) -> Option<Grade> {
        self.added_ms().map(Grade::of)
    }

    /// What follows from the figures, in a sentence. `name`: "upload" or "download".
    pub fn advice(&self, name: &str, paths: u8) -> String {
        let queue = self.added_ms().filter(|&added| added >= HARMLESS);
        let remedy = match self.rate_mbit {
            Some(_) if self.varies() => {
                ", at a rate that follows the link (narrows qdisc attach --autorate), unless other traffic made it vary"
                    .to_owned()
            }
            Some(rate) => format!(", at {:.1} Mbit/s", rate * SHAPED),
            None => String::new(),
        };
        let side = if name == "upload" { "in front of it" } else { "at the sending end of the bottleneck" };
        match (self.fair_queuing, queue) {
            _ if self.limiter == Some(Limiter::Policer) => {
                format!(
                    "your {name} is policed: packets beyond the rate are dropped; put a shaper with fq_codel or cake {side}{remedy}"
                )
            }
            (Fairness::Shared, Some(_)) if self.aqm == Some(true) => {
                format!(
                    "your {name} shares one queue with an AQM; put fq_codel or cake {side}{remedy} to keep flows apart"
                )
            }
            (Fairness::Shared, Some(added)) => {
                let depth = self.buffer_ms.unwrap_or(added);
                format!("your {name} is a FIFO of {}; put fq_codel or cake {side}{remedy}", duration(depth))
            }
            (Fairness::Shared, None) => {
                format!(
                    "your {name} shares one queue, which stays short; a sender that keeps its own delay low would get less than its share"
                )
            }
            (Fairness::Fair, Some(added)) => format!(
                "your {name} is fair: each flow has its share and waits in its own queue; delay-based congestion control would save {}",
                duration(added)
            ),
            (Fairness::Fair, None) if self.is_late() => {
                format!("your {name} is fair; how long its queue is cannot be told, because a host was busy")
            }
            (Fairness::Fair, None) => {
                format!("your {name} is fair and its queue short; delay-based congestion control gets its share")
            }
            (Fairness::Apart, _) => format!(
                "your {name} takes two flows over different bottlenecks, as behind a load balancer; whether one of them queues fairly cannot be told"
            ),
            (Fairness::Undecided, _) if paths < 2 => {
                "whether flows share a queue cannot be told over one path: the second UDP port did not get through"
                    .into()
            }
            (Fairness::Undecided, _) if self.rate_is_capped => {
                "whether flows share a queue cannot be told: the limit of the rate kept the bottleneck from filling"
                    .into()
            }
            (Fairness::Undecided, _) if self.is_late() => format!(
                "whether flows share a queue cannot be told: a host was busy, its timers were {} late; try again when it is idle",
                duration(self.late_ms.unwrap_or(LATE))
            ),
            (Fairness::Undecided, Some(added)) => format!(
                "whether flows share a queue was not decided in this time; load adds {}; try again with a longer --for",
                duration(added)
            ),
            (Fairness::Undecided, None) => {
                format!("whether flows share a queue was not decided: the {name} made hardly any queue")
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn text_of(&self, name: &str) -> String {
        let mut out = String::new();
        self.text(name, 2, &mut out);
        out
    }

    fn text(&self, name: &str, paths: u8, out: &mut String) {
        // Writing to a string cannot fail.
        let mut line = |words: Vec<String>, first: bool| {
            if !words.is_empty() {
                let _ = writeln!(out, "{:<10}{}", if first { name } else { "" }, words.join("; "));
            }
        };
        let known = |text: Option<String>| text.into_iter().collect::<Vec<_>>();
        let at_least = |is: bool| if is { "at least " } else { "" };
        let rate = self.rate_mbit.map(|rate| format!("{}{rate:.1} Mbit/s", at_least(self.rate_is_capped)));
        let base = self.base_rtt_ms.map(|base| format!("base RTT {base:.1} ms"));
        let share = self.beside_others.then(|| match self.rate_range_mbit {
            Some([low, high]) if self.varies() => format!(
                "{low:.1} to {high:.1} while packets waited: beside other traffic, or the link's own rate varies; it may carry more"
            ),
            _ => "beside other traffic: the link may carry more, and its base RTT be lower".to_owned(),
        });
        line([known(rate), known(base), known(share)].concat(), true);
        line(known(self.bursts.map(|bursts| bursts.to_string())), false);
        let evidence = &self.evidence;
        let finding = match self.fair_queuing {
            Fairness::Fair => "fair queuing: yes, each flow has a queue of its own",
            Fairness::Shared => "fair queuing: no, the flows share a queue",
            Fairness::Apart => "fair queuing: not judged, the flows do not cross one bottleneck",
            Fairness::Undecided => "fair queuing: cannot tell",
        };
        let confidence = self.confidence.filter(|_| matches!(self.fair_queuing, Fairness::Fair | Fairness::Shared));
        let mut why =
            confidence.map(|confidence| format!("confidence {confidence:.3}")).into_iter().collect::<Vec<_>>();
        if paths > 1 && evidence.decisions > 0 {
            why.push(format!("{} decisions", evidence.decisions));
        }
        if evidence.by_ramp {
            why.push("by doubling two rates".into());
        }
        why.extend(evidence.first_after_s.map(|first| format!("the first after {first:.1} s")));
        let why = if why.is_empty() { String::new() } else { format!(" ({})", why.join(", ")) };
        line(vec![format!("{finding}{why}")], false);
        let hosts = self.between_hosts.map(|between| match (between, self.isolation) {
            (_, Some(Isolation::PerFlow)) => "fair between flows, also those of one address",
            (_, Some(Isolation::PerHost)) => "fair between addresses only: flows of one address share a queue",
            (Fairness::Shared, None) => "flows of two addresses share a queue as well",
            (Fairness::Fair, None) => "fair between addresses; for flows of one address it was not decided",
            (Fairness::Undecided | Fairness::Apart, None) => "between two addresses it was not decided",
        });
        line(known(hosts.map(str::to_owned)), false);
        let working = self.working_rtt_ms.map(|rtt| format!("RTT under load {:.1} ms, p95 {:.1} ms", rtt.p50, rtt.p95));
        let rpm = self.rpm.map(|rpm| format!("{rpm:.0} round trips per minute"));
        let grade = self.grade().map(|grade| format!("grade {grade}"));
        line([known(working), known(rpm), known(grade)].concat(), false);
        let buffer = self.buffer_ms.map(|buffer| {
            let bytes = self.buffer_bytes.map_or_else(String::new, |bytes| format!(" ({} kB)", bytes / 1000));
            format!("buffer {}{}{bytes}", at_least(self.buffer_is_at_least), duration(buffer))
        });
        let loss = self.loss.map(|loss| format!("loss {:.2} %", loss * 100.0));
        let aqm = self.aqm.map(|aqm| if aqm { "an AQM acts".into() } else { "no sign of an AQM".to_owned() });
        let limiter = self.limiter.map(|limiter| match limiter {
            Limiter::Policer => "policed".to_owned(),
            Limiter::Shaper => "excess packets wait".to_owned(),
        });
        let ecn = match self.ecn {
            Some(Ecn::Marks) => "ECN marks come through",
            Some(Ecn::Passes) => "ECN bits arrive as they were sent",
            Some(Ecn::Bleached) => "ECN bits are erased on the way",
            None => "ECN not measured",
        };
        line([known(buffer), known(loss), known(aqm), known(limiter), vec![ecn.into()]].concat(), false);
        line(vec![self.advice(name, paths)], false);
    }
}

impl Answer {
    /// The answer as a few lines.
    pub fn text(&self) -> String {
        let mut out = String::new();
        if let Some(idle) = self.idle_rtt_ms {
            let _ = writeln!(out, "{:<10}{idle:.1} ms", "idle RTT");
        }
        if let Some(steps) = &self.steps {
            let _ = writeln!(out, "{:<10}{}", "steps", steps);
        }
        for (name, measured) in [("upload", &self.upload), ("download", &self.download)] {
            match measured {
                Some(measured) => measured.text(name, self.paths, &mut out),
                None => {
                    let _ = writeln!(out, "{name:<10}not measured");
                }
            }
        }
        if let Some(why) = &self.lost_path {
            let _ = writeln!(out, "{:<10}{why}", "one path");
        }
        if let Some(ended) = &self.ended {
            let _ = writeln!(out, "{:<10}{}", "ended", ended.why);
        }
        out
    }
}

fn duration(ms: f64) -> String {
    if ms >= 1000.0 { format!("{:.1} s", ms / 1000.0) } else { format!("{ms:.0} ms") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::WorkingRtt;

    fn fifo() -> Measured {
        Measured {
            fair_queuing: Fairness::Shared,
            confidence: Some(0.999),
            rate_mbit: Some(10.0),
            base_rtt_ms: Some(20.0),
            working_rtt_ms: Some(WorkingRtt { p50: 900.0, p95: 1150.0 }),
            buffer_ms: Some(1200.0),
            aqm: Some(false),
            ..Measured::default()
        }
    }

    #[test]
    fn grades_follow_the_added_delay() {
        let grades = [0.0, 4.9, 5.0, 29.0, 59.0, 199.0, 399.0, 400.0].map(|added| Grade::of(added).to_string());
        assert_eq!(grades, ["A+", "A+", "A", "A", "B", "C", "D", "F"]);
        assert_eq!(fifo().grade(), Some(Grade::F));
        assert_eq!(Measured::default().grade(), None);
    }

    #[test]
    fn advice_says_what_to_do() {
        assert_eq!(
            fifo().advice("upload", 2),
            "your upload is a FIFO of 1.2 s; put fq_codel or cake in front of it, at 9.5 Mbit/s"
        );
        let one = Measured { fair_queuing: Fairness::Undecided, ..fifo() };
        assert!(one.advice("upload", 1).contains("cannot be told over one path"));
        let fair = Measured { fair_queuing: Fairness::Fair, ..fifo() };
        assert!(fair.advice("download", 2).starts_with("your download is fair"));
    }

    #[test]
    fn what_is_not_known_is_absent() {
        let answer = Answer { server: "192.0.2.1:5210".into(), upload: Some(Measured::default()), ..Answer::default() };
        let json = serde_json::to_value(&answer).unwrap();
        for key in ["idle_rtt_ms", "download", "ended", "lost_path"] {
            assert!(json.get(key).is_none(), "{key}");
        }
        for key in ["rate_mbit", "base_rtt_ms", "loss", "rpm", "buffer_ms", "confidence", "ecn"] {
            assert!(json["upload"].get(key).is_none(), "{key}");
        }
        assert_eq!(json["upload"]["fair_queuing"], "undecided");
        assert!(!answer.text().contains("NaN") && answer.text().contains("ECN not measured"), "{}", answer.text());
    }
}
