//! How a household fares behind a queue: a figure and a score for each use, and the ranking by the worst-off use.
//!
//! A score is 100 where a use could not fare better and 0 where it cannot be used, linear between. The thresholds are in [`Use::scale`].
use super::household::{Household, Member, Use};
use narrows_report::Estimate;
use narrows_report::comparison::flow_group;
use narrows_report::estimate::{SIGNIFICANT, paired_p_value};
use narrows_results::Summary;
use narrows_results::summary::FlowSummary;

/// The values of a figure with a score of 100 and of 0.
struct Scale {
    optimal: f64,
    unacceptable: f64,
}

impl Scale {
    fn score(&self, figure: f64) -> f64 {
        100.0 * ((figure - self.unacceptable) / (self.optimal - self.unacceptable)).clamp(0.0, 1.0)
    }
}

impl Use {
    /// The figure that its column shows, and its unit.
    pub(super) const fn figure(self) -> (&'static str, usize) {
        match self {
            Use::Call => ("MOS", 2),
            Use::VideoCall => ("Mbit/s", 2),
            Use::Game => ("p99 ms", 1),
            Use::Web => ("page p95 s", 2),
            Use::Video => ("p99 s", 2),
            Use::Download | Use::Upload => ("Mbit/s", 1),
        }
    }

    /// The scale of its score; of a call, that of R. `best` is the most that it gets behind any queue.
    fn scale(self, best: f64) -> Scale {
        let (optimal, unacceptable) = match self {
            // ITU-T G.109: users are very satisfied from R = 90; below 50 no call is worth planning.
            Use::Call => (90.0, 50.0),
            // Bits of the picture: 720p at 30 frames a second looks good, and the least that the encoder makes.
            Use::VideoCall => (1.2, 0.15),
            // One-way delay.
            Use::Game => (50.0, 150.0),
            // Nielsen, "Usability Engineering", 1993: 1 s keeps the flow of thought, 10 s the attention.
            Use::Web => (1.0, 10.0),
            // A player's buffer: a few seconds.
            Use::Video => (2.0, 10.0),
            // Nobody feels a tenth less.
            Use::Download | Use::Upload => (0.9 * best, 0.0),
        };
        Scale { optimal, unacceptable }
    }
}

/// Scores further apart than this are not called equal, however few runs there are.
const CLOSE: f64 = 5.0;

/// Up to this many flows of a use, the worst one counts.
const MANY: usize = 20;

/// Loss of a game's datagrams.
const GAME_LOSS: Scale = Scale { optimal: 0.005, unacceptable: 0.05 };
/// Delay of a video call's frames, ms, p95. ITU-T G.114: delays below 150 ms hardly matter in a conversation, and planning avoids more
/// than 400 ms.
const FRAME_DELAY: Scale = Scale { optimal: 150.0, unacceptable: 400.0 };
/// Share of the time in which its picture is frozen.
const FROZEN: Scale = Scale { optimal: 0.01, unacceptable: 0.1 };

/// The figures of a use in a run: those of its worst flow, or with more than [`MANY`] flows the worst 5 % quantile.
#[derive(Clone, Copy, Debug)]
struct Got {
    /// The figure to show.
    figure: f64,
    /// The figure to score.
    scored: f64,
    /// The most that the score can be, because of something else that the use feels.
    most: f64,
}

impl Got {
    const fn of(figure: f64) -> Got {
        Got { figure, scored: figure, most: 100.0 }
    }
}

fn got(what: Use, summary: &Summary) -> Option<Got> {
    let is_its = |flow: &&FlowSummary| flow_group(&flow.name).split(' ').next() == Some(what.name());
    let of_flow = |flow: &FlowSummary| {
        let felt = flow.application;
        let least = Got { most: 0.0, ..Got::of(f64::INFINITY) };
        match what {
            Use::Call => {
                let voice = felt.and_then(|felt| felt.voice);
                let (figure, scored) = voice.map_or((1.0, 0.0), |voice| (voice.mos, voice.r));
                Got { scored, ..Got::of(figure) }
            }
            Use::VideoCall => felt
                .and_then(|felt| felt.video)
                .and_then(|video| Some((video.rate_mbit, video.frame_delay_ms?.p95, video.frozen)))
                .map_or(Got { most: 0.0, ..Got::of(0.0) }, |(mbit, ms, frozen)| Got {
                    most: FRAME_DELAY.score(ms).min(FROZEN.score(frozen)),
                    ..Got::of(mbit)
                }),
            Use::Game => felt
                .and_then(|felt| Some((felt.one_way_ms?.p99, felt.loss?)))
                .map_or(least, |(ms, loss)| Got { most: GAME_LOSS.score(loss), ..Got::of(ms) }),
            Use::Web => flow.completion_s.map_or(least, |page| Got::of(page.p95)),
            Use::Video => {
                felt.and_then(|felt| felt.messages).map_or(least, |messages| Got::of(messages.delay_ms.p99 / 1e3))
            }
            Use::Download | Use::Upload => Got::of(flow.goodput_mbit),
        }
    };
    let more_is_better = matches!(what, Use::Call | Use::VideoCall | Use::Download | Use::Upload);
    let its = || summary.flows.iter().filter(is_its);
    // Of many who read, some have not asked for a page: the others' pages say how it is.
    let is_measured = |flow: &&FlowSummary| what != Use::Web || flow.completion_s.is_some() || its().count() <= MANY;
    let mut all: Vec<Got> = its().filter(is_measured).map(of_flow).collect();
    let nth = if all.len() > MANY { all.len() / 20 } else { 0 };
    all.sort_by(|a, b| a.most.total_cmp(&b.most));
    let Some(Got { most, .. }) = all.get(nth).copied() else {
        return its().next().map(of_flow);
    };
    all.sort_by(|a, b| if more_is_better { a.scored.total_cmp(&b.scored) } else { b.scored.total_cmp(&a.scored) });
    Some(Got { most, ..all[nth] })
}

/// How a use fares, over the runs.
#[derive(Clone, Debug)]
pub(super) struct Fares {
    pub(super) what: Use,
    pub(super) figure: Option<Estimate>,
    /// Mean score.
    pub(super) score: f64,
}

/// A household behind one queue.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// The queue's name; `as it is` without one.
    pub(super) name: String,
    pub(super) uses: Vec<Fares>,
    /// By run, the score of the use that is worst off over all runs.
    pub(super) worst_by_run: Vec<f64>,
}

impl Outcome {
    /// The use that is worst off.
    pub(super) fn worst(&self) -> &Fares {
        let worst = self.uses.iter().min_by(|a, b| a.score.total_cmp(&b.score));
        worst.expect("a household has at least one use, or its flag would have been refused")
    }

    fn mean(&self) -> f64 {
        self.uses.iter().map(|fares| fares.score).sum::<f64>() / self.uses.len() as f64
    }

    fn of(name: &str, members: &[Member], got: &[ByRun], scales: &[Scale]) -> Outcome {
        let of_use = |(got, scale): (&ByRun, &Scale)| got.iter().map(|got| score(*got, scale)).collect();
        let scores: Vec<Vec<f64>> = got.iter().zip(scales).map(of_use).collect();
        let fares = |(member, (got, scores)): (&Member, (&ByRun, &Vec<f64>))| Fares {
            what: member.what,
            figure: Estimate::of(got.iter().flatten().map(|got| got.figure)),
            score: scores.iter().sum::<f64>() / scores.len().max(1) as f64,
        };
        let uses: Vec<Fares> = members.iter().zip(got.iter().zip(&scores)).map(fares).collect();
        let worst = (0..uses.len()).min_by(|&a, &b| uses[a].score.total_cmp(&uses[b].score));
        Outcome { name: name.to_owned(), worst_by_run: worst.map_or_else(Vec::new, |n| scores[n].clone()), uses }
    }
}

/// What a use got in each run.
type ByRun = Vec<Option<Got>>;

/// The outcomes of the candidates and, at the end, of the link as it is, in their order; each has a summary for every run.
pub(super) fn outcomes(household: &Household, runs: &[(String, Vec<Summary>)]) -> Vec<Outcome> {
    let members = &household.members;
    let all_uses = |(_, summaries): &(String, Vec<Summary>)| -> Vec<ByRun> {
        members.iter().map(|member| summaries.iter().map(|summary| got(member.what, summary)).collect()).collect()
    };
    let all: Vec<Vec<ByRun>> = runs.iter().map(all_uses).collect();
    // The link as it is comes last, and does not count: no queue of one's own has all of the link's rate.
    let candidates = all.split_last().map_or(&[][..], |(_, candidates)| candidates);
    let best = |n: usize| {
        let mean = |got: &Vec<ByRun>| Estimate::of(got[n].iter().flatten().map(|got| got.figure));
        candidates.iter().filter_map(mean).map(|estimate| estimate.mean).fold(0.0, f64::max)
    };
    let scales: Vec<Scale> = members.iter().enumerate().map(|(n, member)| member.what.scale(best(n))).collect();
    runs.iter().zip(&all).map(|((name, _), got)| Outcome::of(name, members, got, &scales)).collect()
}

/// A use without any figure (no packet arrived, no page was complete) has a score of 0.
fn score(got: Option<Got>, scale: &Scale) -> f64 {
    got.map_or(0.0, |got| {
        let of_figure = if scale.optimal == scale.unacceptable { 100.0 } else { scale.score(got.scored) };
        of_figure.min(got.most)
    })
}

/// Best first: by the score of the worst-off use, then by the mean score, both in whole points; of equals the first stays first.
pub(super) fn ranked(mut outcomes: Vec<Outcome>) -> Vec<Outcome> {
    let key = |outcome: &Outcome| (outcome.worst().score.round(), outcome.mean().round());
    outcomes.sort_by(|a, b| {
        let ((worst_a, mean_a), (worst_b, mean_b)) = (key(a), key(b));
        worst_b.total_cmp(&worst_a).then(mean_b.total_cmp(&mean_a))
    });
    outcomes
}

/// Whether the second is as well off as the first: to the point, or chance may explain the difference.
pub(super) fn are_equal(first: &Outcome, second: &Outcome) -> bool {
    let [a, b] = [first, second].map(|outcome| outcome.worst().score.round());
    if a == b {
        return true;
    }
    let pairs = first.worst_by_run.iter().copied().zip(second.worst_by_run.iter().copied());
    (a - b).abs() < CLOSE && paired_p_value(pairs).is_some_and(|p| p >= SIGNIFICANT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_results::summary::{Application, Quantiles, Video, Voice};

    fn outcome(name: &str, scores: [f64; 2]) -> Outcome {
        let fares = |(what, score): (Use, f64)| Fares { what, figure: Estimate::of([score]), score };
        let uses = [Use::Call, Use::Download].into_iter().zip(scores).map(fares).collect();
        Outcome { name: name.to_owned(), uses, worst_by_run: vec![scores[0].min(scores[1])] }
    }

    #[test]
    fn the_worst_off_use_decides_then_the_mean_then_the_order() {
        let all =
            [("a", [80.0, 100.0]), ("b", [90.2, 90.4]), ("c", [100.0, 89.8]), ("d", [90.0, 90.0]), ("e", [0.0, 100.0])];
        let ranked = ranked(all.map(|(name, scores)| outcome(name, scores)).to_vec());
        let names: Vec<&str> = ranked.iter().map(|outcome| outcome.name.as_str()).collect();
        assert_eq!(names, ["c", "b", "d", "a", "e"]);
        assert_eq!(ranked[0].worst().what, Use::Download);
        assert!(are_equal(&ranked[0], &ranked[1]), "to the point");
        assert!(!are_equal(&ranked[0], &ranked[3]), "one run does not say what chance does");
    }

    #[test]
    fn chance_makes_equals_of_scores_that_are_close() {
        let with = |name: &str, by_run: &[f64]| {
            let mean = by_run.iter().sum::<f64>() / by_run.len() as f64;
            Outcome { worst_by_run: by_run.to_vec(), ..outcome(name, [mean, 100.0]) }
        };
        let first = with("first", &[92.0, 96.0, 88.0, 97.0]);
        assert!(are_equal(&first, &with("by chance", &[95.0, 88.0, 90.0, 91.0])));
        assert!(!are_equal(&first, &with("always less", &[90.0, 94.1, 86.0, 95.1])));
        assert!(!are_equal(&first, &with("far below", &[60.0, 99.0, 55.0, 98.0])));
    }

    #[test]
    fn a_video_call_needs_a_picture_in_time_that_moves() {
        let call = |mbit: f64, p95: f64, frozen: f64| {
            let frame_delay_ms = Some(Quantiles { p95, ..Quantiles::default() });
            let video = Some(Video { rate_mbit: mbit, frame_delay_ms, frozen, ..Video::default() });
            let application = Some(Application { video, ..Application::default() });
            let flow = FlowSummary { name: "video-call up".to_owned(), application, ..FlowSummary::default() };
            let summary = Summary { flows: vec![flow], ..Summary::default() };
            score(got(Use::VideoCall, &summary), &Use::VideoCall.scale(0.0)).round()
        };
        assert_eq!([call(2.0, 100.0, 0.0), call(0.15, 100.0, 0.0), call(0.675, 100.0, 0.0)], [100.0, 0.0, 50.0]);
        assert_eq!([call(2.0, 275.0, 0.0), call(2.0, 500.0, 0.0), call(2.0, 100.0, 0.055)], [50.0, 0.0, 50.0]);
    }

    #[test]
    fn the_worse_direction_and_the_worst_flow_count() {
        let flow = |name: &str, mos: f64, p99: f64| FlowSummary {
            name: name.to_owned(),
            goodput_mbit: p99,
            application: Some(Application {
                voice: Some(Voice { r: 20.0 * mos, mos, ..Voice::default() }),
                one_way_ms: Some(Quantiles { p99, ..Quantiles::default() }),
                loss: Some(0.0),
                ..Application::default()
            }),
            ..FlowSummary::default()
        };
        let flows = vec![
            flow("call down", 4.3, 0.0),
            flow("call up", 3.1, 0.0),
            flow("game down", 0.0, 40.0),
            flow("game up", 0.0, 90.0),
            flow("download down.0", 0.0, 12.0),
            flow("download down.1", 0.0, 7.0),
        ];
        let summary = Summary { flows, ..Summary::default() };
        let figure = |what: Use| got(what, &summary).map(|got| got.figure);
        assert_eq!(
            [Use::Call, Use::Game, Use::Download, Use::Web].map(figure),
            [Some(3.1), Some(90.0), Some(7.0), None]
        );
        let game = got(Use::Game, &summary).expect("it is there");
        let is_near = |got: f64, wanted: f64| assert!((got - wanted).abs() < 1e-9, "{got} is not {wanted}");
        is_near(score(Some(game), &Use::Game.scale(0.0)), 60.0);
        // Half way to 5 % of loss.
        let flow = FlowSummary {
            name: "game up".to_owned(),
            application: summary.flows[3].application.map(|felt| Application { loss: Some(0.0275), ..felt }),
            ..FlowSummary::default()
        };
        let lossy = got(Use::Game, &Summary { flows: vec![flow], ..Summary::default() });
        is_near(score(lossy, &Use::Game.scale(0.0)), 50.0);
        assert_eq!(score(None, &Use::Game.scale(0.0)), 0.0);
        is_near(score(got(Use::Download, &summary), &Use::Download.scale(10.0)), 100.0 * 7.0 / 9.0);
    }
}
