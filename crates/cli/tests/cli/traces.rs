//! `narrows trace`, and traces wherever a rate is taken.
use crate::support::{Place, json, text};

/// One flow over a link with this rate.
fn scenario(rate: &str) -> String {
    format!(
        "duration = \"5s\"\n[[hop]]\nname = \"link\"\nrate = {rate}\nqueue = \"fq_codel\"\n\
         [[flow]]\nname = \"bulk\"\nrtt = \"20ms\"\nroute = [\"link\"]\n"
    )
}

/// The figures of the hop.
fn hop(place: &Place, args: &[&str]) -> serde_json::Value {
    json(&place.ok(&[args, &["--json"]].concat()))["hops"][0].clone()
}

#[test]
fn a_trace_means_the_same_in_every_place() {
    let place = Place::new("trace-places");
    place.ok(&["trace", "make", "lte", "--out", "own.mahi"]);
    for (name, rate) in [
        ("built-in.toml", "\"trace:lte\""),
        ("table.toml", "{ trace = \"LTE\" }"),
        ("file.toml", "\"trace:own.mahi\""),
        ("fixed.toml", "\"50mbit\""),
    ] {
        place.write(name, &scenario(rate));
    }
    let expected = hop(&place, &["run", "built-in.toml"]);
    assert!(expected["utilisation"].as_f64().is_some_and(|share| share > 0.2), "{expected}");
    for args in [
        &["run", "table.toml"][..],
        &["run", "file.toml"],
        &["run", "fixed.toml", "--set", "hop.rate=trace:lte"],
        &["run", "fixed.toml", "--set", "hop.rate=trace:own.mahi"],
    ] {
        assert_eq!(hop(&place, args), expected, "{args:?}");
    }
    assert_ne!(hop(&place, &["run", "fixed.toml"]), expected);
    // A result has the trace beside it, and can be run again.
    place.ok(&["run", "built-in.toml", "--out", "kept"]);
    assert_eq!(hop(&place, &["run", "kept/scenario.toml"]), expected);
    // On the command line, too.
    let compared = |rate: &str| {
        let flags = ["compare", "--rate", rate, "--rtt", "20ms", "-t", "5", "--queues", "fifo", "--json"];
        json(&place.ok(&flags))[0]["hops"].clone()
    };
    assert_eq!(compared("trace:lte"), compared("trace:own.mahi"));
    assert_ne!(compared("trace:lte"), compared("5mbit"));
}

#[test]
fn losses_are_the_same_from_every_place() {
    let place = Place::new("trace-losses");
    place.write("rain.csv", "time,loss_percent\n0,0\n1,5\n2,0\n");
    place.write("table.toml", &scenario("\"20mbit\"\nloss = { trace = \"rain.csv\" }"));
    place.write("fixed.toml", &scenario("\"20mbit\""));
    let expected = hop(&place, &["run", "table.toml"]);
    assert!(expected["drops"]["by_reason"]["link_loss"].as_u64().is_some_and(|lost| lost > 20), "{expected}");
    assert_eq!(hop(&place, &["run", "fixed.toml", "--set", "hop.loss=trace:rain.csv"]), expected);
    place.ok(&["run", "table.toml", "--out", "kept"]);
    assert_eq!(hop(&place, &["run", "kept/scenario.toml"]), expected);
    let flags = ["--rate", "20mbit", "--rtt", "20ms", "-t", "5", "--queues", "fq_codel", "--json"];
    let compared =
        json(&place.ok(&[&["compare", "--loss", "trace:rain.csv"], &flags[..]].concat()))[0]["hops"][0].clone();
    assert!(compared["drops"]["by_reason"]["link_loss"].as_u64().is_some_and(|lost| lost > 20), "{compared}");
    place.write("bad.csv", "time,loss\n0,0\n1,5\n");
    let refused = place.run(&["compare", "--loss", "trace:bad.csv"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("bad.csv:3: not a loss: 5; allowed: a share from 0 to 1"), "{refused:?}");
}

#[test]
fn made_imported_and_shown() {
    let place = Place::new("trace-commands");
    let made = place.ok(&["trace", "make", "wifi", "--seed", "7", "--duration", "3s"]);
    assert_eq!(made.lines().last(), Some("3000"));
    assert_ne!(made, place.ok(&["trace", "make", "wifi", "--seed", "8", "--duration", "3s"]));
    place.ok(&["trace", "make", "wifi", "--seed", "7", "--duration", "3s", "--out", "w.mahi"]);
    assert_eq!(place.ok(&["trace", "import", "w.mahi"]), made);
    place.write("drive.csv", "time,rate\n0,12mbit\n1,6mbit\n");
    place.ok(&["trace", "import", "drive.csv", "--out", "w.mahi", "--force"]);
    // As people have them: columns of other names, a wall clock.
    let log = "timestamp,RSRP,DL_bitrate,UL_bitrate\n2022-08-11T13:41:30Z,-90,12000,300\n2022-08-11T13:41:31Z,-90,6000,12000\n";
    place.write("g-net-track.csv", log);
    assert_eq!(place.ok(&["trace", "import", "g-net-track.csv"]), place.ok(&["trace", "import", "drive.csv"]));
    let up = place.ok(&["trace", "import", "g-net-track.csv", "--column", "UL_bitrate"]);
    assert_eq!(up.lines().count(), 1025, "300 kbit/s, then 12 Mbit/s");
    let shown = json(&place.ok(&["trace", "show", "w.mahi", "--json"]));
    assert_eq!((&shown["opportunities"], &shown["period_s"]), (&1500.into(), &2.0.into()));
    assert_eq!((&shown["mean_mbit"], &shown["longest_gap_ms"]), (&9.0.into(), &2.0.into()));
}

#[test]
fn mistakes_name_the_place() {
    let place = Place::new("trace-mistakes");
    place.write("bad.csv", "time_s,rate_mbit\n0,5\n1,fast\n");
    place.write("s.toml", &scenario("\"trace:bad.csv\""));
    place.write("note.txt", "not a trace\n");
    let cases: [(&[&str], &str); 7] = [
        (&["run", "s.toml"], "bad.csv:3: not a rate; allowed: a number in mbit"),
        (&["compare", "--rate", "trace:bad.csv"], "bad.csv:3: not a rate; allowed: a number in mbit"),
        (&["run", "s.toml", "--set", "hop.rate=trace:no"], "--set hop.rate=trace:no: cannot read trace \"no\""),
        (&["compare", "--rate", "trace:"], "--rate: cannot read trace \"\""),
        (&["trace", "make", "lta"], "allowed: lte, 5g, wifi, starlink (did you mean \"lte\"?)"),
        (&["trace", "make", "lte", "--duration", "1h"], "--duration: cannot be \"1h\"; allowed: 1ms to "),
        (&["trace", "make", "lte", "--out", "note.txt", "--force"], "was not written by narrows and is left alone"),
    ];
    for (args, expected) in cases {
        let output = place.run(args);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {told}");
        assert!(told.contains(expected), "{args:?}: {told}");
    }
}
