//! The answer in words, as a table, as a page and as JSON.
use super::household::Household;
use super::queues::{Candidate, Recipe};
use super::score::{Fares, Outcome, are_equal};
use narrows_core::Rate;
use narrows_core::params::ParamValue as _;
use narrows_report::chart::{Chart, ChartKind, Grid};
use narrows_report::sheet::{Head, Sheet};
use narrows_results::figure::Better;
use serde_json::{Value, json};

/// The household's outcomes: behind each queue, best first, and as it is.
pub(super) struct Answer<'a> {
    pub(super) household: &'a Household,
    pub(super) candidates: Vec<Candidate>,
    pub(super) ranked: Vec<Outcome>,
    pub(super) as_it_is: Outcome,
    pub(super) interface: String,
    /// Runs of each.
    pub(super) runs: usize,
}

/// The name of the link without a queue of one's own.
pub(super) const AS_IT_IS: &str = "as it is";

/// What routers with a single MIPS core shape with `cake`, by their users' reports. Nothing was measured here.
const SMALL_ROUTERS: Rate = Rate::mbit(200);

impl Answer<'_> {
    fn best(&self) -> &Outcome {
        &self.ranked[0]
    }

    fn candidate(&self, outcome: &Outcome) -> Option<&Candidate> {
        self.candidates.iter().find(|one| one.label() == outcome.name)
    }

    /// The queue that is recommended and, if it takes more than a stock kernel, the best one that does not.
    fn recommended(&self) -> Vec<&Candidate> {
        let first = self.candidate(self.best());
        let is_stock = first.is_some_and(Candidate::is_stock);
        let known = self.ranked.iter().filter_map(|outcome| self.candidate(outcome));
        let stock = known.into_iter().find(|one| one.is_stock() && !is_stock);
        first.into_iter().chain(stock).collect()
    }

    /// The rates to which the first one shapes.
    fn shaped(&self) -> [Rate; 2] {
        let rates = self.household.rates();
        self.candidate(self.best()).map_or(rates.map(|rates| rates.mean), |one| one.rates(rates))
    }

    /// Why the first one is first.
    pub(super) fn reason(&self) -> String {
        let (best, now) = (self.best(), &self.as_it_is);
        let (worst, before) = (best.worst(), now.worst());
        let now_is = format!("as the link is, {} has {:.0} ({})", before.what.name(), before.score, figure(before));
        let mut reason = if worst.score.round() >= 100.0 {
            format!("{}: every use has 100 of 100 points; {now_is}.", best.name)
        } else {
            format!(
                "{}: even the worst-off use, {}, has {:.0} of 100 points ({}); {now_is}.",
                best.name,
                worst.what.name(),
                worst.score,
                figure(worst)
            )
        };
        let equals: Vec<&str> = self
            .ranked
            .iter()
            .skip(1)
            .filter(|other| are_equal(best, other))
            .map(|other| other.name.as_str())
            .collect();
        if !equals.is_empty() {
            let are = if equals.len() == 1 { "is" } else { "are" };
            reason += &format!(" {} {are} as good.", listed(&equals));
        }
        if best.worst().score <= now.worst().score {
            reason += " No queue makes the worst-off use better than the link as it is.";
        }
        let recommended = self.candidate(best);
        if let Some(one) = recommended.filter(|one| one.follows()) {
            reason += " The shaper of what is sent follows the link.";
            if self.household.varies() {
                reason += &format!(
                    " What is received has passed the provider's buffer first; its shaper is set to {} % of the mean and does not \
                     follow.",
                    one.percent()
                );
            }
        } else if self.household.varies() {
            reason += &format!(
                " The link's rate varies and a shaper's does not: the shaper is set to {} % of the mean, so the provider's queue fills \
                 whenever the link is slower.",
                recommended.map_or(Candidate::USUAL_PERCENT, Candidate::percent)
            );
        } else if self.household.layer.name == "lte" {
            reason += " A cell's rate varies with the radio and with its other users, and this answer is for a constant one: give a recorded \
                       rate as --down trace:FILE, or trace:lte, or ask for --link cellular.";
        }
        if let Some(fast) = self.shaped().into_iter().max().filter(|rate| *rate > SMALL_ROUTERS) {
            reason += &format!(
                " Shaping {} takes more processor than many home routers have: watch the load of yours while a download runs.",
                mbit(fast)
            );
        }
        reason
    }

    fn recipes(&self) -> Vec<(&Candidate, Vec<Recipe>)> {
        let recommended = self.recommended().into_iter();
        recommended
            .map(|one| (one, one.recipes(&self.interface, self.household.rates(), self.household.layer)))
            .collect()
    }

    /// The commands, as text.
    pub(super) fn commands(&self) -> String {
        let mut out = String::new();
        for (n, (one, recipes)) in self.recipes().into_iter().enumerate() {
            let best = if n == 0 { "" } else { "The best that stock Linux has: " };
            out += &format!("\n{best}{} (needs {})\n", one.label(), one.needs());
            for Recipe { title, lines } in recipes {
                out += &format!("\n# {title}\n");
                lines.iter().for_each(|line| out += &format!("{line}\n"));
            }
        }
        out
    }

    /// The table, with a picture of the scores.
    pub(super) fn sheet(&self) -> Sheet {
        let Household { rtt, buffer, .. } = self.household;
        let [down, up] = self.household.rates();
        let ([shaped_down, shaped_up], follows) =
            (self.shaped().map(mbit), self.candidate(self.best()).is_some_and(Candidate::follows));
        let shaped_up = if follows { "what the link carries".to_owned() } else { shaped_up };
        let layer = match self.household.layer.name {
            "any" => String::new(),
            name => format!(" ({name})"),
        };
        let link = match (self.household.layer.mechanisms().iter().any(Option::is_some), self.household.varies()) {
            (true, true) => {
                let [mean_down, mean_up] = [down, up].map(|rates| mbit(rates.mean));
                format!("at most {} down and {} up{layer}, on average {mean_down} and {mean_up}", down.most, up.most)
            }
            (false, true) => format!("{} down, {} up{layer}, on average", down.most, up.most),
            (_, false) => format!("{} down, {} up{layer}", down.most, up.most),
        };
        let columns = self.household.members.iter().map(|member| {
            let of = if member.count == 1 {
                member.what.name().to_owned()
            } else {
                format!("{}x{}", member.count, member.what.name())
            };
            Head { name: of, which: member.what.figure().0.to_owned() }
        });
        let head = |name: &str, which: &str| Head { name: name.to_owned(), which: which.to_owned() };
        let heads = [head("", ""), head("queue", "")].into_iter().chain(columns);
        let heads = heads.chain([head("worst off", "0–100"), head("which", "")]).collect();
        let row = |rank: String, outcome: &Outcome| {
            let worst = outcome.worst();
            let figures = outcome.uses.iter().map(number);
            let mut cells = vec![rank, outcome.name.clone()];
            cells.extend(figures);
            cells.extend([format!("{:.0}", worst.score), worst.what.name().to_owned()]);
            cells
        };
        let ranked = self.ranked.iter().enumerate().map(|(n, outcome)| row((n + 1).to_string(), outcome));
        let rows = ranked.chain([row(String::new(), &self.as_it_is)]).collect();
        let all: Vec<&Outcome> = self.ranked.iter().chain([&self.as_it_is]).collect();
        Sheet {
            heading: "Advice".to_owned(),
            title: self.best().name.clone(),
            source: format!(
                "{link}, RTT {rtt}, {} MB of buffer; shaped to {shaped_down} and {shaped_up}; {}",
                buffer.0 as f64 / 1e6,
                if self.runs == 1 { "one run each".to_owned() } else { format!("means of {} runs", self.runs) },
            ),
            about: self.reason(),
            heads,
            names: 2,
            rows,
            claims: Vec::new(),
            holds: Vec::new(),
            remarks: Vec::new(),
            charts: vec![
                self.chart(&[&self.as_it_is, self.best()], format!("Today, and with {}", self.best().name)),
                self.chart(&all, "How each use fares, 0 to 100".to_owned()),
            ],
            listings: Vec::new(),
        }
    }

    /// The page's part with the commands.
    pub(super) fn commands_sheet(&self) -> Sheet {
        let all = self.recipes();
        let needs: Vec<String> = all.iter().map(|(one, _)| format!("{} needs {}", one.label(), one.needs())).collect();
        let listings = all.iter().flat_map(|(one, recipes)| {
            let titled = |recipe: &Recipe| (format!("{}: {}", one.label(), recipe.title), recipe.lines.join("\n"));
            recipes.iter().map(titled).collect::<Vec<_>>()
        });
        Sheet {
            heading: "Commands".to_owned(),
            title: "how to have it".to_owned(),
            source: needs.join("; "),
            listings: listings.collect(),
            ..Sheet::default()
        }
    }

    fn chart(&self, all: &[&Outcome], title: String) -> Chart {
        let grid = Grid {
            columns: self.household.members.iter().map(|member| member.what.name().to_owned()).collect(),
            rows: all.iter().map(|outcome| outcome.name.clone()).collect(),
            values: all.iter().map(|outcome| outcome.uses.iter().map(|fares| Some(fares.score)).collect()).collect(),
            unit: String::new(),
            decimals: 0,
            better: Better::More,
            log: false,
            range: Some((0.0, 100.0)),
        };
        Chart {
            kind: ChartKind::Heat,
            title,
            x: "uses".to_owned(),
            y: "queues".to_owned(),
            lines: Vec::new(),
            grid: Some(grid),
        }
    }

    pub(super) fn json(&self) -> Value {
        let Household { layer, rtt, buffer, members, .. } = self.household;
        let (link, shaped) = (self.household.rates(), self.shaped());
        let follows = self.candidate(self.best()).is_some_and(Candidate::follows);
        let outcome = |outcome: &Outcome| {
            let uses: serde_json::Map<String, Value> = outcome
                .uses
                .iter()
                .map(|fares| {
                    let value = json!({
                        "figure": fares.figure.map(|figure| figure.mean), "half_width": fares.figure.and_then(|figure| figure.half_width),
                        "unit": fares.what.figure().0, "score": fares.score,
                    });
                    (fares.what.name().to_owned(), value)
                })
                .collect();
            json!({ "queue": outcome.name, "worst": outcome.worst().what.name(), "score": outcome.worst().score, "uses": uses })
        };
        let deploy: Vec<Value> = self
            .recipes()
            .into_iter()
            .map(|(one, recipes)| json!({ "queue": one.label(), "needs": one.needs(), "recipes": recipes }))
            .collect();
        json!({
            "link": {
                "down_mbit": link[0].most.as_mbit_f64(), "up_mbit": link[1].most.as_mbit_f64(),
                "mean_down_mbit": link[0].mean.as_mbit_f64(), "mean_up_mbit": link[1].mean.as_mbit_f64(), "rtt_ms": rtt.as_ms_f64(), "buffer_bytes": buffer.0,
                "kind": layer.name, "overhead_bytes": layer.framing.overhead, "mpu_bytes": layer.framing.mpu, "atm": layer.framing.atm.show(),
                "shaped_down_mbit": shaped[0].as_mbit_f64(), "shaped_up_mbit": if follows { Value::Null } else { json!(shaped[1].as_mbit_f64()) },
            },
            "uses": members.iter().map(|member| json!({ "use": member.what.name(), "count": member.count })).collect::<Vec<_>>(),
            "runs": self.runs,
            "ranking": self.ranked.iter().map(outcome).collect::<Vec<_>>(),
            "as_it_is": outcome(&self.as_it_is),
            "reason": self.reason(),
            "deploy": deploy,
        })
    }
}

fn mbit(rate: Rate) -> String {
    let text = format!("{:.3}", rate.as_mbit_f64());
    format!("{} Mbit/s", text.trim_end_matches('0').trim_end_matches('.'))
}

fn number(fares: &Fares) -> String {
    fares.figure.map_or_else(|| "–".to_owned(), |figure| format!("{:.*}", fares.what.figure().1, figure.mean))
}

/// `MOS 4.38`, `44.1 Mbit/s`.
fn figure(fares: &Fares) -> String {
    match fares.what.figure().0.rsplit_once(' ') {
        None if fares.what.figure().0 == "MOS" => format!("MOS {}", number(fares)),
        None => format!("{} {}", number(fares), fares.what.figure().0),
        Some((what, unit)) => format!("{what} {} {unit}", number(fares)),
    }
}

/// `a, b and c`.
fn listed(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}
