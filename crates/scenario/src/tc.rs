//! Queues in `tc`'s own words: `fq_codel limit 1000p target 5ms noecn`, also behind `tc qdisc add dev eth0 root` and as
//! `tc qdisc show` prints them.
//!
//! A word means what it means to `tc`: a bare time is in microseconds, `64kb` is 65 536 bytes, `docsis` is 18 bytes of overhead and 64
//! at least. Words are the queue's parameters by their names, choices and switches (`ecn`, `noecn`); the tables below have the words
//! that `tc` calls otherwise. A word that changes nothing here is accepted. Every other word is refused with what to write instead.
use crate::suggest::{hint, unit_hint, unknown};
use narrows_core::params::{ParamSpec, ParamValue, Unit, split_number};
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Registered;
use narrows_core::{Bytes, Rate, Span};

/// Whether this text is in `tc`'s words, with white space between them, and not `NAME:KEY=VALUE`.
pub(crate) fn is_line(text: &str) -> bool {
    let text = text.trim();
    let Some(space) = text.find(char::is_whitespace) else { return false };
    let rest = text[space..].trim_start();
    !text[..space].contains([':', '=']) && !rest.starts_with([':', '='])
}

/// Reads a queue in `tc`'s words.
///
/// # Errors
/// Names the word, and what to write instead.
pub fn read(line: &str) -> Result<QueueConfig, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let words = without_command(&words);
    let (&kind, words) = words.split_first().ok_or_else(|| format!("{line:?} names no queue"))?;
    let words = without_place(words);
    let dialect = DIALECTS.iter().find(|dialect| dialect.tc == kind.to_ascii_lowercase());
    let ours = dialect.map_or(kind, |dialect| dialect.ours);
    let Some(queue) = QueueConfig::named(ours) else { return Err(unknown::<QueueConfig>(kind)) };
    let mut reader = Reader { kind, dialect, specs: queue.specs(), queue };
    let defaults = dialect.map_or(&[][..], |dialect| dialect.defaults);
    for (parameter, value) in defaults {
        reader.set(parameter, value, parameter)?;
    }
    let mut words = words.iter().copied().peekable();
    while let Some(word) = words.next() {
        reader.word(word, &mut words)?;
    }
    reader.queue.validate().map_err(|error| format!("tc's {kind}: {error}"))?;
    Ok(reader.queue)
}

/// The words after `tc qdisc add dev eth0 root` and the like.
fn without_command<'w, 'a>(words: &'w [&'a str]) -> &'w [&'a str] {
    let skip = |words: &'w [&'a str], is: &dyn Fn(&str) -> bool| {
        let n = words.iter().take_while(|word| is(word)).count();
        &words[n..]
    };
    let words = skip(words, &|word| {
        ["sudo", "tc", "qdisc", "add", "replace", "change"].contains(&word) || word.starts_with('-')
    });
    places(words)
}

/// The words after `dev eth0 parent 1:1 handle 10:`, in any order.
fn places<'w, 'a>(mut words: &'w [&'a str]) -> &'w [&'a str] {
    loop {
        words = match words {
            ["root", rest @ ..] => rest,
            ["dev" | "parent" | "handle" | "refcnt", _, rest @ ..] => rest,
            _ => return words,
        };
    }
}

/// The words after `8001: dev eth0 root refcnt 2`, which `tc qdisc show` prints behind a queue's name.
fn without_place<'w, 'a>(words: &'w [&'a str]) -> &'w [&'a str] {
    match words {
        [handle, rest @ ..] if handle.ends_with(':') => places(rest),
        _ => places(words),
    }
}

/// What a word of `tc` means here.
enum Meaning {
    /// These parameters have these values.
    Sets(&'static [(&'static str, &'static str)]),
    /// The next word is the value of this parameter.
    Value(&'static str),
    /// The link layer adds this many bytes to each packet; framing of cells, and least size, where they change.
    Frames { bytes: u32, atm: Option<&'static str>, mpu: Option<&'static str> },
    /// Nothing, whatever this number of words after it says.
    Nothing(usize),
    /// Nothing, if these words follow; others are refused for a reason.
    Usual(&'static [&'static str], &'static str),
    /// It is refused, with what to write instead.
    Refused(&'static str),
}

/// A queue's words that are not the names of our parameters.
struct Dialect {
    tc: &'static str,
    ours: &'static str,
    /// Values of parameters where `tc` has other defaults.
    defaults: &'static [(&'static str, &'static str)],
    words: &'static [(&'static str, Meaning)],
}

/// A queue while its words are read.
struct Reader<'a> {
    kind: &'a str,
    dialect: Option<&'static Dialect>,
    specs: Vec<ParamSpec>,
    queue: QueueConfig,
}

impl Reader<'_> {
    fn word<'a>(
        &mut self,
        word: &str,
        rest: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>,
    ) -> Result<(), String> {
        let table = self.dialect.map_or(&[][..], |dialect| dialect.words);
        let Some((_, meaning)) = table.iter().find(|(known, _)| *known == word) else { return self.plain(word, rest) };
        let kind = self.kind;
        match meaning {
            Meaning::Sets(values) => {
                for (parameter, value) in *values {
                    self.set(parameter, value, word)?;
                }
            }
            Meaning::Value(parameter) => {
                let text = self.following(word, rest)?;
                self.value(parameter, text, word)?;
            }
            Meaning::Frames { bytes, atm, mpu } => {
                let before = self.queue.get("overhead").and_then(|text| Bytes::parse(&text)).unwrap_or_default();
                self.set("overhead", &(before + Bytes(u64::from(*bytes))).show(), word)?;
                for (parameter, value) in [("atm", atm), ("mpu", mpu)] {
                    if let Some(value) = value {
                        self.set(parameter, value, word)?;
                    }
                }
            }
            Meaning::Nothing(words) => {
                for _ in 0..*words {
                    self.following(word, rest)?;
                }
            }
            Meaning::Usual(usual, reason) => {
                let got: Vec<&str> = rest.by_ref().take(usual.len()).collect();
                if got != *usual {
                    return Err(format!("`{word} {}` of tc's {kind}: {reason}", got.join(" ")));
                }
            }
            Meaning::Refused(reason) => return Err(format!("`{word}` of tc's {kind}: {reason}")),
        }
        Ok(())
    }

    /// A word that is the name, the switch or the choice of a parameter.
    fn plain<'a>(
        &mut self,
        word: &str,
        rest: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>,
    ) -> Result<(), String> {
        let named = |name: &str| self.specs.iter().find(|spec| spec.name == name);
        let off = word.strip_prefix("no").map(|name| name.trim_start_matches(['_', '-']));
        let chooses = |spec: &&ParamSpec| matches!(spec.unit, Unit::Choice(words) if words.contains(&word));
        let switch = |spec: &&ParamSpec| spec.unit == Unit::Switch;
        let (name, value) = match (named(word), off.and_then(named).filter(switch), self.specs.iter().find(chooses)) {
            (Some(spec), ..) if spec.unit == Unit::Switch => {
                let given = rest.next_if(|next| ["true", "false", "on", "off"].contains(next));
                (spec.name, Some(if matches!(given, Some("false" | "off")) { "false" } else { "true" }))
            }
            (Some(spec), ..) => (spec.name, None),
            (None, Some(spec), _) => (spec.name, Some("false")),
            (None, None, Some(spec)) => (spec.name, Some(word)),
            (None, None, None) => return Err(self.unknown(word)),
        };
        match value {
            Some(value) => self.set(name, value, word),
            None => {
                let text = self.following(word, rest)?;
                self.value(name, text, word)
            }
        }
    }

    fn following<'a>(&self, word: &str, rest: &mut impl Iterator<Item = &'a str>) -> Result<&'a str, String> {
        rest.next().ok_or_else(|| format!("`{word}` of tc's {} has no value; allowed: {word} VALUE", self.kind))
    }

    /// Sets a parameter to a value that `tc` reads.
    fn value(&mut self, parameter: &'static str, text: &str, word: &str) -> Result<(), String> {
        let unit = self.specs.iter().find(|spec| spec.name == parameter).map_or(Unit::Number, |spec| spec.unit);
        let is_perturb = (self.queue.name(), parameter) == ("sfq", "perturb");
        if parameter == "step_thresh" && text.ends_with('p') {
            return self.set("step_packets", text.trim_end_matches('p'), word);
        }
        let (value, hint) = match unit {
            // SFQ alone counts seconds.
            Unit::Span if is_perturb => {
                (if text == "0" { Some("off".to_owned()) } else { time(text, "s") }, unit_hint(text, unit))
            }
            Unit::Span => (time(text, "us"), String::new()),
            Unit::Rate => (rate(text), unit_hint(text, unit)),
            Unit::Bytes => (size(text), String::new()),
            Unit::Limit if ["bfifo", "red"].contains(&self.kind) => (size(text), String::new()),
            Unit::Limit => (limit(text), String::new()),
            Unit::Packets | Unit::Count => (Some(text.trim_end_matches(['p', '%']).to_owned()), String::new()),
            _ => (Some(text.trim_end_matches('%').to_owned()), String::new()),
        };
        let refused =
            format!("`{word} {text}` of tc's {}: cannot be {text:?}; allowed: {}{hint}", self.kind, allowed(unit));
        self.set(parameter, &value.ok_or(refused)?, word)
    }

    fn set(&mut self, parameter: &str, value: &str, word: &str) -> Result<(), String> {
        let kind = self.kind;
        self.queue.set(parameter, value).map_err(|error| format!("`{word}` of tc's {kind}: {error}"))
    }

    fn unknown(&self, word: &str) -> String {
        let kind = self.kind;
        if QueueConfig::named(word).is_some() {
            return format!("`{kind} … {word}`: two queues; write a comma between them");
        }
        let table = self.dialect.map_or(&[][..], |dialect| dialect.words);
        let of_table =
            table.iter().filter(|(_, meaning)| !matches!(meaning, Meaning::Refused(_))).map(|(word, _)| *word);
        let choices = self.specs.iter().flat_map(|spec| match spec.unit {
            Unit::Choice(words) if !["sqrt"].contains(&spec.name) => words,
            _ => &[],
        });
        let names: Vec<&str> =
            self.specs.iter().map(|spec| spec.name).chain(choices.copied()).chain(of_table).collect();
        let hint = hint(word, names.iter().copied());
        format!("`{word}` is no word of {kind}; allowed: {}{hint}", names.join(", "))
    }
}

/// The kind of value of a unit, in words of `tc`.
fn allowed(unit: Unit) -> &'static str {
    match unit {
        Unit::Span => "a time such as \"5ms\"; to tc a bare number is microseconds",
        Unit::Rate => "a rate such as \"20mbit\"; to tc a bare number is bits per second",
        Unit::Bytes => "a size such as \"1514\", \"64kb\" (of 1024 bytes each), \"32mb\"",
        _ => "a number such as \"1000\"",
    }
}

/// `5ms`; a bare number is of this unit.
fn time(text: &str, bare: &str) -> Option<String> {
    let (_, unit) = split_number(text)?;
    let text = if unit.is_empty() { format!("{text}{bare}") } else { text.to_owned() };
    Span::parse(&text).map(|span| span.show())
}

/// `20mbit`; a bare number is bits per second.
pub(crate) fn rate(text: &str) -> Option<String> {
    let (_, unit) = split_number(text)?;
    let text = if unit.is_empty() { format!("{text}bit") } else { text.to_owned() };
    Rate::parse(&text).map(|rate| rate.show())
}

/// `64kb`: to `tc` a kilobyte has 1024 bytes, and a kilobit an eighth of that.
pub(crate) fn size(text: &str) -> Option<String> {
    let (number, unit) = split_number(text)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1024.0,
        "m" | "mb" => 1024.0 * 1024.0,
        "g" | "gb" => 1024.0 * 1024.0 * 1024.0,
        "kbit" => 128.0,
        "mbit" => 128.0 * 1024.0,
        "gbit" => 128.0 * 1024.0 * 1024.0,
        _ => return Bytes::parse(text).map(|bytes| bytes.show()),
    };
    let bytes = number * factor;
    (bytes < 1e18).then(|| Bytes(bytes as u64).show())
}

/// A number of packets; a size only where its unit says so.
fn limit(text: &str) -> Option<String> {
    let (_, unit) = split_number(text)?;
    match unit {
        "" | "p" | "bdp" => Some(text.to_owned()),
        _ => size(text),
    }
}

/// A word that frames packets in ATM cells.
const fn atm(bytes: u32) -> Meaning {
    Meaning::Frames { bytes, atm: Some("atm"), mpu: None }
}

/// A word that frames packets in PTM's 64b/65b coding.
const fn ptm(bytes: u32) -> Meaning {
    Meaning::Frames { bytes, atm: Some("ptm"), mpu: None }
}

const NOT_SPLIT: Meaning =
    Meaning::Refused("packets of several segments are always taken apart here; leave it out or write `split-gso`");

const DIALECTS: &[Dialect] = &[
    Dialect { tc: "pfifo", ours: "fifo", defaults: &[], words: &[] },
    // 1000 packets of an Ethernet device.
    Dialect { tc: "bfifo", ours: "fifo", defaults: &[("limit", "1514000B")], words: &[] },
    Dialect {
        tc: "fq_codel",
        ours: "fq_codel",
        defaults: &[],
        words: &[("ce_threshold_selector", Meaning::Refused("every ECN-capable packet is marked; leave it out"))],
    },
    Dialect {
        tc: "fq",
        ours: "fq",
        defaults: &[],
        words: &[
            ("horizon_cap", Meaning::Sets(&[("horizon_drop", "false")])),
            // It concerns packets that have a rate and no departure time.
            ("low_rate_threshold", Meaning::Nothing(1)),
            ("timer_slack", Meaning::Nothing(1)),
            ("offload_horizon", Meaning::Nothing(1)),
            ("bands", Meaning::Usual(&["3"], ONE_BAND)),
            (
                "priomap",
                Meaning::Usual(
                    &["1", "2", "2", "2", "1", "2", "0", "0", "1", "1", "1", "1", "1", "1", "1", "1"],
                    ONE_BAND,
                ),
            ),
            ("weights", Meaning::Usual(&["589824", "196608", "65536"], ONE_BAND)),
            (
                "maxrate",
                Meaning::Refused(
                    "no cap of each flow here; give each flow a first hop of that `rate`, and leave it out",
                ),
            ),
            ("defrate", Meaning::Nothing(1)),
        ],
    },
    Dialect {
        tc: "sfq",
        ours: "sfq",
        defaults: &[],
        words: &[
            ("redflowlimit", RED_IN_SFQ),
            ("min", RED_IN_SFQ),
            ("max", RED_IN_SFQ),
            ("avpkt", RED_IN_SFQ),
            ("burst", RED_IN_SFQ),
            ("probability", RED_IN_SFQ),
            ("ecn", RED_IN_SFQ),
            ("harddrop", RED_IN_SFQ),
        ],
    },
    // `tc` takes a line of 10 Mbit/s where none is given, and says so.
    Dialect { tc: "red", ours: "red", defaults: &[("bandwidth", "10mbit")], words: &[] },
    Dialect {
        tc: "dualpi2",
        ours: "dualpi2",
        defaults: &[],
        words: &[
            ("memlimit", Meaning::Value("memory_limit")),
            ("drop_on_overload", Meaning::Sets(&[("drop_overload", "true")])),
            ("overflow", Meaning::Sets(&[("drop_overload", "false")])),
            ("drop_enqueue", Meaning::Sets(&[("drop_early", "true")])),
            ("drop_dequeue", Meaning::Sets(&[("drop_early", "false")])),
            ("split_gso", Meaning::Nothing(0)),
            ("no_split_gso", NOT_SPLIT),
            ("typical_rtt", FROM_RTT),
            ("max_rtt", FROM_RTT),
        ],
    },
    Dialect { tc: "cake", ours: "cake", defaults: &[], words: CAKE },
];

const ONE_BAND: &str = "all packets are of one band here; leave it out";
const RED_IN_SFQ: Meaning = Meaning::Refused("no RED within SFQ here; leave it out, or write the queue `red`");
const FROM_RTT: Meaning = Meaning::Refused("write what tc computes from it: target, tupdate, alpha and beta");

/// CAKE's words (tc-cake(8)): names of round-trip times, of link layers, and of switches.
const CAKE: &[(&str, Meaning)] = &[
    ("atm", Meaning::Sets(&[("atm", "atm")])),
    ("unlimited", Meaning::Sets(&[("bandwidth", "auto")])),
    ("autorate-ingress", Meaning::Refused("the rate is not estimated here; write `bandwidth RATE`")),
    ("datacentre", Meaning::Sets(&[("rtt", "100us")])),
    ("lan", Meaning::Sets(&[("rtt", "1ms")])),
    ("metro", Meaning::Sets(&[("rtt", "10ms")])),
    ("regional", Meaning::Sets(&[("rtt", "30ms")])),
    ("internet", Meaning::Sets(&[("rtt", "100ms")])),
    ("oceanic", Meaning::Sets(&[("rtt", "300ms")])),
    ("satellite", Meaning::Sets(&[("rtt", "1s")])),
    ("interplanetary", Meaning::Sets(&[("rtt", "1000s")])),
    ("diffserv", Meaning::Sets(&[("diffserv", "diffserv4")])),
    ("ack-filter", Meaning::Sets(&[("ack_filter", "on")])),
    ("ack-filter-aggressive", Meaning::Sets(&[("ack_filter", "aggressive")])),
    ("no-ack-filter", Meaning::Sets(&[("ack_filter", "off")])),
    ("egress", Meaning::Sets(&[("ingress", "false")])),
    ("memlimit", Meaning::Value("memory_limit")),
    // The hosts here are the ones behind the translation.
    ("nat", Meaning::Nothing(0)),
    ("nonat", Meaning::Nothing(0)),
    ("split-gso", Meaning::Nothing(0)),
    ("no-split-gso", NOT_SPLIT),
    ("fwmark", Meaning::Refused("packets have no firewall marks here; `dscp` of a flow chooses its tin")),
    ("raw", Meaning::Sets(&[("overhead", "0B"), ("atm", "noatm")])),
    ("conservative", Meaning::Sets(&[("overhead", "48B"), ("atm", "atm")])),
    ("ipoa-vcmux", atm(8)),
    ("ipoa-llcsnap", atm(16)),
    ("bridged-vcmux", atm(24)),
    ("bridged-llcsnap", atm(32)),
    ("pppoa-vcmux", atm(10)),
    ("pppoa-llc", atm(14)),
    ("pppoe-vcmux", atm(32)),
    ("pppoe-llcsnap", atm(40)),
    ("bridged-ptm", ptm(22)),
    ("pppoe-ptm", ptm(30)),
    ("ethernet", Meaning::Frames { bytes: 38, atm: None, mpu: Some("84B") }),
    ("ether-vlan", Meaning::Frames { bytes: 4, atm: None, mpu: None }),
    ("docsis", Meaning::Frames { bytes: 18, atm: Some("noatm"), mpu: Some("64B") }),
    // `tc` itself ignores it.
    ("via-ethernet", Meaning::Nothing(0)),
];
