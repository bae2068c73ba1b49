//! Messages about the memory that runs need.
use narrows_core::Bytes;
use narrows_core::params::ParamValue;
use narrows_runner::{Fit, memory};

/// From this size on a line is printed.
const LARGE: u64 = 1 << 30;

/// Reads `--memory`.
pub(crate) fn size(text: &str) -> Result<Bytes, String> {
    Bytes::parse(text).ok_or_else(|| format!("allowed: {}, such as 16GB", Bytes::allowed()))
}

/// A line about runs that need much memory.
pub(crate) fn note(Fit { runs, wanted, need }: Fit) -> Option<String> {
    let fewer = if runs < wanted { format!(", with {runs} runs at a time instead of {wanted}") } else { String::new() };
    (need >= LARGE).then(|| format!("narrows: needs up to {} of memory{fewer}", memory::shown(need)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure;
    use crate::grid::{self, Job, Options};
    use narrows_runner::Room;
    use narrows_scenario::{NoTraces, Scenario};
    use narrows_sim::Simulator;
    use narrows_world::{Wanted, World as _};

    fn scenario(count: u32, record: &str) -> Scenario {
        let text = format!(
            "duration = \"60s\"\n[record]\n{record}\n[[hop]]\nname = \"link\"\nrate = \"1gbit\"\nqueue = \"fifo\"\n\
             [[flow]]\nname = \"bulk\"\ncount = {count}\nrtt = \"50ms\"\nroute = [\"link\"]\n"
        );
        Scenario::parse(&text, "memory.toml", &NoTraces).expect("it is legal")
    }

    fn refused(scenarios: &[&Scenario], room: Bytes) -> String {
        let job = |scenario: &&Scenario| Job { label: String::new(), scenario: (*scenario).clone() };
        let jobs: Vec<Job> = scenarios.iter().map(job).collect();
        let memory = Room { given: Some(room), together: true };
        let options = Options { threads: Some(8), quiet: true, memory, ..Options::of(&Simulator) };
        match grid::run(&jobs, options, |_, _| Ok(())) {
            Err(Failure::Usage(message)) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ten_million_flows_are_refused_where_they_do_not_fit() {
        let message = refused(&[&scenario(10_000_000, "")], Bytes(14_000_000_000));
        assert!(message.contains("a run needs about") && message.contains("--memory allows 14.0 GB"), "{message}");
        assert!(message.contains("the largest: flows") && message.contains("allowed: a smaller count"), "{message}");
    }

    #[test]
    fn dense_series_are_refused_where_they_do_not_fit() {
        let dense = scenario(1000, "flows = 1000\ninterval = \"10us\"");
        let message = refused(&[&dense], Bytes(64_000_000_000));
        assert!(message.contains("the largest: series") && message.contains("a longer interval"), "{message}");
    }

    #[test]
    fn results_of_all_runs_must_fit_together() {
        let run = scenario(1, "interval = \"100us\"");
        let room = Bytes(Simulator.memory(&run, &Wanted::RESULT).total() * 3);
        assert!(refused(&[&run; 100], room).contains("the results of all runs need"));
    }
}
