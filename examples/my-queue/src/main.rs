//! The program `narrows` with a queue and a controller of our own.
use narrows::Extensions;
use std::process::ExitCode;

mod head_drop;
mod scalable;

fn main() -> ExitCode {
    narrows::main_with(
        Extensions::new()
            .queue::<head_drop::HeadDrop>("head_drop", "A full queue drops the packet that waited longest.")
            .controller::<scalable::Scalable>("scalable", "One packet more per hundred acknowledged (Kelly 2003)."),
    )
}
