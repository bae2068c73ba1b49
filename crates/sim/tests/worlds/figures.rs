//! The table of figures beside a run that has all of them.
use crate::harness::{parse, run};
use narrows_results::figure::listed;
use narrows_results::lookup::Lookup;
use narrows_results::{FIGURES, Setup};

/// Figures that only runs in real time and programs have.
const ELSEWHERE: [&str; 2] = ["timing.", "flow.active"];

#[test]
fn a_run_with_every_application_has_every_figure() {
    let scenario = parse(
        "name = \"all\"\nduration = \"30s\"\n[[hop]]\nname = \"link\"\nrate = \"20mbit\"\nqueue = \"fq_codel\"\n\
         [[flow]]\nname = \"bulk\"\ncount = 2\nrtt = \"40ms\"\nroute = [\"link\"]\n\
         [[flow]]\nname = \"call\"\ntraffic = \"call\"\nrtt = \"40ms\"\nroute = [\"link\"]\n\
         [[flow]]\nname = \"video\"\ntraffic = \"video-call\"\nrtt = \"40ms\"\nroute = [\"link\"]\n\
         [[flow]]\nname = \"thin\"\ntraffic = \"thin\"\nrtt = \"40ms\"\nroute = [\"link\"]\n\
         [[flow]]\nname = \"page\"\ncontroller = \"bbr\"\ntraffic = \"web\"\nrtt = \"40ms\"\nroute = [\"link\"]\n\
         [[flow]]\nname = \"tonopah\"\ncontroller = \"tonopah\"\ntransport = \"quic\"\nrtt = \"40ms\"\nroute = [\"link\"]\n",
    );
    let mut result = run(&scenario);
    result.summary.setup = Some(Setup::of(&scenario));
    let (lookup, flows) = (Lookup::of(&result.summary), ["bulk", "call", "video", "thin", "page", "tonopah"]);
    for (name, _) in listed() {
        let name = name.replace("REASON", "aqm");
        let paths: Vec<String> = match name.strip_prefix("flow.") {
            Some(key) => flows.iter().map(|flow| format!("flow.{flow}.{key}")).collect(),
            None => vec![name.replace("hop.", "hop.link.")],
        };
        let has_it = paths.iter().any(|path| lookup.find(path).is_ok_and(|found| !found.values.is_empty()));
        let is_elsewhere = ELSEWHERE.iter().any(|start| name.starts_with(start));
        assert_eq!(has_it, !is_elsewhere, "{name}");
    }
    let metrics = || result.series.iter().map(|series| series.metric.as_str());
    // Gauges of other queues.
    let gauges = ["drop_probability", "limit_packets", "target_ms"];
    for figure in FIGURES.iter().filter(|figure| figure.chart.is_some() && !gauges.contains(&figure.path)) {
        assert!(metrics().any(|metric| metric == figure.path), "no series {}", figure.path);
    }
}
