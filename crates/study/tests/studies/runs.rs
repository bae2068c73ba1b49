//! Figures over the runs of a study: totals, quantiles, shares with their bounds, published quartiles, and what runs draw.
use crate::support::Base;
use narrows_core::Rate;
use narrows_study::{Cell, Gaps, Level, Report, Study};

const REST: &str = r#"[[axis]]
name = "path"
total = "all paths"
values = [{ label = "near", rtt = "10ms" }, { label = "far", rtt = "100ms" }]
[[axis]]
name = "queue"
values = ["fifo", "fq"]

[[draw]]
name = "rate"
near = "20mbit"
within = 0.1
[[draw]]
name = "rtt"
near = "$path.rtt"
within = 0.05

[[metric]]
name = "use"
unit = "%"
decimals = 0
summary = "hop.link.utilisation"
quartiles = true
[[metric]]
name = "late"
unit = "s"
decimals = 0
summary = "hop.link.loss_rate"
quantile = 0.8
[[metric]]
name = "above 30"
unit = "% of runs"
decimals = 1
share = { metric = "use", above = 30.0 }

[[published]]
at = { path = "near", queue = "fq" }
use = "30 (20–41)"
[[published]]
at = { path = "all paths", queue = "fq" }
use = "55 (30–80)"
[[published]]
at = { queue = "fifo" }
use = 30
"#;

/// The study's file.
fn file() -> String {
    Base { figure: "table 8", runs: [5, 9], flow: "rtt = \"$rtt\"", ..Base::default() }.study(REST)
}

fn study() -> Study {
    Study::parse(&file(), "test.toml").expect("a study")
}

/// In every cell five runs of 10, 20, 30, 40, 50; far over fq they are 60 to 100. The last run of each cell has no `late`.
fn values(study: &Study, cells: &[Cell]) -> Vec<Vec<Vec<Option<f64>>>> {
    assert_eq!(study.metrics.len(), 3);
    let of = |cell: &Cell, n: u32| {
        let base = if cell.labels == ["far", "fq"] { 50.0 } else { 0.0 };
        vec![Some(base + 10.0 * f64::from(n)), (n < 5).then_some(f64::from(n)), None]
    };
    cells.iter().map(|cell| (1..=5).map(|n| of(cell, n)).collect()).collect()
}

/// What the report of these runs says.
fn reported<T>(study: &Study, say: impl FnOnce(&Report<'_>) -> T) -> T {
    let cells = study.cells(Level::Default).expect("cells");
    let (values, drawn) = (values(study, &cells), vec![Vec::new(); cells.len()]);
    say(&study.report(&cells, &values, &drawn))
}

#[test]
fn a_total_has_the_runs_of_all_values_together() {
    reported(&study(), |report| {
        let labels: Vec<String> = report.rows().iter().map(|row| row.labels.join(", ")).collect();
        assert_eq!(labels, ["near, fifo", "near, fq", "far, fifo", "far, fq", "all paths, fifo", "all paths, fq"]);
        let sheet = report.sheet(5, None);
        assert_eq!(sheet.rows[5][2..4], ["55 (30–80)", "55 (32–78)"], "of ten runs");
        assert_eq!(sheet.rows[4][2], "", "a place that does not name the total is not about it");
        assert_eq!(sheet.rows[0][2], "30");
    });
}

#[test]
fn totals_of_two_axes_meet() {
    let both = file().replace("name = \"queue\"\n", "name = \"queue\"\ntotal = \"all queues\"\n");
    reported(&Study::parse(&both, "test.toml").expect("a study"), |report| {
        let totals = report.rows()[4..].iter().map(|row| (row.labels.join(", "), row.entries[0].runs));
        let expected = [("all paths, fifo", 10), ("all paths, fq", 10), ("near, all queues", 10)];
        let expected = expected.into_iter().chain([("far, all queues", 10), ("all paths, all queues", 20)]);
        assert!(totals.eq(expected.map(|(label, runs)| (label.to_owned(), runs))));
    });
}

#[test]
fn cells_meet_the_same_paths_unless_they_draw_for_themselves() {
    let rates = |text: &str| -> Vec<Rate> {
        let study = Study::parse(text, "test.toml").expect("a study");
        let cells = study.cells(Level::Default).expect("cells");
        cells.iter().map(|cell| cell.scenario(1).expect("a scenario").hops[0].rate.initial()).collect()
    };
    let same = rates(&file());
    assert!(same.iter().all(|rate| *rate == same[0]), "{same:?}");
    let own = rates(&file().replace("name = \"queue\"\n", "name = \"queue\"\nown_draws = true\n"));
    assert!(own[0] != own[1] && own[0] == own[2] && own[1] == own[3], "near and far meet the same: {own:?}");
}

#[test]
fn published_quartiles_are_three_figures() {
    let rule = narrows_study::rule("tonopah").expect("it parses").expect("there is one");
    let score = reported(&study(), |report| report.score(&rule, &Gaps::default()));
    // Near, fq: 30 (20–40); all paths: 55 (32.5–77.5), of which 32.5 is not within 5 % of 30; 30 twice.
    assert_eq!((score.met, score.published), (7, 8), "{:?}", score.missed);
    assert_eq!(score.missed[0].what, "table 8, all paths, fq: use, first quartile 30, measured 32");
}

#[test]
fn a_run_without_a_figure_is_beyond_every_quantile() {
    let late = |study: &Study| reported(study, |report| report.rows()[0].entries[1].measured);
    assert_eq!(late(&study()), Some(4.0), "the fourth of five");
    let strict = Study::parse(&file().replace("quantile = 0.8", "quantile = 0.81"), "test.toml").expect("a study");
    assert_eq!(late(&strict), None);
}

#[test]
fn a_share_of_runs_has_bounds() {
    // Two of five; all of five; of ten, seven. R: binom.test(2, 5), binom.test(5, 5), binom.test(7, 10).
    let shown = |row: usize| reported(&study(), |report| report.sheet(5, None).rows[row][5].clone());
    assert_eq!([shown(0), shown(3), shown(5)], ["40.0 (5.3–85.3)", "100.0 (47.8–100.0)", "70.0 (34.8–93.3)"]);
}

#[test]
fn each_run_draws_its_path_and_cells_meet_the_same() {
    let cells = study().cells(Level::Default).expect("cells");
    let of = |cell: usize, seed| cells[cell].scenario(seed).expect("a scenario");
    let rates: Vec<f64> = (1..=50).map(|seed| of(0, seed).hops[0].rate.initial().as_mbit_f64()).collect();
    assert!(rates.iter().all(|rate| (18.0..=22.0).contains(rate)), "{rates:?}");
    assert!(rates.iter().any(|rate| *rate < 19.0) && rates.iter().any(|rate| *rate > 21.0), "{rates:?}");
    assert_eq!(of(0, 3).hops[0].rate.initial(), of(1, 3).hops[0].rate.initial(), "the same seed, the same path");
    let text = |cell, seed| of(cell, seed).to_toml();
    assert_ne!(text(0, 1).replace("seed = 1", ""), text(0, 2).replace("seed = 2", ""));
    let wrong = |from: &str, to: &str| {
        let study = Study::parse(&file().replacen(from, to, 1), "test.toml");
        match study.and_then(|study| study.cells(Level::Quick)?[0].scenario(1)) {
            Err(error) => error.to_string(),
            Ok(_) => String::new(),
        }
    };
    for (from, to, says) in [
        ("name = \"rate\"", "name = \"path\"", "the name is taken"),
        ("within = 0.1", "", "draw \"rate\": give `near` with `within`"),
        ("\"$path.rtt\"", "\"$track.rtt\"", "$track is no axis"),
        ("\"$rtt\"", "\"$rtts\"", "$rtts is no axis"),
        ("quantile = 0.8", "quantile = 2.0", "from 0 to 1"),
        ("metric = \"use\", above", "metric = \"above 30\", above", "itself computed from other metrics"),
    ] {
        assert!(wrong(from, to).contains(says), "{to}: {}", wrong(from, to));
    }
}
