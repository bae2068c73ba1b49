//! Answers the page's requests.
use crate::budget::Limits;
use crate::catalogue::Catalogue;
use crate::edit;
use crate::frame::Player;
use crate::outline::Outline;
use crate::protocol::{Complaint, Line, Played, Reply, Request, Text};
use narrows_core::{Span, Time};
use narrows_results::Series;
use narrows_scenario::{NoTraces, Record, Scenario, Traces};
use narrows_world::{Unwatched, Wanted, World as _};
use std::collections::HashSet;
use std::fmt;

/// The simulator behind one page.
pub struct Engine {
    limits: Limits,
    /// Traces that a scenario may name, beside the built-in ones.
    traces: Option<Box<dyn Traces + Send>>,
    /// What is being played: one scenario, or two side by side.
    seats: [Option<Player>; 2],
}

/// Flows whose series are shown.
const FOLLOWED: usize = 16;
/// Points of a series at most.
const POINTS: u32 = 2000;
/// The name of a scenario in messages; the page shows them at their line.
const FILE: &str = "scenario";

impl Engine {
    /// An engine that refuses what exceeds these limits.
    pub const fn new(limits: Limits) -> Engine {
        Engine { limits, traces: None, seats: [None, None] }
    }

    /// The same, with traces that a scenario may name.
    pub fn with_traces(self, traces: Box<dyn Traces + Send>) -> Engine {
        Engine { traces: Some(traces), ..self }
    }

    /// Answers a request, JSON for JSON. What cannot be done is an answer, too: `{"error": {"line", "message"}}`.
    pub fn answer(&mut self, request: &str) -> String {
        let request =
            serde_json::from_str(request).map_err(|error| Complaint::new(format!("no such request: {error}")));
        let reply = request.and_then(|request| self.reply(request));
        let reply = reply.unwrap_or_else(|error| Reply::Error { error });
        serde_json::to_string(&reply).unwrap_or_else(|error| format!(r#"{{"error":{{"message":"{error}"}}}}"#))
    }

    fn reply(&mut self, request: Request) -> Result<Reply, Complaint> {
        Ok(match request {
            Request::Catalogue => Reply::Catalogue(Catalogue::new()),
            Request::Read { text } => Reply::Scenario(self.read(text)?),
            Request::Edit { text, edits } => Reply::Scenario(self.read(edit::apply(&text, &edits)?)?),
            Request::Run { text, points } => Reply::Run(Box::new(self.run(&text, points)?)),
            Request::Open { seat, text, at } => {
                // First, so that two runs do not need their memory at once.
                *self.seats.get_mut(seat).ok_or_else(no_seat)? = None;
                let scenario = self.parse(&text)?;
                let wanted = Player::wanted(self.limits.budget(&scenario));
                self.limits.check(&scenario, &Player::kept())?;
                let player = self.seats[seat].insert(Player::new(scenario, &wanted));
                Reply::Frame(player.advance(Time::from_ns(at))?)
            }
            Request::Frame { seat, to } => {
                let player = self.seats.get_mut(seat).and_then(Option::as_mut).ok_or_else(no_seat)?;
                Reply::Frame(player.advance(Time::from_ns(to))?)
            }
        })
    }

    fn run(&self, text: &str, points: u32) -> Result<Played, Complaint> {
        let scenario = self.parse(text)?;
        let points = points.clamp(2, POINTS);
        let interval = (scenario.duration / u64::from(points)).max(Span::us(1));
        // The flows that are followed have figures that others do not have, so their number stays.
        let record = Record { interval: Some(interval), ..scenario.record };
        let scenario = Scenario { record, ..scenario };
        let wanted = Wanted { budget: Some(self.limits.budget(&scenario)), ..Wanted::RESULT };
        self.limits.check(&scenario, &wanted)?;
        let run = narrows_sim::run(&scenario, &wanted, &mut Unwatched);
        let result = run.map_err(|error| Complaint::new(error.to_string()))?.result;
        let summary = result.summary.without_cost();
        let hidden: HashSet<&str> = summary.flows.iter().skip(FOLLOWED).map(|flow| flow.name.as_str()).collect();
        let is_shown = |series: &&Series| series.source.split_once("flow:").is_none_or(|flow| !hidden.contains(flow.1));
        let series = result.series.iter().filter(is_shown).map(Line::from).collect();
        Ok(Played { summary, series })
    }

    fn read(&self, text: String) -> Result<Text, Complaint> {
        let outline = Outline::from(&self.parse(&text)?);
        Ok(Text { text, outline })
    }

    /// A scenario that the simulator takes.
    fn parse(&self, text: &str) -> Result<Scenario, Complaint> {
        let traces: &dyn Traces = match &self.traces {
            Some(traces) => traces.as_ref(),
            None => &NoTraces,
        };
        let scenario = Scenario::parse(text, FILE, traces)?;
        narrows_sim::Simulator.check(&scenario).map_err(|error| Complaint::new(error.to_string()))?;
        Ok(scenario)
    }
}

fn no_seat() -> Complaint {
    Complaint::new("nothing is being played there")
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("limits", &self.limits).field("seats", &self.seats).finish_non_exhaustive()
    }
}

impl From<&Series> for Line {
    fn from(series: &Series) -> Line {
        let (at, values) = series.points.iter().map(|&(at, value)| (short(at, 6), short(value, 4))).unzip();
        Line { source: series.source.clone(), metric: series.metric.clone(), at, values }
    }
}

/// A number with this many significant digits.
fn short(value: f64, digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10_f64.powi(digits - 1 - value.abs().log10().floor() as i32);
    if scale.is_finite() { (value * scale).round() / scale } else { value }
}
