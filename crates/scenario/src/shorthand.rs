//! The command line's short forms: `fifo:limit=100p,fq_codel`, `3xcubic,35xthin:interval=30ms`, `20mbit`, `50ms`.
//!
//! Commas separate both items and their parameters: a piece that begins with `word=` continues the item before it. Every
//! function takes the flag's name, for its messages. A queue may also be in `tc`'s words, `fq_codel limit 1000p noecn`: see [`tc`].
use crate::error::ScenarioError;
use crate::forms::effects;
use crate::model::{Flow, RateSpec};
use crate::parse::{default_controller, preset_transport};
use crate::preset::Preset;
use crate::suggest::{hint, unit_hint, unknown, unknown_among};
use crate::tc;
use crate::trace::{self, Traces};
use crate::traffic::Traffic;
use crate::transport::Transport;
use narrows_core::congestion::ControllerConfig;
use narrows_core::netem::Loss;
use narrows_core::params::{ParamSpec, ParamValue, Unit, split_number};
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Registered;
use narrows_core::{Rate, Span, Time};

/// Flows of one kind, as `--flows` names them.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowGroup {
    /// Unique in the list: the controller's or the traffic's name, with a number if it occurs again.
    pub name: String,
    /// Number of flows.
    pub count: u32,
    /// Congestion control; `None` for UDP.
    pub controller: Option<ControllerConfig>,
    /// The traffic that it sends.
    pub traffic: Traffic,
    /// Its transport protocol.
    pub transport: Transport,
}

impl FlowGroup {
    /// These flows on a route, from the start of the run to `stop`.
    pub fn over(self, route: Vec<usize>, rtt: Span, stop: Time) -> Flow {
        let FlowGroup { name, count, controller, traffic, transport } = self;
        Flow { count, controller, traffic, transport, route, ..Flow::new(name, rtt, stop) }
    }
}

/// `fifo:limit=100p,flows=3,fq_codel` → fifo with two parameters, fq_codel with none.
pub fn queues(flag: &str, text: &str) -> Result<Vec<QueueConfig>, ScenarioError> {
    let queue = |piece: &Piece<'_>| {
        let mut queue = match line_of_tc::<QueueConfig>(piece.name) {
            Some(read) => read.map_err(|problem| ScenarioError::new(flag, problem))?,
            None => known::<QueueConfig>(flag, piece.name)?,
        };
        for &(name, value) in &piece.params {
            assign(flag, &mut [&mut queue], name, value)?;
        }
        checked(flag, &queue)?;
        Ok(queue)
    };
    let pieces = pieces(flag, text, QueueConfig::names())?;
    // `cake fq_codel` is two queues.
    let apart = pieces.into_iter().flat_map(|piece| {
        let words: Vec<&str> = piece.name.split_whitespace().collect();
        if words.iter().all(|word| QueueConfig::named(word).is_some()) {
            let mut all: Vec<Piece<'_>> = words.into_iter().map(Piece::named).collect();
            all.iter_mut().next_back().into_iter().for_each(|last| last.params.clone_from(&piece.params));
            all
        } else {
            vec![piece]
        }
    });
    apart.collect::<Vec<_>>().iter().map(queue).collect()
}

/// A queue in `tc`'s words; `None` for other kinds and for a plain name.
pub(crate) fn line_of_tc<K: Registered>(text: &str) -> Option<Result<K, String>> {
    if K::WHAT != QueueConfig::WHAT || !tc::is_line(text) {
        return None;
    }
    let same = |queue: QueueConfig| {
        let mut same = K::named(queue.name())?;
        for spec in queue.specs() {
            same.set(spec.name, &queue.get(spec.name)?).ok()?;
        }
        Some(same)
    };
    Some(tc::read(text).and_then(|queue| same(queue).ok_or_else(|| format!("{text:?} is no {}", K::WHAT))))
}

/// `3xcubic,1xnew_reno,cbr:rate=5mbit` → groups of flows.
///
/// A name is a controller's, for bulk TCP, or a kind of traffic on a transport that can carry it (CUBIC over TCP unless
/// `controller=` or `transport=` says otherwise). Parameters are those of the traffic, the controller and the transport.
pub fn flows(flag: &str, text: &str) -> Result<Vec<FlowGroup>, ScenarioError> {
    let names: Vec<&str> =
        ControllerConfig::names().iter().chain(Traffic::NAMES).chain(Traffic::presets()).copied().collect();
    let mut groups: Vec<FlowGroup> = Vec::new();
    let pieces = pieces(flag, text, &names)?.into_iter().map(|piece| apart(flag, piece));
    for piece in pieces.collect::<Result<Vec<_>, _>>()?.into_iter().flatten() {
        let mut group = group(flag, &piece, &names)?;
        let base = group.name.clone();
        let taken = |name: &str| groups.iter().any(|other| other.name == name);
        let numbered = (2..).map(|n| format!("{base}-{n}"));
        group.name = std::iter::once(base.clone()).chain(numbered).find(|name| !taken(name)).unwrap_or(base);
        groups.push(group);
    }
    Ok(groups)
}

/// A rate above zero: `20mbit`.
pub fn rate(flag: &str, text: &str) -> Result<Rate, ScenarioError> {
    let (low, high) = crate::limits::RATES;
    let rate = value::<Rate>(flag, text)?;
    if !(low..=high).contains(&rate) {
        return Err(ScenarioError::new(flag, format!("a rate cannot be {text:?}; allowed: {low} to {high}")));
    }
    Ok(rate)
}

/// A rate above zero, or a trace: `20mbit`, `trace:lte.mahi` (a file), `trace:lte` (a model's).
pub fn rate_or_trace(flag: &str, text: &str, traces: &dyn Traces) -> Result<RateSpec, ScenarioError> {
    match trace_name(text) {
        Some(name) => trace::rate(name, traces, |problem| ScenarioError::new(flag, problem)),
        None => rate(flag, text).map(RateSpec::constant),
    }
}

/// The name of the trace in `trace:NAME`.
pub(crate) fn trace_name(text: &str) -> Option<&str> {
    text.trim().strip_prefix("trace:").map(str::trim)
}

/// The length of a run: `60s`, or a number of seconds as for iperf3's `-t`.
pub fn duration(flag: &str, text: &str) -> Result<Span, ScenarioError> {
    let seconds = split_number(text).is_some_and(|(_, unit)| unit.is_empty());
    span(flag, &if seconds { format!("{}s", text.trim()) } else { text.to_owned() })
}

/// Packets that are lost: `0.01`, `1%`, `gemodel 1% 10%`, or `trace:losses.csv` (a file).
pub fn loss(flag: &str, text: &str, traces: &dyn Traces) -> Result<Loss, ScenarioError> {
    if let Some(name) = trace_name(text) {
        return trace::losses(name, traces, |problem| ScenarioError::new(flag, problem));
    }
    effects::read(text).ok_or_else(|| {
        ScenarioError::new(flag, format!("cannot be {text:?}; allowed: {}", <Loss as effects::Worded>::ALLOWED))
    })
}

/// A length of time: `50ms`.
pub fn span(flag: &str, text: &str) -> Result<Span, ScenarioError> {
    value(flag, text)
}

/// Any value with a unit.
pub fn value<T: ParamValue>(flag: &str, text: &str) -> Result<T, ScenarioError> {
    T::parse(text).ok_or_else(|| {
        let hint = unit_hint(text, T::unit());
        ScenarioError::new(flag, format!("cannot be {text:?}; allowed: {}{hint}", T::allowed()))
    })
}

/// A name with its parameters, as text. The name may be several words: a queue in `tc`'s words, or flows without commas between them.
struct Piece<'a> {
    name: &'a str,
    params: Vec<(&'a str, &'a str)>,
}

impl<'a> Piece<'a> {
    fn named(name: &'a str) -> Piece<'a> {
        Piece { name, params: Vec::new() }
    }
}

/// A name and its parameters, as text.
pub(crate) type Named<'a> = (&'a str, Vec<(&'a str, &'a str)>);

/// `fifo:limit=100p,flows=3` → the name and the parameters.
pub(crate) fn named<'a>(place: &str, text: &'a str, names: &[&str]) -> Result<Named<'a>, ScenarioError> {
    match <[Piece<'_>; 1]>::try_from(pieces(place, text, names)?) {
        Ok([piece]) => {
            let mut words = piece.name.split_whitespace();
            let name = words.next().unwrap_or_default();
            Ok((name, words_of_tc(place, words)?.into_iter().chain(piece.params).collect()))
        }
        Err(_) => {
            let names = names.join(", ");
            Err(ScenarioError::new(place, format!("{text:?} is more than one; allowed: one of {names}")))
        }
    }
}

fn pieces<'a>(flag: &str, text: &'a str, names: &[&str]) -> Result<Vec<Piece<'a>>, ScenarioError> {
    let fail = |message: String| Err(ScenarioError::new(flag, message));
    let mut pieces: Vec<Piece<'a>> = Vec::new();
    for part in text.split(',') {
        let part = part.trim();
        if tc::is_line(part) {
            pieces.push(Piece::named(part));
            continue;
        }
        let (name, param) = match (part.find(':'), part.find('=')) {
            (Some(colon), equals) if equals.is_none_or(|equals| colon < equals) => {
                (Some(&part[..colon]), Some(&part[colon + 1..]))
            }
            (_, Some(_)) => (None, Some(part)),
            (_, None) => (Some(part), None),
        };
        if let Some(name) = name.map(str::trim) {
            if name.is_empty() {
                return fail(format!("a name is missing in {text:?}; allowed: {}", names.join(", ")));
            }
            pieces.push(Piece::named(name));
        }
        let Some(param) = param else { continue };
        let Some((key, value)) = param.split_once('=') else {
            return fail(format!("{param:?} in {part:?} is not a parameter; allowed: name=value"));
        };
        let Some(piece) = pieces.last_mut() else {
            return fail(format!(
                "{part:?} is a parameter without a name before it; allowed first: {}",
                names.join(", ")
            ));
        };
        piece.params.push((key.trim(), value.trim()));
    }
    Ok(pieces)
}

/// Parameters in the syntax of `tc`: `limit 100 target 5ms noecn`.
fn words_of_tc<'a>(
    flag: &str,
    mut words: impl Iterator<Item = &'a str>,
) -> Result<Vec<(&'a str, &'a str)>, ScenarioError> {
    let mut params = Vec::new();
    while let Some(word) = words.next() {
        params.push(match word {
            "ecn" => ("ecn", "true"),
            "noecn" => ("ecn", "false"),
            key => match words.next() {
                Some(value) => (key, value),
                None => return Err(ScenarioError::new(flag, format!("{key:?} has no value; allowed: {key} VALUE"))),
            },
        });
    }
    Ok(params)
}

/// Flows without commas between them, `2 cubic call`, and parameters as `tc` writes them, `cubic beta 0.8`.
fn apart<'a>(flag: &str, piece: Piece<'a>) -> Result<Vec<Piece<'a>>, ScenarioError> {
    let mut all: Vec<Piece<'a>> = Vec::new();
    let mut rest = piece.name;
    let is_name = |word: &str| {
        let (_, name) = counted(flag, word).unwrap_or((1, word));
        ControllerConfig::named(name).is_some() || Traffic::named(name).is_some()
    };
    let split = |text: &'a str| {
        text.split_once(char::is_whitespace).map_or((text, ""), |(word, rest)| (word, rest.trim_start()))
    };
    while !rest.is_empty() {
        let (word, after) = split(rest);
        let (next, behind) = split(after);
        let digits = word.strip_suffix('x').unwrap_or(word);
        let counts = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let param = match word {
            "ecn" => Some(("ecn", "true", after)),
            "noecn" => Some(("ecn", "false", after)),
            _ if next.is_empty() || is_name(word) || is_name(next) => None,
            _ => Some((word, next, behind)),
        };
        rest = match (param, all.last_mut()) {
            _ if counts && !next.is_empty() => {
                // `2 cubic` is one piece; with an `x` between, that is left out.
                let behind = if next == "x" { split(behind).1 } else { behind };
                let end = rest.len() - behind.len();
                all.push(Piece::named(rest[..end].trim_end()));
                behind
            }
            (Some((key, value, behind)), Some(last)) => {
                last.params.push((key, value));
                behind
            }
            _ => {
                all.push(Piece::named(word));
                after
            }
        };
    }
    if let Some(last) = all.last_mut() {
        last.params.extend(piece.params);
    }
    Ok(all)
}

/// `3xcubic`, `3cubic` or `3 cubic` → 3, `cubic`.
///
/// # Errors
/// A number that is out of range.
pub fn counted<'a>(flag: &str, text: &'a str) -> Result<(u32, &'a str), ScenarioError> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let name = text[digits..].trim_start();
    let name = name.strip_prefix('x').map_or(name, str::trim_start);
    match Some(name).filter(|name| !name.is_empty()) {
        Some(name) if digits > 0 => {
            let most = crate::limits::FLOWS;
            let count = text[..digits].parse::<u32>().ok().filter(|&n| n > 0 && u64::from(n) <= most);
            let count = count.ok_or_else(|| {
                ScenarioError::new(
                    flag,
                    format!("a number of flows cannot be {}; allowed: 1 to {most}", &text[..digits]),
                )
            })?;
            Ok((count, name))
        }
        _ => Ok((1, text)),
    }
}

fn group(flag: &str, piece: &Piece<'_>, names: &[&str]) -> Result<FlowGroup, ScenarioError> {
    let (count, name) = counted(flag, piece.name)?;
    let chosen = |key: &str| piece.params.iter().rev().find(|param| param.0 == key).map(|param| param.1);
    let named = ControllerConfig::named(name);
    let preset = if named.is_some() { chosen(Traffic::WHAT).and_then(Preset::named) } else { Preset::named(name) };
    let mut traffic = match (&named, Traffic::named(name)) {
        (Some(_), _) => Traffic::Bulk(Default::default()),
        (None, Some(traffic)) => traffic,
        (None, None) => {
            return Err(ScenarioError::new(flag, unknown_among("controller or traffic", name, names)));
        }
    };
    if let Some(kind) = chosen(Traffic::WHAT).filter(|_| named.is_some()) {
        traffic = known(flag, kind)?;
    }
    let controller = match (named, chosen(ControllerConfig::WHAT)) {
        (None, Some(kind)) => Some(known(flag, kind)?),
        (named, _) => named,
    };
    let mut transport = match chosen(Transport::WHAT) {
        Some(kind) => known(flag, kind)?,
        None => preset_transport(preset, &traffic, controller.as_ref()),
    };
    if !traffic.carriers().contains(&transport.name()) {
        let (traffic, transport, carriers) = (traffic.name(), transport.name(), traffic.carriers().join(", "));
        let message = format!("traffic \"{traffic}\" cannot be carried by \"{transport}\"; allowed: {carriers}");
        return Err(ScenarioError::new(flag, message));
    }
    let mut controller = controller.or_else(|| default_controller(&transport));
    if controller.is_some() && !transport.is_controlled() {
        let message = format!("transport \"{}\" has no congestion control; allowed: tcp, quic", transport.name());
        return Err(ScenarioError::new(flag, message));
    }
    let choosers: &[&str] = match ControllerConfig::named(name) {
        Some(_) => &[Traffic::WHAT, Transport::WHAT],
        None => &[ControllerConfig::WHAT, Transport::WHAT],
    };
    for &(key, value) in piece.params.iter().filter(|param| !choosers.contains(&param.0)) {
        let mut holders: Vec<&mut dyn Holder> = vec![&mut traffic];
        holders.extend(controller.as_mut().map(|controller| controller as &mut dyn Holder));
        holders.push(&mut transport);
        assign(flag, &mut holders, key, value)?;
    }
    checked(flag, &traffic)?;
    checked(flag, &transport)?;
    controller.iter().try_for_each(|controller| checked(flag, controller))?;
    // The name in the registry's spelling, whichever the user chose.
    let name = match preset {
        Some(preset) if ControllerConfig::named(name).is_none() => preset.name.to_owned(),
        _ => narrows_core::registry::spelled(name),
    };
    Ok(FlowGroup { name, count, controller, traffic, transport })
}

fn known<K: Registered>(flag: &str, name: &str) -> Result<K, ScenarioError> {
    K::named(name).ok_or_else(|| ScenarioError::new(flag, unknown::<K>(name)))
}

fn checked<K: Registered>(flag: &str, kind: &K) -> Result<(), ScenarioError> {
    kind.validate().map_err(|error| ScenarioError::new(flag, format!("{} \"{}\": {error}", K::WHAT, kind.name())))
}

/// An item that accepts parameters.
trait Holder {
    fn title(&self) -> String;
    fn all(&self) -> Vec<ParamSpec>;
    fn put(&mut self, name: &str, text: &str) -> Result<(), narrows_core::params::ParamError>;
}

impl<K: Registered> Holder for K {
    fn title(&self) -> String {
        format!("{} \"{}\"", K::WHAT, self.name())
    }
    fn all(&self) -> Vec<ParamSpec> {
        self.specs()
    }
    fn put(&mut self, name: &str, text: &str) -> Result<(), narrows_core::params::ParamError> {
        self.set(name, text)
    }
}

/// Sets a parameter on the first item that has one of this name.
fn assign(flag: &str, holders: &mut [&mut dyn Holder], name: &str, text: &str) -> Result<(), ScenarioError> {
    let specs: Vec<Vec<ParamSpec>> = holders.iter().map(|holder| holder.all()).collect();
    let found = specs.iter().enumerate().find_map(|(i, specs)| Some((i, specs.iter().find(|s| s.name == name)?)));
    let Some((i, spec)) = found else {
        let names: Vec<&str> = specs.iter().flatten().map(|spec| spec.name).collect();
        let titles = holders.iter().map(|holder| holder.title()).collect::<Vec<_>>().join(", ");
        let allowed = if names.is_empty() { "none".into() } else { names.join(", ") };
        let hint = hint(name, names);
        let message = format!("unknown parameter {name:?} of {titles}; allowed: {allowed}{hint}");
        return Err(ScenarioError::new(flag, message));
    };
    let holder = &mut holders[i];
    holder.put(name, switch(spec.unit, text)).map_err(|error| {
        let hint = match spec.unit.choices() {
            Some(words) => hint(text, words.iter().copied()),
            None => unit_hint(text, spec.unit),
        };
        let message = format!("{name} of {} cannot be {text:?}; allowed: {}{hint}", holder.title(), error.allowed);
        ScenarioError::new(flag, message)
    })
}

/// `ecn=on` in the syntax of `tc` and `ip`.
fn switch(unit: Unit, text: &str) -> &str {
    match (unit, text) {
        (Unit::Switch, "on") => "true",
        (Unit::Switch, "off") => "false",
        _ => text,
    }
}
