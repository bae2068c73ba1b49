//! Several hops: figures belong to hops, and flows to the hops that they cross.
use crate::sample::{QUEUES, comparison};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use narrows_report::svg::PLOTS;
use narrows_report::terminal::{self, Style};
use narrows_report::{Comparison, Table, page};
use narrows_results::summary::Drops;
use narrows_scenario::{NoTraces, Scenario};
use std::path::Path;

/// A parking lot: one flow crosses both hops, the others one each; what they send back crosses a third.
const PARKING_LOT: &str = r#"
duration = "60s"
[[hop]]
name = "first"
rate = "100mbit"
queue = "fq_codel"
[[hop]]
name = "second"
rate = "100mbit"
queue = "cake"
[[hop]]
name = "uplink"
rate = "100mbit"
queue = "fifo"
[[flow]]
name = "long"
rtt = "50ms"
route = ["first", "second"]
back = ["uplink"]
[[flow]]
name = "near"
count = 2
rtt = "50ms"
route = ["first"]
[[flow]]
name = "far"
rtt = "50ms"
route = ["second"]
"#;

fn parking_lot() -> Comparison {
    let mut lot = comparison(&QUEUES[..1], &["long", "near.0", "near.1", "far"], 1);
    let run = &mut lot.groups[0].runs[0];
    run.scenario = Some(Scenario::parse(PARKING_LOT, "lot.toml", &NoTraces).expect("it is legal"));
    let hop = run.result.summary.hops.remove(0);
    for (name, queue, drops, mean) in
        [("first", "fq_codel", 4190, 50.0), ("second", "cake", 2402, 20.0), ("uplink", "fifo", 0, 1.0)]
    {
        let mut hop = hop.clone();
        (hop.name, hop.queue) = (name.into(), queue.into());
        hop.queue_packets.as_mut().expect("it is measured").mean = mean;
        hop.drops = Drops { total: drops, by_reason: [("aqm".to_owned(), drops)].into() };
        run.result.summary.hops.push(hop);
    }
    for (flow, rtt, goodput) in [(0, 90.0, 10.0), (1, 60.0, 20.0), (2, 60.0, 20.0), (3, 70.0, 40.0)] {
        let flow = &mut run.result.summary.flows[flow];
        (flow.goodput_mbit, flow.throughput_mbit) = (goodput, goodput);
        flow.rtt_ms.as_mut().expect("an RTT").mean = rtt;
    }
    let of_hop: Vec<_> = run.result.series.iter().filter(|s| s.source == "hop:bottleneck").cloned().collect();
    run.result.series.retain(|s| s.source != "hop:bottleneck");
    for name in ["first", "second", "uplink"] {
        run.result
            .series
            .extend(of_hop.iter().map(|s| narrows_results::Series { source: format!("hop:{name}"), ..s.clone() }));
    }
    // Each flow has an RTT of its own all the time.
    for (name, rtt) in [("long", 90.0), ("near.0", 60.0), ("near.1", 60.0), ("far", 70.0)] {
        let source = format!("flow:{name}");
        let series =
            run.result.series.iter_mut().find(|s| s.source == source && s.metric == "rtt_ms").expect("a series");
        series.points.iter_mut().for_each(|point| point.1 = rtt);
    }
    lot.groups[0].label = "fq_codel".into();
    lot
}

/// A single group has no column for its queue: that would be one hop's.
#[test]
fn applications_behind_several_hops_have_no_queue_of_their_own() {
    let mut lot = parking_lot();
    let delay = lot.groups[0].runs[0].result.summary.hops[0].sojourn_ms;
    let far = &mut lot.groups[0].runs[0].result.summary.flows[3];
    far.application = Some(narrows_results::summary::Application { one_way_ms: delay, ..Default::default() });
    let head = |lot: &Comparison| -> String {
        let table = Table::of_applications(lot).expect("a flow is an application's");
        terminal::table(&table, &Style::default()).lines().next().expect("a head").to_owned()
    };
    assert!(head(&lot).starts_with("flows "), "{}", head(&lot));
    lot.groups.push(lot.groups[0].clone());
    assert!(head(&lot).starts_with("configuration  flows "), "{}", head(&lot));
}

fn row<'a>(text: &'a str, begins: &str) -> Vec<&'a str> {
    let line = text.lines().find(|line| line.starts_with(begins)).unwrap_or_else(|| panic!("{begins} in\n{text}"));
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

#[test]
fn each_hop_has_the_figures_of_the_flows_that_cross_it() {
    let text = terminal::comparison(&parking_lot(), &Style::default());
    // RTTs weighted by throughput: (90·10 + 60·40) ÷ 50 and (90·10 + 70·40) ÷ 50; Jain of 10, 20, 20 and of 10, 40.
    let first = row(&text, "first");
    assert_eq!(
        (first[1], first[6], first[8], first[9], first[11]),
        ("fq_codel", "66.0", "50.0", "4190", "0.926"),
        "{text}"
    );
    let second = row(&text, "second");
    assert_eq!(
        (second[1], second[6], second[8], second[9], second[11]),
        ("cake", "74.0", "50.0", "2402", "0.735"),
        "{text}"
    );
    // No data cross the uplink, and not all flows share a hop.
    let uplink = row(&text, "uplink");
    assert_eq!((uplink[1], uplink[6], uplink[8], uplink[11]), ("fifo", "–", "–", "–"), "{text}");
    let all = row(&text, "all flows");
    assert_eq!((all[6 - 1], all[8 - 1], *all.last().expect("cells")), ("–", "90.0", "–"), "{text}");
    // Flows stand beside the hops that they cross, not under a queue.
    assert!(text.contains("first (fq_codel), second (cake); back uplink (fifo)"), "{text}");
    assert_eq!((row(&text, "near ×2")[1], row(&text, "far")[1]), ("first (fq_codel)", "second (cake)"), "{text}");
}

/// A block of the page, inflated.
fn data(html: &str) -> serde_json::Value {
    let start = html.find("id=\"data\">").expect("data") + 10;
    let end = start + html[start..].find("</script>").expect("its end");
    let bytes = BASE64_STANDARD.decode(html[start..end].trim()).expect("base64");
    serde_json::from_slice(&miniz_oxide::inflate::decompress_to_vec_zlib(&bytes).expect("zlib")).expect("JSON")
}

#[test]
fn drops_are_those_of_the_queue_where_they_happened() {
    let html = page::render(&parking_lot()).expect("a page");
    let table = &html[html.find("Drops by reason").expect("the table")..];
    let table: String = table[..table.find("</table>").expect("its end")].replace(['\n', ' '], "");
    assert!(!table.contains("6592"), "a sum over queues belongs to none of them: {table}");
    for (hop, queue, drops) in [("first", "fq_codel", "4190"), ("second", "cake", "2402")] {
        let row = table.split("<tr").find(|row| row.contains(&format!("</span>{hop}</th>"))).expect(hop);
        assert!(row.contains(&format!(">{queue}<")) && row.contains(&format!(">{drops}<")), "{row}");
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("parking-lot.html");
    std::fs::write(path, html).expect("the target folder can be written");
}

#[test]
fn charts_and_legend_follow_the_chosen_hop() {
    let data = data(&page::render(&parking_lot()).expect("a page"));
    assert_eq!(data["groups"][0]["at"], serde_json::json!(["fq_codel", "cake", "fifo"]));
    let lines = data["lines"].as_array().expect("lines");
    let rtt = |hop: usize| {
        let is_here = |line: &&serde_json::Value| line["at"].as_array().is_some_and(|at| at.contains(&hop.into()));
        let all = |line: &&serde_json::Value| line["s"] == "all" && line["m"] == "rtt_ms";
        let found: Vec<_> = lines.iter().filter(all).filter(is_here).collect();
        assert_eq!(found.len(), 1, "one line at each hop");
        found[0]["y"][0].as_f64().expect("a number")
    };
    // Means of the flows that cross it; at the uplink, of the one whose acknowledgments do.
    assert_eq!((rtt(0), rtt(1), rtt(2)), (70.0, 80.0, 90.0));
    let flows = data["flows"].as_array().expect("flows");
    let at = |id: &str| flows.iter().find(|flow| flow["id"] == id).expect(id)["at"].clone();
    assert_eq!((at("flow:long"), at("flow:far")), (serde_json::json!([0, 1, 2]), serde_json::json!([1])));
    assert_eq!(at("group:near"), serde_json::json!([0]));
}

#[test]
fn figures_are_of_one_hop_and_its_flows() {
    let lot = parking_lot();
    let svg = |name: &str| {
        let plot = PLOTS.into_iter().find(|plot| plot.name == name).expect(name);
        plot.draw(&lot).expect(name).expect(name)
    };
    // The hop in focus is the first, which three flows cross.
    assert!(svg("queue").contains("Queue at first (packets)"));
    assert!(svg("rtt").contains("RTT, mean of 3 flows at first (ms)"), "{}", svg("rtt"));
}

#[test]
fn of_very_many_hops_those_with_the_longest_queues_are_shown() {
    let mut lot = parking_lot();
    let summary = &mut lot.groups[0].runs[0].result.summary;
    let hop = summary.hops[2].clone();
    for n in 0..20_000 {
        let mut hop = hop.clone();
        hop.name = format!("relay.{n}");
        hop.queue_packets.as_mut().expect("it is measured").mean = f64::from(n % 1000) / 1000.0;
        summary.hops.push(hop);
    }
    let text = terminal::comparison(&lot, &Style::default());
    let relays = text.lines().filter(|line| line.starts_with("relay.")).count();
    assert_eq!(relays, 29, "32 hops in all, three of them with longer queues:\n{text}");
    assert!(text.contains("shown are the 32 of 20003 hops with the longest queues; summary.json has all"), "{text}");
    assert!(["first", "second", "relay.999", "all flows"].iter().all(|name| text.contains(name)), "{text}");
    let page = page::render(&lot).expect("a page");
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
    assert_eq!(lot.focus(), Some("first"));
}
