//! The page.
mod sample;
use narrows_report::{Comparison, page};
use sample::{QUEUES, Queue, comparison};

fn keep(name: &str, html: &str) {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(path, html).expect("the target folder can be written");
}

#[test]
fn show() {
    keep("one-flow.html", &page::render(&comparison(&QUEUES, &["cubic"], 5)).unwrap());
    keep(
        "many-flows.html",
        &page::render(&comparison(&QUEUES, &["cubic.0", "cubic.1", "new_reno", "web"], 3)).unwrap(),
    );
    keep("single.html", &page::render(&comparison(&QUEUES[4..], &["cubic.0", "cubic.1", "new_reno"], 1)).unwrap());
}
