//! `narrows new`: a crate to begin an algorithm with, made from an example of the book.
use crate::failure::Failure;
use crate::term;
use narrows_core::extensions::Extensions;
use narrows_core::queue::fifo::Fifo;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Make a crate for a queue of your own
#[derive(clap::Args)]
#[command(
    after_help = "  narrows new queue red_mark                             # beside a checkout in the folder narrows
  narrows new queue red_mark --narrows ~/src/narrows"
)]
pub(crate) struct New {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Make the folder NAME with Cargo.toml and src/lib.rs: a small AQM with a timer, random numbers and marks, and its test
    Queue(Queue),
}

#[derive(clap::Args)]
struct Queue {
    /// The queue's name in scenarios: small letters, digits and "_"
    #[arg(value_name = "NAME")]
    name: String,
    /// The checkout of Narrows that the crate depends on
    #[arg(long, value_name = "DIR", default_value = "narrows")]
    narrows: PathBuf,
}

/// The example that new queues begin as.
const QUEUE: &str = include_str!("../../../examples/my-queue/src/delay_mark.rs");

/// Makes the crate. Names in `taken` belong to something else.
pub(crate) fn main(args: &New, taken: &[&str]) -> Result<(), Failure> {
    let Command::Queue(Queue { name, narrows }) = &args.command;
    // The process ends soon, and a registry's names live as long as it does.
    let known: &'static str = name.clone().leak();
    Extensions::new().queue::<Fifo>(known, "").check(taken).map_err(Failure::usage)?;
    let manifest = manifest(name, narrows)?;
    let folder = Path::new(name);
    fs::create_dir(folder).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::usage(format!("`{name}` exists already; choose another name")),
        _ => Failure::write(folder, &error),
    })?;
    write(&folder.join("Cargo.toml"), &manifest)?;
    let source = folder.join("src");
    fs::create_dir(&source).map_err(|error| Failure::write(&source, &error))?;
    write(&source.join("lib.rs"), &QUEUE.replace("DelayMark", &type_name(name)).replace("Delay mark", name))?;
    term::print(&format!(
        "{name}/Cargo.toml, {name}/src/lib.rs\n`cargo test` in `{name}` checks the queue. The book's page \"A queue of your own\" adds it to a program.\n"
    ))
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    narrows_files::write_new(file, text.as_bytes()).map_err(|error| Failure::write(file, &error))
}

/// `Cargo.toml` of the crate, which depends on this checkout.
fn manifest(name: &str, narrows: &Path) -> Result<String, Failure> {
    let core = narrows.join("crates/core");
    if !core.join("Cargo.toml").is_file() {
        let shown = narrows.display();
        return Err(Failure::usage(format!(
            "--narrows: no checkout of Narrows at `{shown}`; allowed: a folder that has crates/core"
        )));
    }
    // A relative path counts from the new folder. Joining an absolute one leaves it as it is.
    let core = Path::new("..").join(core);
    let core = core.to_str().ok_or_else(|| Failure::usage("--narrows: allowed: a path in UTF-8"))?;
    // The package's name has a suffix, because cargo refuses Rust's keywords.
    Ok(format!(
        "[package]\nname = \"{name}_queue\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [dependencies]\nnarrows-core = {{ path = {core:?} }}\n\n\
         # The laws that every queue keeps, for the test.\n\
         [dev-dependencies]\nnarrows-core = {{ path = {core:?}, features = [\"contract\"] }}\n\n\
         # A workspace of its own, wherever the folder is.\n[workspace]\n"
    ))
}

/// `red_mark` is `RedMarkQueue`: with the suffix it is no type that the file already uses.
fn type_name(name: &str) -> String {
    let word = |word: &str| word.get(..1).map(|first| first.to_ascii_uppercase() + &word[1..]).unwrap_or_default();
    name.split('_').map(word).collect::<String>() + "Queue"
}
