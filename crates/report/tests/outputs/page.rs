//! The page.
use crate::sample::{QUEUES, Queue, comparison};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use narrows_report::{Comparison, page};
use narrows_results::summary::{MadeIn, Passing};

/// Renders a page and leaves it where a person can look at it.
fn render(name: &str, comparison: &Comparison) -> String {
    let html = page::render(comparison).expect(name);
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(path, &html).expect("the target folder can be written");
    html
}

/// A block of the page, inflated.
fn block(html: &str, id: &str) -> String {
    let tag = format!("id=\"{id}\">");
    let start = html.find(&tag).expect(id) + tag.len();
    let end = start + html[start..].find("</script>").expect(id);
    let bytes = BASE64_STANDARD.decode(html[start..end].trim()).expect(id);
    let inflated = miniz_oxide::inflate::decompress_to_vec_zlib(&bytes).expect(id);
    String::from_utf8(inflated).expect(id)
}

/// The page without its two packed blocks.
fn markup(html: &str) -> &str {
    &html[..html.find("<script type=\"application/octet-stream\"").expect("the page has data")]
}

#[test]
fn it_loads_nothing_and_says_so() {
    let html = render("comparison.html", &comparison(&QUEUES, &["cubic"], 5));
    let script = &html[html.rfind("<script>").expect("the page has a script")..];
    for part in [markup(&html), script] {
        // The name of a namespace is not loaded.
        assert!(!part.replace("http://www.w3.org/2000/svg", "").contains("://"), "a page without addresses");
        assert!(!part.contains("src=") && !part.contains("href=") && !part.contains("url("), "a page without loads");
    }
    assert!(html.contains("default-src 'none'"));
    assert!(html.len() < 3_000_000, "{} bytes", html.len());
}

#[test]
fn the_library_and_the_lines_are_in_it() {
    let html = render("flows.html", &comparison(&QUEUES, &["cubic.0", "cubic.1", "new_reno", "web"], 3));
    assert!(block(&html, "library").contains("plotly.js v"));
    let data: serde_json::Value = serde_json::from_str(&block(&html, "data")).expect("JSON");
    let lines = data["lines"].as_array().expect("lines");
    let of = |g: usize, source: &str, metric: &str| {
        lines.iter().filter(|l| l["g"] == g && l["r"] == 0 && l["s"] == source && l["m"] == metric).count()
    };
    for g in 0..QUEUES.len() {
        assert_eq!(of(g, "hop:bottleneck", "queue_packets"), 1);
        assert_eq!(of(g, "all", "cwnd_packets"), 1);
        assert_eq!(of(g, "group:cubic", "rtt_ms"), 1);
        assert_eq!(of(g, "flow:new_reno", "rtt_ms"), 1);
    }
    // Three runs, and their mean with a band that holds it.
    assert_eq!(data["runs"].as_array().map(Vec::len), Some(4));
    let mean = lines.iter().find(|l| l["r"] == 3 && l["s"] == "all" && l["m"] == "rtt_ms").expect("a mean");
    let values = |of: &serde_json::Value| -> Vec<f64> {
        of.as_array().expect("numbers").iter().filter_map(serde_json::Value::as_f64).collect()
    };
    let [low, mean, high] = [&mean["band"][0], &mean["y"], &mean["band"][1]].map(values);
    assert!(!mean.is_empty() && low.len() == mean.len() && high.len() == mean.len());
    assert!((0..mean.len()).all(|i| low[i] <= mean[i] && mean[i] <= high[i]));
    assert!((0..mean.len()).any(|i| low[i] < high[i]), "the runs differ");
    let choices: Vec<&str> = data["flows"].as_array().expect("flows").iter().filter_map(|f| f["id"].as_str()).collect();
    assert_eq!(choices[..3], ["all", "each", "group:cubic"]);
}

#[test]
fn names_and_scenarios_are_escaped() {
    let mut sample = comparison(&[Queue("<b>&\"x", 50.0, "aqm")], &["<i>flow"], 1);
    sample.title = "<script>alert(1)</script>".into();
    let run = &mut sample.groups[0].runs[0];
    run.result.summary.hops[0].drops.by_reason = [("<u>".to_owned(), 3)].into();
    run.scenario_text = Some("</code></pre><script>alert(2)</script>".into());
    let html = render("escaped.html", &sample);
    let markup = markup(&html);
    for bad in ["<b>&", "<i>flow", "<script>alert", "<u>", "</code></pre><script>"] {
        assert!(!markup.contains(bad), "{bad} is in the page as it is");
    }
}

#[test]
fn long_series_are_thinned_and_many_runs_left_out() {
    let mut sample = comparison(&QUEUES[..2], &["cubic"], 2);
    for group in &mut sample.groups {
        for series in group.runs.iter_mut().flat_map(|run| &mut run.result.series) {
            series.points = (0..200_000).map(|i| (f64::from(i) * 1e-3, f64::from(i % 97))).collect();
        }
    }
    let html = render("long.html", &sample);
    let data: serde_json::Value = serde_json::from_str(&block(&html, "data")).expect("JSON");
    for line in data["lines"].as_array().expect("lines") {
        assert!(line["y"].as_array().expect("y").len() <= 2000);
    }
}

#[test]
fn what_is_missing_is_left_out() {
    let mut sample = comparison(&QUEUES[..2], &["cubic"], 1);
    for run in sample.groups.iter_mut().flat_map(|group| &mut group.runs) {
        run.result.series.clear();
        run.result.cdfs.clear();
        run.result.summary.hops[0].drops = Default::default();
        run.scenario_text = None;
    }
    let html = render("bare.html", &sample);
    assert!(!markup(&html).contains("Drops by reason") && !html.contains("Scenario as run"));
    sample.groups[0].runs[0].result.summary.hops.clear();
    sample.groups[1].runs.clear();
    render("emptier.html", &sample);
    sample.groups.clear();
    render("empty.html", &sample);
}

#[test]
fn a_column_without_a_figure_is_left_out() {
    let mut sample = comparison(&QUEUES[..2], &["cubic"], 1);
    assert!(markup(&render("all-columns.html", &sample)).contains(">RTT<small>"));
    for flow in sample.groups.iter_mut().flat_map(|group| &mut group.runs[0].result.summary.flows) {
        flow.rtt_ms = None;
    }
    let html = render("no-rtt.html", &sample);
    assert!(!markup(&html).contains(">RTT<small>") && markup(&html).contains("goodput<small>"));
}

#[test]
fn names_are_the_users() {
    let mut sample = comparison(&QUEUES[..1], &["cubic"], 1);
    let text = r#"
        duration = "1s"
        [[hop]]
        name = "radio"
        rate = "10mbit"
        queue = "fifo"
        [[flow]]
        name = "robot"
        command = "python3 snd.py <fast>"
        rtt = "10ms"
        route = ["radio"]"#;
    let parsed = narrows_scenario::Scenario::parse(text, "t.toml", &narrows_scenario::NoTraces);
    let run = &mut sample.groups[0].runs[0];
    run.scenario = Some(parsed.expect("a scenario"));
    let page = render("named.html", &sample);
    assert!(markup(&page).contains("<dt>Flows</dt><dd>robot (python3 snd.py &#60;fast&#62;)</dd>"));
    sample.title = "python3".to_owned();
    assert!(render("titled.html", &sample).contains("<h1>python3 snd.py &#60;fast&#62;</h1>"));
}

#[test]
fn how_times_were_kept_is_on_it() {
    let mut live = comparison(&QUEUES[..1], &["cubic"], 1);
    assert!(!markup(&render("virtual.html", &live)).contains("kept its times"));
    live.groups[0].runs[0].result.summary.timing = Some(crate::sample::timing(0.003));
    let html = render("live.html", &live);
    assert!(html.contains("<p class=\"note\">kept its times: 99 % within 0.08 ms, at worst 4 ms.</p>"));
    let warning = "<p class=\"note warning\">fell behind by 4 ms, 0.3 % of packets by more than 1 ms.</p>";
    assert!(html.contains(warning));
}

#[test]
fn the_kernels_of_the_runs_are_on_it() {
    let mut two = comparison(&QUEUES[..2], &["cubic"], 1);
    assert!(!markup(&render("simulated.html", &two)).contains("<dt>World"));
    let worlds = [("live", "6.1.0-50-amd64", Passing::Real), ("kernel", "7.2.12+deb13-cloud-amd64", Passing::Virtual)];
    for (group, (name, linux, time)) in two.groups.iter_mut().zip(worlds) {
        group.runs[0].result.summary.world = Some(MadeIn { name: name.into(), linux: linux.into(), time });
    }
    let both = "<dt>Worlds</dt><dd>kernel, Linux 7.2.12+deb13-cloud-amd64, virtual time; live, Linux 6.1.0-50-amd64, real time</dd>";
    assert!(render("worlds.html", &two).contains(both));
}

#[test]
fn identical_runs_show_no_interval() {
    let mut copies = comparison(&QUEUES[..1], &["cubic"], 3);
    let first = copies.groups[0].runs[0].clone();
    copies.groups[0].runs[1..].iter_mut().for_each(|run| *run = first.clone());
    let html = render("copies.html", &copies);
    let page = markup(&html);
    assert!(page.contains("3 identical runs") && page.contains("All 3 runs are identical"), "it says so");
    assert!(!page.contains('±'), "no interval");
    let varied = comparison(&QUEUES[..1], &["cubic"], 3);
    assert!(markup(&render("varied.html", &varied)).contains("Means of 3 runs, ±"));
}
