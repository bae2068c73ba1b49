//! What a run showed.
use crate::testbed::FLOW;
use crate::window::{Figure, Window};
use narrows_capture::{pcapng, qlog};
use narrows_core::{Rate, Span, Time};
use narrows_files::create_new;
use narrows_report::Comparison;
use narrows_results::packets::PacketLog;
use narrows_results::summary::FlowSummary;
use narrows_results::{ResultError, RunResult, folder};
use narrows_scenario::Scenario;
use narrows_sim::PeerFault;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

/// The result of a run, and of the flow under test in it.
#[derive(Clone, Debug)]
pub struct Report {
    scenario: Scenario,
    flow: usize,
    result: RunResult,
    packets: Option<PacketLog>,
    fault: Option<PeerFault>,
}

impl Report {
    pub(crate) fn new(
        scenario: Scenario,
        flow: usize,
        result: RunResult,
        packets: Option<PacketLog>,
        fault: Option<PeerFault>,
    ) -> Report {
        Report { scenario, flow, result, packets, fault }
    }

    /// The report of a run in any world, whose flow under test is called `test`, or by its program's flows `test.…`: of several, the
    /// one that carried the most. `None` if there is none.
    pub fn of(scenario: Scenario, result: RunResult) -> Option<Report> {
        let is_own = |name: &str| name.strip_prefix(FLOW).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let flows = result.summary.flows.iter().enumerate().filter(|(_, flow)| is_own(&flow.name));
        let (flow, _) = flows.max_by(|a, b| a.1.throughput_mbit.total_cmp(&b.1.throughput_mbit))?;
        Some(Report::new(scenario, flow, result, None, None))
    }

    /// Data that the receiving application read, after the warm-up.
    pub fn goodput(&self) -> Rate {
        Rate::bit((self.figures().goodput_mbit * 1e6) as u64)
    }

    /// The figures of the flow under test.
    pub fn figures(&self) -> &FlowSummary {
        &self.result.summary.flows[self.flow]
    }

    /// A figure of part of the run; `None` if the flow does not show it.
    pub fn window(&self, figure: Figure, from: Span, to: Span) -> Option<f64> {
        self.part(from, to).figure(figure)
    }

    /// What the bottleneck could have carried in part of the run, Mbit/s.
    pub fn link(&self, from: Span, to: Span) -> f64 {
        self.part(from, to).link()
    }

    fn part(&self, from: Span, to: Span) -> Window<'_> {
        Window { scenario: &self.scenario, flow: self.flow, result: &self.result, from, to }
    }

    /// What went wrong with the ends under test: they were silenced, or their connection failed.
    pub fn fault(&self) -> Option<&PeerFault> {
        self.fault.as_ref()
    }

    /// Figures, series and distributions of everything in the run.
    pub fn result(&self) -> &RunResult {
        &self.result
    }

    /// The packets, if they were recorded.
    pub fn packets(&self) -> Option<&PacketLog> {
        self.packets.as_ref()
    }

    /// The scenario that ran.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// When the run ended.
    pub fn end(&self) -> Time {
        Time::ZERO + self.scenario.duration
    }

    /// Writes a folder that all commands of `narrows` read: scenario, summary, series, distributions, and `report.html`. Beside them are
    /// [`CAPTURE`], with every packet as both ends see it, for Wireshark, and a qlog of each connection in [`QLOGS`], for qvis, if packets
    /// were recorded. A folder with results and only these files is replaced as a whole.
    ///
    /// # Errors
    /// A file could not be written, or the folder has other files than those.
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<(), ResultError> {
        let place = folder.as_ref();
        let parent = place.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Some(parent) = parent.filter(|parent| !parent.is_dir()) {
            fs::create_dir_all(parent).map_err(|error| {
                let message = if parent.exists() { "it is no folder".to_owned() } else { error.to_string() };
                ResultError { path: parent.to_owned(), message: format!("cannot save a report there: {message}") }
            })?;
        }
        let whole = narrows_files::new_folder_beside(place).map_err(fault(place))?;
        let saved = self.write(&whole).and_then(|()| give_way(place, &whole));
        if saved.is_err() {
            // What failed is said; a folder that cannot be removed either stays behind.
            let _ = fs::remove_dir_all(&whole);
        }
        saved
    }

    /// Writes all files into a new folder.
    fn write(&self, folder: &Path) -> Result<(), ResultError> {
        folder::write(folder, &self.scenario, &self.result)?;
        narrows_report::write_page(&Comparison::load(folder)?, folder)?;
        let Some(log) = &self.packets else { return Ok(()) };
        // What the hosts see. A drop is a comment on the packet at its sender.
        let ends = pcapng::places(&[], ["senders", "receivers"]);
        new_file(&folder.join(CAPTURE), |to| pcapng::write(log, &ends, to).map(drop))?;
        let qlogs = folder.join(QLOGS);
        fs::create_dir(&qlogs).map_err(fault(&qlogs))?;
        for connection in qlog::connections(log) {
            new_file(&qlogs.join(connection.file_name()), |to| qlog::write(log, &connection, to).map(drop))?;
        }
        Ok(())
    }
}

/// The capture of a saved report.
pub const CAPTURE: &str = "packets.pcapng";
/// The folder of its qlogs, `FLOW.sqlog`.
pub const QLOGS: &str = "qlog";

fn fault(path: &Path) -> impl Fn(io::Error) -> ResultError {
    move |error| ResultError { path: path.to_owned(), message: format!("cannot save the report: {error}") }
}

fn new_file(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<(), ResultError> {
    let mut to = BufWriter::new(create_new(path).map_err(fault(path))?);
    write(&mut to).and_then(|()| to.flush()).map_err(fault(path))
}

/// Renames a folder to its place. A report that was saved there is removed; anything else stays, and is an error.
fn give_way(place: &Path, whole: &Path) -> Result<(), ResultError> {
    match fs::read_dir(place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(fault(place)(error)),
        Ok(entries) => {
            let is_report = place.join(folder::SUMMARY).is_file();
            for entry in entries {
                let name = entry.map_err(fault(place))?.file_name();
                if !is_report || !whole.join(&name).exists() {
                    let message =
                        format!("has {}, which no report wrote; allowed: a folder of its own", name.display());
                    return Err(ResultError { path: place.to_owned(), message });
                }
            }
            fs::remove_dir_all(place).map_err(fault(place))?;
        }
    }
    fs::rename(whole, place).map_err(fault(place))
}
