//! SVG figures.
mod sample;
use narrows_report::svg::PLOTS;
use sample::{QUEUES, Queue, comparison};

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
