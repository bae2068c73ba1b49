//! The program `narrows` with a queue, a controller and a detector of our own.
use narrows::Extensions;
use std::process::ExitCode;

mod head_drop;
mod scalable;
mod srtt_gap;

fn main() -> ExitCode {
    narrows::main_with(
        Extensions::new()
            .queue::<head_drop::HeadDrop>("head_drop", "A full queue drops the packet that waited longest.")
            .controller::<scalable::Scalable>("scalable", "One packet more per hundred acknowledged (Kelly 2003).")
            .detector::<srtt_gap::SrttGap>("srtt_gap", "Compares the smoothed RTTs of two subflows."),
    )
}
