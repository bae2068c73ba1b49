//! `narrows plot`, and the width of tables.
use crate::support::{Place, text};
use std::fs;

fn compare(place: &Place, name: &str, flags: &[&str]) -> String {
    let fixed = ["compare", "-t", "4", "--rate", "10mbit", "--queues", "fifo,fq_codel", "--out", name];
    place.ok(&[&fixed[..], flags].concat())
}

#[test]
fn results_become_one_figure_in_three_forms() {
    let place = Place::new("plot-forms");
    compare(&place, "short", &["--rtt", "10ms"]);
    compare(&place, "long", &["--rtt", "80ms", "--runs", "2"]);
    let made = place.ok(&["plot", "short", "long/", "--metric", "rtt", "-o", "a.svg", "-o", "a.pdf", "-o", "b.tex"]);
    assert_eq!(made, "a.svg\na.pdf\nb.tex\n");
    let read = |name: &str| fs::read(place.path(name)).expect(name);
    let svg = text(&read("a.svg"));
    for label in ["short: fifo", "short: fq_codel", "long: fifo", "long: fq_codel", "RTT (ms)", "Time (s)"] {
        assert!(svg.contains(label), "{label} is in the figure");
    }
    assert!(svg.contains("<polygon"), "several seeds have a band");
    assert!(read("a.pdf").starts_with(b"%PDF-") && text(&read("b.tex")).contains("\\begin{tikzpicture}"));
    // Nothing is overwritten unasked, and another program's file never.
    let again = place.run(&["plot", "short", "--metric", "rtt", "-o", "a.pdf"]);
    assert!(!again.status.success() && text(&again.stderr).contains("`a.pdf` exists"), "{}", text(&again.stderr));
    place.ok(&["plot", "short", "--metric", "rtt", "-o", "a.pdf", "--force"]);
    place.write("thesis.pdf", "%PDF-1.4\n%somebody's own");
    let own = place.run(&["plot", "short", "--metric", "rtt", "-o", "thesis.pdf", "--force"]);
    assert!(text(&own.stderr).contains("was not written by narrows"), "{}", text(&own.stderr));
    assert_eq!(text(&read("thesis.pdf")), "%PDF-1.4\n%somebody's own");
    // Without --out the figure is called after the quantity.
    assert_eq!(place.ok(&["plot", "short", "--metric", "sojourn", "--cdf"]), "sojourn.svg\n");
}

#[test]
fn mistakes_are_named() {
    let place = Place::new("plot-mistakes");
    compare(&place, "one", &[]);
    let refused = |args: &[&str]| {
        let output = place.run(&[&["plot"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        text(&output.stderr)
    };
    assert!(refused(&["one", "--metric", "rrt"]).contains("--metric rrt: the results have no such series; allowed: "));
    assert!(refused(&["one", "--metric", "rtt", "-o", "a.png"]).contains("allowed: .svg, .pdf, .pgf, .tex"));
    assert!(refused(&["one", "--metric", "rtt", "--at", "bottleneckk"]).contains("did you mean \"bottleneck\"?"));
    assert!(refused(&["none", "--metric", "rtt"]).contains("none"));
    assert_eq!(
        place.files("."),
        place.files("one").iter().map(|f| std::path::Path::new("one").join(f)).collect::<Vec<_>>()
    );
}

#[test]
fn tables_fit_eighty_columns_unless_wide() {
    let place = Place::new("plot-wide");
    let flags = ["--flows", "2xcubic,1xnew_reno", "--runs", "3"];
    let narrow = compare(&place, "narrow", &flags);
    assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
    assert!(narrow.contains("--wide also shows: retransmits"), "{narrow}");
    let wide = compare(&place, "wide", &[&flags[..], &["--wide"]].concat());
    assert!(wide.contains("retransmits") && !wide.contains("--wide also"), "{wide}");
    assert!(wide.lines().any(|line| line.chars().count() > 100), "{wide}");
    let list = |flags: &[&str]| place.ok(&[&["list"], flags].concat());
    assert!(list(&[]).lines().all(|line| line.chars().count() <= 80 || !line.trim().contains(' ')), "the lists fit");
    assert!(list(&["--wide"]).lines().any(|line| line.chars().count() > 80));
}
