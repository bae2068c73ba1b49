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

#[test]
fn a_condition_chooses_rows_and_titles_are_free() {
    let place = Place::new("plot-where");
    sweep(&place, "t.csv");
    let draw = |more: &[&str]| {
        let fixed = [
            "plot",
            "t.csv",
            "--x",
            "hop.rate",
            "--y",
            "bulk.rtt.p99",
            "--by",
            "hop.queue",
            "--force",
            "--out",
            "a.svg",
        ];
        place.run(&[&fixed[..], more].concat())
    };
    let some = draw(&[
        "--where",
        "hop.queue != fifo",
        "--where",
        "hop.rate >= 6mbit",
        "--xlabel",
        "capacity",
        "--ylabel",
        "patience",
    ]);
    assert!(some.status.success(), "{}", text(&some.stderr));
    let svg = fs::read_to_string(place.path("a.svg")).expect("a figure");
    assert!(svg.contains("capacity") && svg.contains("patience") && !svg.contains("Rate (Mbit/s)"));
    assert!(!svg.contains("fifo"), "only the other queue is drawn");
    for (condition, expected) in [
        ("hop.queue", "no relation; allowed: COLUMN RELATION VALUE"),
        ("hop.queu == fifo", "no such column; allowed: hop.rate, hop.queue"),
        ("hop.queue < fifo", "hop.queue holds text; allowed: ==, !="),
        ("hop.rate > 5ms", "hop.rate cannot be \"5ms\"; allowed: a rate"),
        ("hop.rate > 50mbit", "no run that meets --where has a number there"),
    ] {
        let refused = draw(&["--where", condition]);
        assert_eq!(refused.status.code(), Some(2), "{condition}");
        assert!(text(&refused.stderr).contains(expected), "{condition}: {}", text(&refused.stderr));
    }
}

#[test]
fn printed_tables_are_latex_or_markdown() {
    let place = Place::new("plot-tables");
    let latex = compare(&place, "a", &["--tables", "latex"]);
    assert!(latex.starts_with("\\begin{tabular}{lr") && latex.contains("fq\\_codel & "), "{latex}");
    let markdown = place.ok(&["diff", "a", "a", "--tables", "markdown"]);
    assert!(markdown.contains("| figure | a | b | b − a | % |") && markdown.contains("|---|--:|"), "{markdown}");
}

/// The table of a sweep: two rates, two queues, three seeds.
fn sweep(place: &Place, out: &str) {
    place.write(
        "S.toml",
        "duration = \"4s\"\nwarmup = \"1s\"\n[[hop]]\nname = \"link\"\nrate = \"20mbit\"\nqueue = \"fifo\"\n\
         [[flow]]\nname = \"bulk\"\nrtt = \"20ms\"\nroute = [\"link\"]\n\
         [[flow]]\nname = \"call\"\ntraffic = { kind = \"cbr\", rate = \"100kbit\", packet = \"160B\" }\nrtt = \"20ms\"\nroute = [\"link\"]\n",
    );
    let axes = ["--set", "hop.rate=5mbit,20mbit", "--set", "hop.queue=fifo,fq_codel", "--runs", "3", "--out", out];
    place.ok(&[&["sweep", "S.toml"], &axes[..]].concat());
}

/// The numbers of an attribute that lists points.
fn points(attributes: &str) -> Vec<(f64, f64)> {
    let list = attributes.split("points=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("points");
    let pair = |text: &str| text.split_once(',').map(|(x, y)| (x.parse().expect("x"), y.parse().expect("y")));
    list.split_whitespace().filter_map(pair).collect()
}

#[test]
fn a_sweeps_table_becomes_lines_with_error_bars() {
    let place = Place::new("plot-table");
    sweep(&place, "t.csv");
    sweep(&place, "t.parquet");
    let flags = ["--x", "hop.rate", "--y", "bulk.rtt.p99", "--by", "hop.queue"];
    let draw = |table: &str, more: &[&str]| {
        place.ok(&[&["plot", table], &flags[..], more, &["--force", "--out", "a.svg"]].concat());
        fs::read_to_string(place.path("a.svg")).expect("a figure")
    };
    let svg = draw("t.csv", &[]);
    assert_eq!(svg, draw("t.parquet", &[]), "both forms hold the same table");
    for label in ["Rate (Mbit/s)", "RTT p99 of bulk (ms)", "fifo", "fq_codel"] {
        assert!(svg.contains(label), "{label} is in the figure");
    }
    // The table's own means and spreads, by rate and queue.
    let table = fs::read_to_string(place.path("t.csv")).expect("a table");
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().expect("a head");
    let column = |name: &str| head.iter().position(|column| *column == name).expect(name);
    let [rate, queue, flow, rtt] = ["hop.rate_mbit", "hop.queue", "flow", "rtt_ms.p99"].map(column);
    let rows: Vec<Vec<&str>> = lines.filter(|row| row[flow] == "bulk").collect();
    let mut expected = Vec::new();
    for (at, of) in [("5", "fifo"), ("20", "fifo"), ("5", "fq_codel"), ("20", "fq_codel")] {
        let runs = rows.iter().filter(|row| row[rate] == at && row[queue] == of);
        let values: Vec<f64> = runs.map(|row| row[rtt].parse().expect("a number")).collect();
        let mean = values.iter().sum::<f64>() / 3.0;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 2.0;
        // Student's t of two degrees of freedom.
        expected.push((at.parse::<f64>().expect("a rate"), mean, 4.302_653 * (variance / 3.0).sqrt()));
    }
    // A mark is a polygon around its point: pixels are a linear map of means.
    let marks: Vec<(f64, f64)> = svg
        .split("<polygon")
        .skip(1)
        .map(points)
        .map(|corners| {
            let ends = |of: fn(&(f64, f64)) -> f64| {
                let values = || corners.iter().map(of);
                (values().fold(f64::INFINITY, f64::min) + values().fold(0.0, f64::max)) / 2.0
            };
            (ends(|p| p.0), ends(|p| p.1))
        })
        .collect();
    assert_eq!(marks.len(), 4, "{marks:?}");
    let scale = (marks[2].1 - marks[0].1) / (expected[2].1 - expected[0].1);
    assert!(scale < 0.0, "more is higher up");
    for (mark, (at, mean, _)) in marks.iter().zip(&expected) {
        assert!((mark.1 - marks[0].1 - scale * (mean - expected[0].1)).abs() < 3.0, "{mark:?} {mean}");
        assert_eq!(mark.0 == marks[0].0, *at == 5.0, "{mark:?}");
    }
    // Of an error bar every point has an upright line of twice the half-width around its mean, as far as the axis goes down.
    let uprights: Vec<Vec<(f64, f64)>> = svg.split("<polyline").skip(1).map(points).filter(|p| p.len() == 2).collect();
    let whole: Vec<_> = marks.iter().zip(&expected).filter(|(_, (_, mean, half))| half < mean).collect();
    assert!(whole.len() > 1, "{expected:?}");
    for (mark, (_, mean, half)) in whole {
        let is_bar =
            |p: &&Vec<(f64, f64)>| p[0].0 == mark.0 && p[1].0 == mark.0 && (p[0].1 + p[1].1 - 2.0 * mark.1).abs() < 4.0;
        let length = |p: &Vec<(f64, f64)>| (p[0].1 - p[1].1).abs();
        let lengths: Vec<f64> = uprights.iter().filter(is_bar).map(length).collect();
        let wanted = -2.0 * scale * half;
        assert!(lengths.iter().any(|length| (length - wanted).abs() < 4.0), "{mean} ± {half}: {wanted} of {lengths:?}");
    }
    // What the caller asks of the axes.
    let asked = draw("t.csv", &["--log", "xy", "--yrange", "10..1000", "--size", "800x500", "--title", "Bufferbloat"]);
    assert!(asked.contains("width=\"800\" height=\"500\"") && asked.contains("Bufferbloat"), "size and title");
    for label in ["\n10\n", "\n100\n", "\n1000\n", "\n5\n", "\n20\n"] {
        assert!(asked.contains(label), "{label} labels an axis");
    }
    // Figures of a hop, a line for each group of flows, and the other forms.
    place.ok(&[
        "plot",
        "t.csv",
        "--x",
        "hop.rate",
        "--y",
        "link.utilisation",
        "--by",
        "hop.queue",
        "-o",
        "u.pdf",
        "-o",
        "u.pgf",
    ]);
    assert!(text(&fs::read(place.path("u.pgf")).expect("u.pgf")).contains("Utilisation (\\%)"));
    let both = ["plot", "t.csv", "--x", "hop.rate", "--y", "goodput", "--by", "flow,hop.queue"];
    assert_eq!(place.ok(&both), "goodput.svg\n");
    let svg = fs::read_to_string(place.path("goodput.svg")).expect("a figure");
    assert!(svg.contains("call, fq_codel") && svg.contains("Goodput (Mbit/s)"));
}

#[test]
fn mistakes_with_a_table_are_named() {
    let place = Place::new("plot-table-mistakes");
    sweep(&place, "t.csv");
    place.write("other.csv", "a,b\n1,2\n");
    let good = ["--x", "hop.rate", "--y", "bulk.rtt.p99"];
    let by = ["--by", "hop.queue"];
    let cases: [(&[&str], &str); 18] = [
        (
            &["--x", "hop.rat", "--y", "bulk.rtt.p99"],
            "--x hop.rat: the table has no such column; allowed: hop.rate, hop.queue, flow, ",
        ),
        (&["--x", "hop.rat", "--y", "bulk.rtt.p99"], "(did you mean \"hop.rate\"?)"),
        (&["--x", "hop.rate", "--y", "bulk.rtt.p98"], "allowed: bulk."),
        (&["--x", "hop.rate", "--y", "bulk.rrt.p99"], "(did you mean \"bulk.rtt.p99\"?)"),
        (&["--x", "hop.rate", "--y", "call.rtt.p99"], "--y call.rtt.p99: the table has no such column; allowed: call."),
        (
            &["--x", "hop.queue", "--y", "bulk.rtt.p99"],
            "--x hop.queue: the column holds text; allowed: a column of numbers such as hop.rate",
        ),
        (
            &["--x", "hop.rate", "--y", "goodput", "--by", "hop.queue"],
            "bulk and call have it; allowed: bulk.goodput, call.goodput, or a line for each with --by flow",
        ),
        (&good, "would be a mean of runs that differ in hop.queue; name it in --by, too"),
        (&[&good[..], &["--by", "hop.queu"]].concat(), "--by hop.queu: the table has no such column"),
        (&[&good[..], &by, &["--log", "z"]].concat(), "possible values: x, y, xy"),
        (&[&good[..], &by, &["--xrange", "5"]].concat(), "allowed: two numbers in the axis's unit"),
        (&[&good[..], &by, &["--xrange", "9..5"]].concat(), "the smaller one first"),
        (&[&good[..], &by, &["--log", "y", "--yrange", "0..5"]].concat(), "a logarithmic axis begins above 0"),
        (&[&good[..], &by, &["--xrange", "50.."]].concat(), "--xrange: no value is within 50.."),
        (&[&good[..], &by, &["--size", "9x9"]].concat(), "allowed: WIDTHxHEIGHT, each from 200 to 4000"),
        (&["--x", "hop.rate"], "--y <FIGURE>"),
        (&[&good[..], &["--metric", "rtt"]].concat(), "cannot be used with"),
        (&[&good[..], &["t.csv"]].concat(), "allowed: one RESULT"),
    ];
    for (args, expected) in cases {
        let output = place.run(&[&["plot", "t.csv"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains(expected), "{args:?}: {}", text(&output.stderr));
    }
    let unread = [
        (&["t.csv", "--metric", "rtt"][..], "to draw the table of a sweep, give --x and --y"),
        (&[".", "--x", "hop.rate", "--y", "bulk.rtt.p99"], "there is no table.csv or table.parquet in it"),
    ];
    for (args, expected) in unread {
        let output = place.run(&[&["plot"], args].concat());
        assert!(text(&output.stderr).contains(expected), "{args:?}: {}", text(&output.stderr));
    }
    let other = place.run(&[&["plot", "other.csv"], &good[..]].concat());
    assert!(text(&other.stderr).contains("no table of `narrows sweep`"), "{}", text(&other.stderr));
    assert!(!place.path("bulk.rtt.p99.svg").exists(), "nothing is written");
}
