//! Pooled axes, quartiles, tests, lines and heat maps, with results made up by hand.
use crate::support::{Base, result};
use narrows_report::{heat, sheet};
use narrows_study::{Cell, Level, Study};

const REST: &str = r#"[[axis]]
name = "queue"
values = ["fifo", "fq"]
[[axis]]
name = "rate"
values = ["1mbit", "2mbit", "3mbit"]
pooled = true
[[axis]]
name = "limit"
values = ["9p", "20p"]
pooled = true

[[metric]]
name = "use"
decimals = 1
summary = "hop.link.utilisation"
[[metric]]
name = "middle"
decimals = 1
summary = "hop.link.utilisation"
quartiles = true
[[metric]]
name = "more"
more_than = { metric = "use", at = { queue = "fifo" } }
[[metric]]
name = "p"
decimals = 3
welch = { metric = "use", at = { queue = "fifo" } }

[[published]]
at = { queue = "fifo" }
middle = 5.0
[[plot]]
kind = "heat"
title = "Use"
metric = "use"
x = "rate"
y = "limit"
"#;

/// The study's file.
fn file() -> String {
    Base::default().study(REST)
}

fn study() -> Study {
    Study::parse(&file(), "test.toml").expect("a study")
}

/// In fifo's cells 0, 1 in the first, 2, 3 in the next …, in fq's as much and a half.
fn values(study: &Study, cells: &[Cell]) -> Vec<Vec<Vec<Option<f64>>>> {
    let of = |n: usize| (n % 6) as f64 * 2.0 + if n < 6 { 0.0 } else { 0.5 };
    (0..cells.len()).map(|n| vec![study.measure(&result(of(n))), study.measure(&result(of(n) + 1.0))]).collect()
}

#[test]
fn cells_that_differ_in_pooled_axes_are_one_row() {
    let study = study();
    let cells = study.cells(Level::Default).expect("cells");
    let (values, drawn) = (values(&study, &cells), vec![Vec::new(); 12]);
    let report = study.report(&cells, &values, &drawn);
    let rows = report.rows();
    assert_eq!(rows.iter().map(|row| row.labels.join(" ")).collect::<Vec<_>>(), ["fifo", "fq"]);
    // 0 to 11: mean 5.5, variance 13, t(11) = 2.20099.
    let [usual, middle, ..] = &rows[0].entries[..] else { panic!("four entries") };
    assert_eq!((usual.measured, usual.runs), (Some(5.5), 12));
    assert!((usual.half_width.unwrap() - 2.200_99 * (13.0 / 12.0f64).sqrt()).abs() < 1e-4, "{usual:?}");
    let quartiles = middle.quartiles.expect("asked for");
    assert_eq!((quartiles.q1, quartiles.median, quartiles.q3), (2.75, 5.5, 8.25));
    assert_eq!((middle.measured, middle.half_width, middle.difference), (Some(5.5), None, Some(0.5)));
    let json = serde_json::to_value(rows).expect("JSON");
    assert_eq!((&json[0]["entries"][1]["median"], &json[0]["entries"][1]["q3"]), (&5.5.into(), &8.25.into()));
    assert!(json[0]["entries"][0].get("median").is_none());
    // Each cell is compared with the one that differs in nothing else: 0.5 more than 1, 2, …, 11; nothing is more than 0.
    let more = rows[1].entries[2].measured.expect("compared");
    let expected = (1..12).map(|n| 50.0 / f64::from(n)).sum::<f64>() / 11.0;
    assert!((more - expected).abs() < 1e-9, "{more}, {expected}");

    let sheet = report.sheet(2, None);
    assert!(sheet.source.contains("2 runs of each of 6 configurations"), "{}", sheet.source);
    assert_eq!(sheet.rows[0][..4], ["fifo", "5.5 ± 2.3", "5.0", "5.5 (2.8–8.2)"]);
}

#[test]
fn a_test_says_how_likely_chance_is() {
    let study = study();
    let cells = study.cells(Level::Default).expect("cells");
    let drawn = vec![Vec::new(); 12];
    let p = |values: &[Vec<Vec<Option<f64>>>]| {
        let report = study.report(&cells, values, &drawn);
        assert_eq!(report.rows()[0].entries[3].measured, None, "a row is not tested against itself");
        (report.rows()[1].entries[3].measured.expect("tested"), report.sheet(2, None).rows[1].last().cloned())
    };
    // A distance of 0.5 where each mean has a variance of 13/12: t = 0.3397 with 22 degrees of freedom, whose distribution
    // there is the normal one's within 1 %: two-sided 0.73.
    let (likely, _) = p(&values(&study, &cells));
    assert!((likely - 0.737).abs() < 0.01, "{likely}");
    let mut far = values(&study, &cells);
    far[6..].iter_mut().flatten().flatten().for_each(|value| *value = value.map(|v| v + 100.0));
    let (unlikely, shown) = p(&far);
    assert!(unlikely < 1e-20, "{unlikely}");
    assert_eq!(shown.as_deref(), Some("< 0.001"));
}

#[test]
fn runs_that_are_copies_have_no_interval() {
    let study = study();
    let cells = study.cells(Level::Default).expect("cells");
    let same = vec![vec![study.measure(&result(0.3)); 3]; cells.len()];
    let drawn = vec![Vec::new(); 12];
    let report = study.report(&cells, &same, &drawn);
    assert_eq!((report.rows()[0].entries[0].measured, report.rows()[0].entries[0].half_width), (Some(0.3), None));
    assert_eq!(report.rows()[1].entries[3].measured, None, "nothing varies, so nothing can be tested");
    let sheet = report.sheet(3, None);
    assert!(sheet.source.ends_with("identical in every figure") && !sheet.rows[0][1].contains('±'), "{sheet:?}");
    assert!(serde_json::to_value(report.rows()).expect("JSON")[0]["entries"][0]["half_width"].is_null());
}

#[test]
fn heat_maps_are_over_pooled_axes_too() {
    let study = study();
    let cells = study.cells(Level::Default).expect("cells");
    let (values, drawn) = (values(&study, &cells), vec![Vec::new(); 12]);
    let shown = study.report(&cells, &values, &drawn).sheet(2, None);
    assert_eq!(shown.charts.iter().map(|chart| chart.title.as_str()).collect::<Vec<_>>(), ["Use, fifo", "Use, fq"]);
    let grid = shown.charts[0].grid.as_ref().expect("a grid");
    assert_eq!((grid.columns.len(), grid.rows.join(" ")), (3, "9p 20p".to_owned()));
    assert_eq!(grid.values, [[Some(0.5), Some(4.5), Some(8.5)], [Some(2.5), Some(6.5), Some(10.5)]]);
    let ranges: Vec<_> = shown.charts.iter().map(|chart| chart.grid.as_ref().and_then(|grid| grid.range)).collect();
    assert_eq!(ranges, [Some((0.5, 11.0)); 2], "one scale for all maps of a plot");
    let svg = heat::svg(&shown.charts[0]).expect("a heat map");
    for part in ["Use, fifo", ">10.5</text>", "rate 2mbit, limit 20p: Use, fifo 6.5", "rate across, limit down"] {
        assert!(svg.contains(part), "{part} is not in {svg}");
    }
    let page = sheet::page("A page", std::slice::from_ref(&shown)).expect("a page");
    let (names, files): (Vec<String>, Vec<String>) = sheet::drawings("A page", &[shown]).into_iter().unzip();
    assert_eq!(names, ["figure_1_use_fifo.svg", "figure_1_use_fq.svg", "together.svg"]);
    assert!(files[2].contains("Use, fifo") && files[2].contains("Use, fq"), "all of them in one picture");
    assert!(page.contains(files[0].trim()) && !page.contains("id=\"chart0\""));
}

#[test]
fn regression_an_interval_stays_with_its_point() {
    let lines = REST.replace("pooled = true", "").split_once("[[plot]]").map(|(rest, _)| rest.to_owned());
    let plot = "[[plot]]\nkind = \"lines\"\ntitle = \"Use\"\nmetric = \"use\"\nalong = \"rate\"\ny = \"use\"\n\
        at = { queue = \"fifo\", limit = \"9p\" }\n";
    let text = Base::default().study(&(lines.expect("its plot is last") + plot));
    let study = Study::parse(&text, "test.toml").expect("a study");
    let cells = study.cells(Level::Default).expect("cells");
    // The runs of the link of 1 Mbit/s do not differ: it has no interval.
    let values = |label: &str| if label == "1mbit" { [0.5, 0.5] } else { [0.5, 0.7] };
    let runs = cells.iter().map(|cell| values(&cell.labels[1]).map(|use_| study.measure(&result(use_))).to_vec());
    let chart = |runs: Vec<_>| study.report(&cells, &runs, &vec![Vec::new(); 12]).sheet(2, None).charts.remove(0);
    let line = &chart(runs.collect()).lines[0];
    let has_one: Vec<bool> = line.spans.iter().flatten().map(Option::is_some).collect();
    assert_eq!((line.x.as_slice(), has_one.as_slice()), ([1.0, 2.0, 3.0].as_slice(), [false, true, true].as_slice()));
    let same = chart(cells.iter().map(|_| vec![study.measure(&result(0.5)); 2]).collect());
    assert_eq!(same.lines[0].spans, None);
}

#[test]
fn places_do_not_name_pooled_axes() {
    let broken = |from: &str, to: &str| {
        assert!(file().contains(from), "{from}");
        Study::parse(&file().replacen(from, to, 1), "test.toml").expect_err(to).to_string()
    };
    for (from, to, says) in [
        ("at = { queue = \"fifo\" }", "at = { rate = \"1mbit\" }", "is pooled"),
        ("at = { queue = \"fifo\" }\nmiddle", "at = { limit = \"9p\" }\nmiddle", "is pooled"),
        (
            "metric = \"use\", at = { queue = \"fifo\" } }\n\n",
            "metric = \"p\", at = {} }\n\n",
            "computed from other metrics",
        ),
        ("x = \"rate\"", "x = \"speed\"", "there is no axis \"speed\""),
        ("x = \"rate\"", "", "give `x`"),
        ("values = [\"fifo\", \"fq\"]", "", "has no values"),
    ] {
        let error = broken(from, to);
        assert!(error.contains(says), "{to}: {error}");
    }
}

#[test]
fn every_controller_is_each_that_is_a_flow_of_its_own() {
    let text = file().replacen("values = [\"fifo\", \"fq\"]", "values = [\"fq\"]\nevery_controller = true", 1);
    let text = text.replace("{ queue = \"fifo\" }", "{ queue = \"fq\" }");
    let study = Study::parse(&text, "test.toml").expect("a study");
    let labels = study.axes[0].labels();
    assert_eq!(labels[..2], ["fq", "new_reno"]);
    assert!(labels.iter().any(|label| label == "bbr") && !labels.iter().any(|label| label == "tonopah"), "{labels:?}");
}

#[test]
fn values_name_other_axes_and_leave_flows_out() {
    let text = file().replacen(
        "values = [\"fifo\", \"fq\"]",
        "values = [{ label = \"fifo\", kind = \"fifo\", limit = \"$limit\" }, \"fq\"]\n[[axis]]\nname = \"others\"\nvalues = [0, 2]",
        1,
    );
    let text = text.replacen(
        "[[scenario.flow]]",
        "[[scenario.flow]]\nname = \"other\"\ncount = \"$others\"\nrtt = \"20ms\"\nroute = [\"link\"]\n[[scenario.flow]]",
        1,
    );
    let study = Study::parse(&text, "test.toml").expect("a study");
    let cells = study.cells(Level::Default).expect("cells");
    let scenario = |n: usize| cells[n].scenario(1).expect("a scenario");
    assert_eq!(scenario(1).hops[0].queue.to_string(), "fifo:limit=20p");
    assert_eq!((scenario(0).flows.len(), scenario(6).flows.len()), (1, 2), "{:?}", cells[6].labels);
    let own = text.replacen("limit = \"$limit\" }", "limit = \"$queue\" }", 1);
    let error =
        Study::parse(&own, "test.toml").and_then(|study| study.cells(Level::Quick).map(drop)).expect_err("itself");
    assert!(error.to_string().contains("$queue is no axis"), "{error}");
}
