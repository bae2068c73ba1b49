//! The program `narrows` with queues, a controller and a detector of our own.
use narrows::Extensions;
use std::process::ExitCode;

mod delay_mark;
mod head_drop;
mod scalable;
mod srtt_gap;

fn main() -> ExitCode {
    narrows::main_with(
        Extensions::new()
            .queue::<head_drop::HeadDrop>("head_drop", "A full queue drops the packet that waited longest.")
            .queue::<delay_mark::DelayMark>(
                "delay_mark",
                "Marks or drops at random, so that the queuing delay stays near a target.",
            )
            .controller::<scalable::Scalable>("scalable", "One packet more per hundred acknowledged (Kelly 2003).")
            .detector::<srtt_gap::SrttGap>("srtt_gap", "Compares the smoothed RTTs of two subflows."),
    )
}
