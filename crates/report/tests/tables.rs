//! Tables as a person reads them.
mod sample;
use narrows_report::terminal::{self, Style};
use sample::{QUEUES, comparison};

#[test]
fn show() {
    for (flows, seeds) in [(vec!["cubic"], 1), (vec!["cubic"], 5), (vec!["cubic.0", "cubic.1", "new_reno", "web"], 3)] {
        println!("{}", terminal::comparison(&comparison(&QUEUES, &flows, seeds), &Style::default()));
        println!(
            "{}",
            terminal::comparison(&comparison(&QUEUES, &flows, seeds), &Style { width: Some(100), colour: true })
        );
    }
}
