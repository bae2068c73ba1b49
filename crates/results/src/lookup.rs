//! Finds a figure in a summary by its path, whatever the summary's structure.
//!
//! `hop.NAME.KEY` and `flow.NAME.KEY` are figures of a hop, and of a flow or a group of flows; `NAME.KEY` is either; another path
//! begins at the top (`fairness.jain`). The rates and counts of a group are its flows' [sums](figures::SUMS), and `bulk.goodput_per_flow`
//! is the mean; other figures of a group are those of its flows. A key may leave out its unit: `rtt.p99` for `rtt_ms.p99`. `application.` may be left out, too:
//! `call.voice.mos`; and `delay` is the application's, of datagrams or messages: `call.delay.p99`. `app` and `app.up` are all flows
//! whose names continue after a dot, unless a flow or a group has that name. A new key of the summary is found
//! without a change here; [`crate::figure`] says what each is.
use crate::figures::flow_group;
use crate::{Summary, figures};
use narrows_scenario::expect::UNITS;
use narrows_scenario::hint;
use serde_json::Value;

/// A figure that was found.
#[derive(Clone, PartialEq, Debug)]
pub struct Found {
    /// Its key in the summary, with the unit: `rtt_ms.p99`.
    pub key: String,
    /// Its values, each with the name of the hop, flow or group (empty for the run): one, or one per flow of a group. Empty if the run
    /// lacks the figure.
    pub values: Vec<(String, f64)>,
}

/// A summary in which figures are looked up.
#[derive(Clone, Debug)]
pub struct Lookup(Value);

impl Lookup {
    /// Prepares a summary for look-ups.
    pub fn of(summary: &Summary) -> Lookup {
        Lookup(serde_json::to_value(summary).unwrap_or_default())
    }

    /// The figure at this path.
    ///
    /// # Errors
    /// The path leads nowhere; the message lists the figures that exist.
    pub fn find(&self, path: &str) -> Result<Found, String> {
        self.find_with(path, &|part| part.of_group())
    }

    /// The figure at this path of each flow, also where a group's figure is their sum or mean.
    ///
    /// # Errors
    /// As [`Lookup::find`].
    pub fn find_each(&self, path: &str) -> Result<Found, String> {
        self.find_with(path, &|part| part.find())
    }

    fn find_with(&self, path: &str, of: &dyn Fn(&Part<'_>) -> Result<Found, String>) -> Result<Found, String> {
        let path = path.trim();
        let (lists, rest): (&[&str], &str) = match path.split_once('.') {
            Some(("hop", rest)) => (&["hops"], rest),
            Some(("flow", rest)) => (&["flows"], rest),
            _ => (&["hops", "flows"], path),
        };
        let matches: Vec<Part<'_>> = lists.iter().filter_map(|list| self.part(list, rest)).collect();
        let found: Vec<Result<Found, String>> = matches.iter().map(of).collect();
        let has_values = |found: &&Result<Found, String>| found.as_ref().is_ok_and(|found| !found.values.is_empty());
        if found.iter().filter(has_values).count() > 1 {
            let name = &matches[0].name;
            return Err(format!("{name:?} is a hop and a flow; allowed: hop.{rest} or flow.{rest}"));
        }
        // A value wins over an error, and an error over a figure that the run lacks.
        let best = found.iter().find(has_values).or_else(|| found.iter().find(|found| found.is_err()));
        best.or(found.first()).cloned().unwrap_or_else(|| self.of_run(path))
    }

    /// The items that a path begins with: of the longest name that fits.
    fn part<'a>(&'a self, list: &str, path: &'a str) -> Option<Part<'a>> {
        let items = self.0[list].as_array()?;
        let is_flow = list == "flows";
        let rest = |name: &str| path.strip_prefix(name)?.strip_prefix('.');
        let names = items.iter().filter_map(|item| item["name"].as_str());
        let own = names.clone().flat_map(|name| [name, if is_flow { flow_group(name) } else { name }]);
        let own = own.filter(|name| rest(name).is_some()).max_by_key(|name| name.len());
        // A program's flows have names in steps: `app.up.udp` is also `app.up` and `app`.
        let is_among = |of: &str, name: &str| of.strip_prefix(name).is_some_and(|more| more.starts_with('.'));
        let wider = names.filter(|_| is_flow).flat_map(|name| name.match_indices('.').map(move |(at, _)| &name[..at]));
        let wider = || wider.filter(|name| rest(name).is_some()).max_by_key(|name| name.len());
        let name = own.or_else(wider)?;
        let is_meant = |item: &&Value| {
            item["name"].as_str().is_some_and(|of| match own {
                Some(_) => of == name || (is_flow && flow_group(of) == name),
                None => is_among(of, name),
            })
        };
        let setup = self.0["setup"][list].as_array().into_iter().flatten();
        Some(Part {
            name: name.to_owned(),
            key: rest(name)?,
            is_flow,
            items: items.iter().filter(is_meant).collect(),
            setup: setup
                .filter(|part| part["name"].as_str().is_some_and(|of| of == name || of == flow_group(name)))
                .collect(),
        })
    }

    /// A figure of the run as a whole.
    fn of_run(&self, path: &str) -> Result<Found, String> {
        match at(&self.0, path) {
            Some((key, Value::Number(number))) => {
                Ok(Found { key, values: number.as_f64().map(|number| (String::new(), number)).into_iter().collect() })
            }
            Some((key, Value::Object(_))) => {
                Err(format!("{path:?} is several figures; allowed: {}", within(&self.0, &key)))
            }
            _ => {
                let names = |list: &str| {
                    let names = self.0[list].as_array().into_iter().flatten().filter_map(|item| item["name"].as_str());
                    let mut names: Vec<String> = names.map(|name| flow_group(name).to_owned()).collect();
                    names.dedup();
                    names
                };
                let (hops, flows) = (names("hops"), names("flows"));
                let word = path.strip_prefix("hop.").or(path.strip_prefix("flow.")).unwrap_or(path);
                let word = word.split('.').next().unwrap_or_default();
                let hint = hint(word, hops.iter().chain(&flows).map(String::as_str).chain(["fairness"]));
                Err(format!(
                    "there is no hop, flow or figure {word:?}; allowed: NAME.FIGURE of the hops {} and the flows {}, fairness.jain{hint}",
                    first(&hops),
                    first(&flows)
                ))
            }
        }
    }
}

/// A hop or some flows, and the key to look up in them.
struct Part<'a> {
    name: String,
    key: &'a str,
    is_flow: bool,
    items: Vec<&'a Value>,
    setup: Vec<&'a Value>,
}

impl Part<'_> {
    /// The figure of a group as one, if it is a sum or a mean.
    fn of_group(&self) -> Result<Found, String> {
        if let Some(rate) = figures::meant_per_flow(self.key).filter(|_| self.is_flow) {
            let found =
                Part { key: rate, name: self.name.clone(), items: self.items.clone(), setup: Vec::new(), ..*self }
                    .find()?;
            let (count, key) = (found.values.len().max(1), figures::per_flow(rate).unwrap_or(found.key));
            return Ok(Found { key, values: self.together(&found.values, count) });
        }
        let found = self.find()?;
        if self.is_flow && figures::SUMS.contains(&found.key.as_str()) {
            return Ok(Found { values: self.together(&found.values, 1), ..found });
        }
        Ok(found)
    }

    /// The group's figure: the sum of the values divided by `by`; empty without values.
    fn together(&self, values: &[(String, f64)], by: usize) -> Vec<(String, f64)> {
        let sum: f64 = values.iter().map(|(_, value)| value).sum();
        values.first().map(|_| (self.name.clone(), sum / by as f64)).into_iter().collect()
    }

    fn find(&self) -> Result<Found, String> {
        let (mut key, mut values, mut several) = (None, Vec::new(), None);
        for item in self.items.iter().chain(&self.setup) {
            match figure(item, self.key) {
                Some((known, Value::Number(number))) => {
                    let name = item["name"].as_str().unwrap_or_default().to_owned();
                    values.extend(number.as_f64().map(|number| (name, number)));
                    key = Some(known);
                }
                Some((known, Value::Object(_))) => several = Some(within(item, &known)),
                // There is such a figure, but this run lacks it.
                Some((known, Value::Null)) => key = key.or(Some(known)),
                _ => {}
            }
        }
        if let (Some(key), None) = (key, &several) {
            return Ok(Found { key, values });
        }
        if let Some(allowed) = several {
            return Err(format!("{:?} of {:?} is several figures; allowed: {allowed}", self.key, self.name));
        }
        let all = self.items.iter().flat_map(|item| figures::flat(item));
        let mut known: Vec<String> = all.filter(|(_, figure)| figure.number().is_some()).map(|(key, _)| key).collect();
        if self.is_flow {
            known.extend(figures::SUMS.iter().filter_map(|key| figures::per_flow(key)));
        }
        known.sort_by(|a, b| figures::order(a, b));
        known.dedup();
        let short = |name: &String| name.split('.').map(without_unit).collect::<Vec<_>>().join(".");
        let plain: Vec<String> = known.iter().map(short).collect();
        let hint = hint(self.key, plain.iter().map(String::as_str));
        Err(format!("{:?} has no figure {:?}; allowed: {}{hint}", self.name, self.key, known.join(", ")))
    }
}

/// The value at a path of a hop or a flow, or of the flow's application.
fn figure<'a>(item: &'a Value, path: &str) -> Option<(String, &'a Value)> {
    let of_application = |path: &str| {
        let (key, value) = at(item.get("application").filter(|part| part.is_object())?, path)?;
        Some((format!("application.{key}"), value))
    };
    let delay = || {
        let rest = path.strip_prefix("delay_ms").or(path.strip_prefix("delay"))?;
        let rest = Some(rest).filter(|rest| rest.is_empty() || rest.starts_with('.'))?;
        let mut kinds = DELAYS.iter().filter_map(|kind| of_application(&format!("{kind}{rest}"))).peekable();
        let first = kinds.peek().cloned();
        kinds.find(|(_, value)| !value.is_null()).or(first)
    };
    at(item, path).or_else(|| of_application(path)).or_else(delay)
}

/// The delays that an application's user feels: of datagrams, and of messages.
const DELAYS: [&str; 2] = ["one_way_ms", "messages.delay_ms"];

/// The value at a path, with its whole key; null where the path leads into a figure that the run lacks.
fn at<'a>(value: &'a Value, path: &str) -> Option<(String, &'a Value)> {
    let (mut keys, mut value) = (Vec::new(), value);
    for word in path.split('.') {
        if value.is_null() {
            keys.push(word);
            continue;
        }
        let map = value.as_object()?;
        let key = if map.contains_key(word) { word } else { map.keys().find(|key| without_unit(key) == word)? };
        keys.push(key);
        value = map.get(key)?;
    }
    Some((keys.join("."), value))
}

/// A key without its unit: `goodput` for `goodput_mbit`.
pub fn without_unit(key: &str) -> &str {
    UNITS.iter().find_map(|(unit, _)| key.strip_suffix(unit)).unwrap_or(key)
}

/// The figures within an object.
fn within(value: &Value, key: &str) -> String {
    let inner = at(value, key).map(|(_, inner)| figures::flat(inner)).unwrap_or_default();
    let mut names: Vec<String> = inner.into_keys().map(|name| format!("{key}.{name}")).collect();
    names.sort_by(|a, b| figures::order(a, b));
    names.join(", ")
}

/// The first names of a list.
fn first(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(LISTED).map(String::as_str).collect();
    match names.len().saturating_sub(LISTED) {
        0 if names.is_empty() => "(none)".to_owned(),
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Maximum number of names in a message.
const LISTED: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;
    use crate::setup::{Fact, PartSetup, Setup};
    use crate::summary::{Application, FlowSummary, HopSummary, Messages, Quantiles, RttQuantiles, Voice};

    fn lookup() -> Lookup {
        Lookup::of(&summary())
    }

    fn summary() -> Summary {
        let flow = |name: &str, goodput_mbit: f64| FlowSummary {
            name: name.to_owned(),
            goodput_mbit,
            retransmits: Some(0),
            rtt_ms: Some(RttQuantiles { p99: goodput_mbit * 10.0, ..RttQuantiles::default() }),
            ..FlowSummary::default()
        };
        let hop = |name: &str| HopSummary {
            name: name.to_owned(),
            utilisation: 0.9,
            sojourn_ms: Some(Quantiles { p99: 7.0, ..Quantiles::default() }),
            ..HopSummary::default()
        };
        let rtt = [("base_rtt_ms".to_owned(), Fact::Number(40.0))].into();
        Summary {
            hops: vec![hop("link"), hop("link.slow"), hop("both")],
            flows: vec![flow("bulk.0", 1.0), flow("bulk.1", 2.0), flow("both", 3.0)],
            setup: Some(Setup { hops: vec![], flows: vec![PartSetup { name: "bulk".to_owned(), values: rtt }] }),
            ..Summary::default()
        }
    }

    fn values(path: &str) -> (String, Vec<f64>) {
        let found = lookup().find(path).unwrap_or_else(|error| panic!("{path}: {error}"));
        (found.key, found.values.into_iter().map(|(_, value)| value).collect())
    }

    #[test]
    fn an_applications_figures_need_no_prefix() {
        let delay = |p99: f64| Quantiles { p99, ..Quantiles::default() };
        let voice = Voice { mos: 4.2, ..Voice::default() };
        let call = Application { one_way_ms: Some(delay(18.0)), voice: Some(voice), ..Application::default() };
        let thin = Application {
            messages: Some(Messages { delay_ms: delay(31.0), ..Messages::default() }),
            ..Application::default()
        };
        let flow = |name: &str, application: Option<Application>| FlowSummary {
            name: name.to_owned(),
            application,
            ..FlowSummary::default()
        };
        let flows = vec![flow("call", Some(call)), flow("thin", Some(thin)), flow("bulk", None)];
        let lookup = Lookup::of(&Summary { flows, ..Summary::default() });
        let value = |path: &str| {
            let found = lookup.find(path).unwrap_or_else(|error| panic!("{path}: {error}"));
            (found.key, found.values.first().map(|(_, value)| *value))
        };
        assert_eq!(value("call.delay.p99"), ("application.one_way_ms.p99".to_owned(), Some(18.0)));
        assert_eq!(value("thin.delay.p99"), ("application.messages.delay_ms.p99".to_owned(), Some(31.0)));
        assert_eq!(value("call.voice.mos"), ("application.voice.mos".to_owned(), Some(4.2)));
        assert_eq!(value("call.application.one_way.p99").1, Some(18.0));
        assert_eq!(value("thin.voice.mos").1, None, "it is no call");
        assert!(lookup.find("bulk.delay.p99").is_err_and(|error| error.contains("has no figure")));
    }

    #[test]
    fn a_path_is_a_name_and_a_key() {
        assert_eq!(values("flow.bulk.goodput_mbit"), ("goodput_mbit".to_owned(), vec![3.0]));
        assert_eq!(values("bulk.goodput"), ("goodput_mbit".to_owned(), vec![3.0]));
        assert_eq!(values("bulk.rtt.mean"), ("rtt_ms.mean".to_owned(), vec![0.0, 0.0]));
        assert_eq!(values("bulk.1.rtt.p99"), ("rtt_ms.p99".to_owned(), vec![20.0]));
        assert_eq!(values("hop.link.slow.sojourn.p99"), ("sojourn_ms.p99".to_owned(), vec![7.0]));
        assert_eq!(values("both.utilisation").1, [0.9], "only a hop has it");
        assert_eq!(values("both.goodput").1, [3.0], "only a flow has it");
        assert_eq!(values("fairness.jain"), ("fairness.jain".to_owned(), vec![0.0]));
        assert_eq!(values("bulk.base_rtt"), ("base_rtt_ms".to_owned(), vec![40.0]));
    }

    #[test]
    fn a_groups_goodput_is_its_flows_sum_and_per_flow_their_mean() {
        let mean = ("goodput_per_flow_mbit".to_owned(), vec![1.5]);
        assert_eq!((values("bulk.goodput_per_flow"), values("flow.bulk.goodput_per_flow_mbit")), (mean.clone(), mean));
        assert_eq!(values("bulk.1.goodput").1, [2.0]);
        assert_eq!(values("bulk.1.goodput_per_flow").1, [2.0]);
        assert_eq!(values("bulk.retransmits").1, [0.0], "one figure of two flows");
        let each = lookup().find_each("bulk.goodput").expect("it is there");
        assert_eq!(each.values, [("bulk.0".to_owned(), 1.0), ("bulk.1".to_owned(), 2.0)]);
        // The same figures as a sweep's.
        let Figures { flows, .. } = Figures::of(&summary());
        let of = |key: &str| flows[0].figures[key].number().expect("a number");
        assert_eq!((of("goodput_mbit"), of("goodput_per_flow_mbit")), (3.0, 1.5));
    }

    #[test]
    fn the_first_words_of_names_are_all_flows_that_have_them() {
        let flow = |name: &str, goodput_mbit: f64| FlowSummary {
            name: name.to_owned(),
            goodput_mbit,
            ..FlowSummary::default()
        };
        let names = ["app.up.tcp.0", "app.up.tcp.1", "app.up.udp", "app.down.tcp", "video", "video.hd", "apps"];
        let flows = names.into_iter().zip([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]);
        let flows = flows.map(|(name, goodput)| flow(name, goodput)).collect();
        let lookup = Lookup::of(&Summary { flows, ..Summary::default() });
        let sum = |path: &str| lookup.find(&format!("{path}.goodput")).map(|found| found.values[0].1);
        assert_eq!([sum("app"), sum("app.up"), sum("app.down")], [15.0, 7.0, 8.0].map(Ok));
        assert_eq!([sum("app.up.tcp"), sum("app.up.tcp.1"), sum("app.up.udp")], [3.0, 2.0, 4.0].map(Ok));
        assert_eq!(sum("video"), Ok(16.0), "a flow's own name is only its own");
        assert!(sum("app.sideways").is_err());
    }

    #[test]
    fn a_figure_that_a_run_lacks_has_no_value() {
        assert_eq!(values("bulk.completion.p99"), ("completion_s.p99".to_owned(), vec![]));
        assert_eq!(values("link.queue_packets"), ("queue_packets".to_owned(), vec![]));
    }

    #[test]
    fn what_is_not_there_is_refused_with_what_is() {
        for (path, expected) in [
            ("bulk.goodputt", "\"bulk\" has no figure \"goodputt\"; allowed: goodput_mbit,"),
            ("bulk.goodputt", "(did you mean \"goodput\"?)"),
            (
                "bulk.rtt",
                "\"rtt\" of \"bulk\" is several figures; allowed: rtt_ms.min, rtt_ms.mean, rtt_ms.p50, rtt_ms.p95, rtt_ms.p99",
            ),
            (
                "blk.goodput",
                "no hop, flow or figure \"blk\"; allowed: NAME.FIGURE of the hops link, link.slow, both and the flows bulk, both",
            ),
            ("blk.goodput", "(did you mean \"bulk\"?)"),
            ("hop.bulk.goodput", "no hop, flow or figure \"bulk\""),
            ("both.sojourn_ms", "is several figures"),
            ("fairness", "\"fairness\" is several figures; allowed: fairness.jain"),
            ("", "no hop, flow or figure \"\""),
        ] {
            let error = lookup().find(path).expect_err(path);
            assert!(error.contains(expected), "{path}: {error}");
        }
    }
}
