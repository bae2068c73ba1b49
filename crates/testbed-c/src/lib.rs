//! The testbed for transports written in C: `include/narrows_testbed.h` and a static library.
//!
//! The header documents the interface; this crate is its implementation. What touches C's pointers is in [`ffi`], the rest is here. A Rust
//! program uses `narrows-testbed` itself.
use narrows_testbed::cases::{self, CASES, Verdict};
use narrows_testbed::{Figure, MakeEnds, Peer, Report, Span, Testbed, Time};
use std::ffi::{CStr, CString};
use std::sync::LazyLock;

pub mod ffi;

/// Runs a testbed; without a duration for as long as its scenario says.
fn run(testbed: Testbed, name: &str, ends: [Box<dyn Peer>; 2], duration: Span) -> Result<Report, String> {
    let testbed = testbed.peers(name, ends);
    let done = if duration == Span::ZERO { testbed.run_whole() } else { testbed.run(duration) };
    done.map_err(|error| error.to_string())
}

fn figure(report: &Report, name: &str, from: Span, to: Span) -> Result<f64, String> {
    let figure = Figure::read(name)?;
    let whole = report.end().since(Time::ZERO);
    if from >= to || to > whole {
        return Err(format!("{from} to {to} is not a part of the {whole} of the run"));
    }
    report.window(figure, from, to).ok_or_else(|| format!("there is no {name} from {from} to {to}"))
}

/// The name of the `index`th case that concerns a control, or of all cases.
fn case(control: Option<&str>, index: usize) -> Option<&'static CStr> {
    static NAMES: LazyLock<Vec<CString>> =
        LazyLock::new(|| CASES.iter().map(|case| CString::new(case.name.as_str()).unwrap_or_default()).collect());
    let concerned = CASES.iter().zip(&*NAMES).filter(|(case, _)| control.is_none_or(|control| case.concerns(control)));
    concerned.map(|(_, name)| name.as_c_str()).nth(index)
}

/// The verdict, and all of it as JSON.
fn judge(case: &str, name: &str, runs: u32, ends: MakeEnds) -> Result<(Verdict, String), String> {
    let verdicts = cases::judge(case, name, (runs > 0).then_some(runs), ends);
    let verdicts =
        verdicts.ok_or_else(|| format!("no case is called \"{case}\"; `narrows testbed list` has them all"))?;
    let json = serde_json::to_string(&verdicts).map_err(|error| error.to_string())?;
    Ok((verdicts.verdict, json))
}
