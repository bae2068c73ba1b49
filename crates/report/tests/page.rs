//! The page: self-contained, whole, and safe to open.
mod sample;
use narrows_report::page;
use sample::{QUEUES, comparison};

fn rendered(flows: &[&str], runs: u64) -> String {
    page::render(&comparison(&QUEUES, flows, runs)).expect("the sample can be rendered")
}

#[test]
fn nothing_is_loaded_from_elsewhere() {
    let html = rendered(&["cubic.0", "cubic.1", "new_reno", "web"], 3);
    for attribute in ["src=\"http", "src='http", "href=\"http", "url(http", "src=\"//", "@import"] {
        assert!(!html.contains(attribute), "the page has {attribute}");
    }
    assert!(!html.contains("<link"), "the page links to another file");
}

#[test]
fn every_queue_has_its_row() {
    let html = rendered(&["cubic"], 5);
    for queue in &QUEUES {
        assert!(html.contains(queue.0), "{} is missing", queue.0);
    }
}

#[test]
fn names_cannot_break_out_of_the_page() {
    let html = rendered(&["</script><img src=x>"], 1);
    assert!(!html.contains("</script><img"), "a flow's name ends the script");
    assert!(!html.contains("<img src=x>"), "a flow's name becomes an element");
}
