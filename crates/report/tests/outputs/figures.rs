//! SVG figures.
use crate::sample::{QUEUES, Queue, comparison};
use narrows_core::Span;
use narrows_report::Comparison;
use narrows_report::draw::Form;
use narrows_report::plot::{self, Request};
use narrows_report::svg::PLOTS;

#[test]
fn figures_are_well_formed_and_the_same_every_time() {
    let sample = comparison(&QUEUES, &["cubic.0", "cubic.1"], 2);
    for plot in PLOTS {
        let svg = plot.draw(&sample).expect(plot.name).expect(plot.name);
        let document = roxmltree::Document::parse(&svg).expect(plot.name);
        assert_eq!(document.root_element().attribute("width"), Some("640"));
        let drawn = document.descendants().filter(|n| n.has_tag_name("polyline")).count();
        assert!(drawn >= QUEUES.len(), "{}: {drawn} lines", plot.name);
        let texts: Vec<&str> = document.descendants().filter_map(|n| n.text()).map(str::trim).collect();
        assert!(QUEUES.iter().all(|queue| texts.contains(&queue.0)), "{}: {texts:?}", plot.name);
        assert_eq!(svg, plot.draw(&sample).expect(plot.name).expect(plot.name));
        let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}.svg", plot.name));
        std::fs::write(path, svg).expect("the target folder can be written");
    }
}

#[test]
fn names_are_escaped_and_missing_quantities_left_out() {
    let mut sample = comparison(&[Queue("a<b>&\"c\"", 50.0, "aqm")], &["x"], 1);
    let run = &mut sample.groups[0].runs[0];
    run.result.series.retain(|s| s.metric != "rtt_ms");
    for plot in PLOTS {
        match plot.draw(&sample) {
            Some(svg) => {
                roxmltree::Document::parse(&svg.expect(plot.name)).expect(plot.name);
            }
            None => assert_eq!(plot.name, "rtt"),
        }
    }
}

#[test]
fn odd_series_are_drawn_or_refused_but_never_panic() {
    for points in [vec![], vec![(0.0, 0.0)], vec![(1.0, f64::NAN)], vec![(0.0, 5.0), (0.0, 5.0)], vec![(0.0, 1e300)]] {
        let mut sample = comparison(&QUEUES[..1], &["x"], 1);
        let result = &mut sample.groups[0].runs[0].result;
        result.series.iter_mut().for_each(|s| s.points.clone_from(&points));
        result.cdfs.iter_mut().for_each(|c| c.points.clone_from(&points));
        for plot in PLOTS {
            if let Some(Ok(svg)) = plot.draw(&sample) {
                roxmltree::Document::parse(&svg).expect(plot.name);
            }
        }
    }
}

fn results() -> Vec<(String, Comparison)> {
    let one = |name: &str, queues: &[Queue], seeds| {
        (name.to_owned(), comparison(queues, &["cubic.0", "cubic.1", "call"], seeds))
    };
    vec![one("old", &QUEUES[..1], 1), one("new", &QUEUES[1..3], 3)]
}

fn request(metric: &str) -> Request {
    Request { metric: metric.to_owned(), ..Request::default() }
}

#[test]
fn several_results_share_axes() {
    let labels = |request: &Request| -> Vec<String> {
        let drawing = request.drawing(&results()).expect("it is there");
        drawing.lines.into_iter().map(|line| line.label).collect()
    };
    assert_eq!(labels(&request("queue")), ["old", "new: codel", "new: sfq"]);
    assert_eq!(labels(&request("RTT_ms")), labels(&request("rtt")));
    let each = Request { each: true, ..request("rtt") };
    assert_eq!(labels(&each)[..3], ["old: cubic", "old: call", "new: codel: cubic"]);
    let drawing = each.drawing(&results()).expect("it is there");
    assert_eq!(drawing.y, "RTT, mean of each kind (ms)");
    let y = |request: Request| request.drawing(&results()).expect("it is there").y;
    assert_eq!(y(request("cwnd")), "Congestion window, sum of 3 flows (packets)");
    assert_eq!(y(Request { at: Some("cubic".to_owned()), ..request("rtt") }), "RTT of cubic, mean of 2 flows (ms)");
    assert_eq!(y(Request { at: Some("call".to_owned()), ..request("rtt") }), "RTT of call (ms)");
    assert_eq!(y(request("queue")), "Queue (packets)");
    assert_eq!(drawing.lines[0].paint.light, drawing.lines[1].paint.light, "a group has one colour");
    assert_ne!(drawing.lines[0].paint.dash, drawing.lines[1].paint.dash, "its flows differ by dashes");
    assert!(drawing.lines[0].band.is_empty(), "one run has no range");
    let line = &drawing.lines[2];
    assert!(line.band.iter().all(|p| p.low <= p.mean && p.mean <= p.high) && line.band.iter().any(|p| p.low < p.high));
    let at = Request { at: Some("call".to_owned()), cdf: true, ..request("rtt") };
    assert_eq!(at.drawing(&results()).expect("it is there").x, "RTT of call (ms)");
}

#[test]
fn figures_have_three_forms_each_the_same_every_time() {
    let drawing = Request { each: true, ..request("rtt") }.drawing(&results()).expect("it is there");
    for form in [Form::Svg, Form::Pdf, Form::Pgf] {
        let file = plot::file(&drawing, form).expect("it is drawn");
        assert!(plot::is_own(&file[..64]), "{form:?} is known by its beginning");
        assert_eq!(file, plot::file(&drawing, form).expect("it is drawn"));
    }
    let svg = String::from_utf8(plot::file(&drawing, Form::Svg).expect("it is drawn")).expect("UTF-8");
    roxmltree::Document::parse(&svg).expect("SVG");
    let pgf = String::from_utf8(plot::file(&drawing, Form::Pgf).expect("it is drawn")).expect("UTF-8");
    assert!(pgf.contains("{RTT, mean of each kind (ms)}") && pgf.contains("{new: codel}"), "{}", &pgf[..500]);
    for others in [&b"%PDF-1.4\n%\xe2\xe3\xcf\xd3"[..], b"<svg xmlns=", b"\\begin{tikzpicture}", b""] {
        assert!(!plot::is_own(others));
    }
}

#[test]
fn a_missing_quantity_is_named_with_what_is_there() {
    let error = |request: Request| request.drawing(&results()).expect_err("it is not there");
    let unknown = error(request("rt"));
    assert!(unknown.contains("allowed: cwnd, queue, rtt, throughput (did you mean \"rtt\"?)"), "{unknown}");
    let cdf = error(Request { cdf: true, ..request("cwnd") });
    assert!(cdf.contains("no such distribution; allowed: rtt, sojourn"), "{cdf}");
    let at = error(Request { at: Some("cubik".to_owned()), ..request("rtt") });
    assert!(at.contains("--at cubik") && at.contains("bottleneck") && at.contains("did you mean \"cubic\"?"), "{at}");
    let of_a_run = error(request("goodput"));
    assert!(of_a_run.contains("; goodput is one number for a whole run: see the tables"), "{of_a_run}");
    assert!(!error(request("mean")).contains("for a whole run"), "it is part of a name");
    let long = error(Request { every: Some(Span::s(1000)), ..request("rtt") });
    assert!(long.contains("--every 1000s") && long.contains("at most half"), "{long}");
    assert!(error(Request { every: Some(Span::ZERO), ..request("rtt") }).contains("above 0s"));
    // A flow has no queue.
    let lacks = error(Request { at: Some("call".to_owned()), ..request("queue") });
    assert!(lacks.contains("\"call\" has no queue_packets"), "{lacks}");
}
