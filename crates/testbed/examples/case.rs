//! One case against one stack, as a start for whoever looks for a cause: `case smoltcp:cubic cubic/long-fat` prints what holds and what does not,
//! and writes the page and results of the first run to `target/case`.
use narrows_testbed::Subject;
use narrows_testbed::adapter::stacks;
use narrows_testbed::cases::CASES;
use std::env;

fn main() -> Result<(), String> {
    let (stack, case) = (env::args().nth(1).unwrap_or_default(), env::args().nth(2).unwrap_or_default());
    let (all, names) = (stacks(), stacks().iter().map(|one| one.name).collect::<Vec<_>>().join(", "));
    let stack =
        all.into_iter().find(|one| one.name == stack).ok_or(format!("STACK CASE; a stack is one of {names}"))?;
    let case =
        CASES.iter().find(|one| one.name == case).ok_or("no such case; `narrows testbed list` has their names")?;
    let runs = case.run(&Subject::from(stack));
    for reading in case.judge(&runs, &case.reference()).readings {
        println!("{:?}: {} {:?}, asked {}", reading.verdict, reading.figure, reading.measured, reading.expected);
    }
    let first = runs.into_iter().next().ok_or("the case has no runs")??;
    first.save("target/case").map_err(|error| error.to_string())
}
