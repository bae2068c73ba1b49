//! Every case against every stack that this was built with, as the table of the book: `cargo xtask matrix`.
//!
//! The arguments are files of `narrows testbed run --json`, each as NAME=FILE: columns of what ran elsewhere, such as Linux.
use narrows_testbed::adapter::stacks;
use narrows_testbed::cases::{CASES, Case, Reading, Verdict, Verdicts};
use narrows_testbed::{Stack, Subject};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, thread};

/// A column: its name, and its verdicts by case.
struct Column {
    name: String,
    verdicts: BTreeMap<String, Verdicts>,
}

fn main() -> ExitCode {
    let mut columns = Vec::new();
    for argument in env::args().skip(1) {
        match recorded(&argument) {
            Ok(column) => columns.push(column),
            Err(error) => {
                eprintln!("matrix: {argument}: {error}; allowed: NAME=FILE.json of `narrows testbed run --json`");
                return ExitCode::from(2);
            }
        }
    }
    columns.extend(measured());
    println!("{}", table(&columns));
    columns.iter().for_each(|column| print!("{}", misses(column)));
    ExitCode::SUCCESS
}

fn recorded(argument: &str) -> Result<Column, String> {
    let (name, file) = argument.split_once('=').ok_or("no =")?;
    let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
    let verdicts: Vec<Verdicts> = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let by_case = verdicts.into_iter().map(|one| (one.case.clone(), one)).collect();
    Ok(Column { name: name.to_owned(), verdicts: by_case })
}

/// Runs all stacks through the cases that concern their controls, on all cores.
fn measured() -> Vec<Column> {
    let stacks = stacks();
    let done: Vec<Mutex<BTreeMap<String, Verdicts>>> = stacks.iter().map(|_| Mutex::default()).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(case) = CASES.get(next.fetch_add(1, Ordering::Relaxed)) {
            let reference = case.reference();
            for (stack, done) in stacks.iter().zip(&done) {
                if let Some(verdicts) = judged(case, *stack, &reference) {
                    done.lock().expect("nobody panics with it").insert(case.name.clone(), verdicts);
                }
            }
            eprintln!("{}", case.name);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let column = |(stack, done): (&Stack, Mutex<BTreeMap<String, Verdicts>>)| {
        let verdicts = done.into_inner().expect("nobody panics with it");
        Column { name: stack.name.to_owned(), verdicts }
    };
    stacks.iter().zip(done).map(column).collect()
}

fn judged(case: &Case, stack: Stack, reference: &[Result<narrows_testbed::Report, String>]) -> Option<Verdicts> {
    case.concerns(stack.control).then(|| case.judge(&case.run(&Subject::from(stack)), reference))
}

/// The verdicts, a row for each case that concerns a stack.
fn table(columns: &[Column]) -> String {
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let mut text = format!("| case | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(names.len()));
    let concerns = |case: &&Case| columns.iter().any(|column| column.verdicts.contains_key(&case.name));
    for case in CASES.iter().filter(concerns) {
        let cell = |column: &Column| match column.verdicts.get(&case.name).map(|one| one.verdict) {
            None => "",
            Some(Verdict::Holds) => "holds",
            Some(Verdict::Fails) => "**fails**",
            Some(Verdict::Note) => "note",
        };
        let cells: Vec<&str> = columns.iter().map(cell).collect();
        text += &format!("| `{}` | {} |\n", case.name, cells.join(" | "));
    }
    let sum = |column: &Column| {
        let holds = column.verdicts.values().filter(|one| one.verdict == Verdict::Holds).count();
        format!("{holds} of {}", column.verdicts.len())
    };
    text + &format!("| hold | {} |\n", columns.iter().map(sum).collect::<Vec<_>>().join(" | "))
}

/// What a column misses, with figures.
fn misses(column: &Column) -> String {
    let wrong = |reading: &&Reading| reading.verdict == Verdict::Fails;
    let figure = |reading: &Reading| {
        let spread = |all: Option<narrows_testbed::cases::Spread>| {
            all.map_or("not shown".to_owned(), |all| format!("{:.2} to {:.2}", all.min, all.max))
        };
        let (unit, bound) = (&reading.unit, reading.bound.unwrap_or(f64::NAN));
        format!(
            "{} {} {unit}, asked {} = {bound:.2}, reference {}",
            reading.figure,
            spread(reading.measured),
            reading.expected,
            spread(reading.reference)
        )
    };
    let line = |one: &Verdicts| {
        let readings: Vec<String> = one.readings.iter().filter(wrong).map(figure).collect();
        let said = one.failure.clone().unwrap_or_else(|| readings.join("; "));
        format!("- `{}`: {said}\n", one.case)
    };
    let lines: String = column.verdicts.values().filter(|one| one.verdict == Verdict::Fails).map(line).collect();
    if lines.is_empty() { String::new() } else { format!("\n### {}\n{lines}", column.name) }
}
