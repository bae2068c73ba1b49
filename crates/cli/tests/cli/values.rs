//! A command prints and draws from the runs in memory. The folder that it leaves gives the same output, byte for byte.
use crate::support::Place;
use narrows_report::{Comparison, page, svg, terminal};
use std::fs;

/// A trace, a hop with gauges on the way back, a flow without series, one that starts late, and one that does not send bulk data.
const SCENARIO: &str = "duration = \"4s\"\nwarmup = \"1s\"\nrecord = { flows = 2, gauges = true }\n\
    [[hop]]\nname = \"down\"\nrate = { trace = \"lte.mahi\" }\nqueue = \"fq_codel\"\n\
    [[hop]]\nname = \"up\"\nrate = \"2mbit\"\ndelay = \"5ms\"\nqueue = { kind = \"cocoa\", multiplier = 1.25 }\n\
    [[flow]]\nname = \"bulk\"\ncount = 2\nrtt = \"40ms\"\nroute = [\"down\"]\nback = [\"up\"]\n\
    [[flow]]\nname = \"late\"\ncontroller = \"new_reno\"\nrtt = \"40ms\"\nroute = [\"down\"]\nstart = \"3900ms\"\n\
    [[flow]]\nname = \"call\"\ntraffic = \"thin\"\nrtt = \"20ms\"\nroute = [\"up\"]\n";

/// Runs the command and compares its output and pictures with those made from its folder.
fn agrees(place: &Place, args: &[&str]) {
    let printed = place.ok(&[args, &["--out", "out", "--force"]].concat());
    let folder = place.path("out");
    let read = Comparison::load(&folder).expect("a result");
    let table = terminal::comparison(&read, &terminal::Style { width: Some(80), ..terminal::Style::default() });
    assert_eq!(printed.split("\nout/report.html").next(), Some(table.as_str()), "{args:?}");
    let html = fs::read_to_string(folder.join("report.html")).expect("a page");
    assert!(html == page::render(&read).expect("a page"), "{args:?}: the page");
    for plot in svg::PLOTS {
        let drawn = plot.draw(&read).map(|drawn| drawn.expect("a picture"));
        let kept = fs::read_to_string(folder.join("svg").join(format!("{}.svg", plot.name))).ok();
        assert!(drawn == kept, "{args:?}: {}", plot.name);
    }
}

#[test]
fn the_folder_of_a_run_gives_what_was_printed() {
    let place = Place::new("values_run");
    place.write("lte.mahi", "0\n1\n1\n3\n6\n8\n");
    place.write("values.toml", SCENARIO);
    agrees(&place, &["run", "values.toml"]);
    agrees(&place, &["run", "values.toml", "--runs", "3"]);
}

#[test]
fn the_folder_of_a_comparison_gives_what_was_printed() {
    let place = Place::new("values_compare");
    let common = ["compare", "--rate", "5mbit", "--rtt", "20ms", "--duration", "2s", "--warmup", "0s"];
    let queues = ["--flows", "2xcubic,1xthin", "--queues", "fq_codel,fifo:limit=50p,codel:target=10ms,fifo"];
    agrees(&place, &[&common[..], &queues, &["--runs", "2"]].concat());
    agrees(&place, &[&common[..], &["--queues", "cocoa,sfq"]].concat());
}
