//! How large a scenario may be. Every count that a world keeps in fewer bits than it could be given has its limit here, and
//! [`Scenario::validate`](crate::Scenario::validate) refuses what exceeds one.
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Hops: a packet names the next one in 16 bits.
pub const HOPS: usize = 1 << 16;
/// Hosts: a packet names its two in 16 bits each.
pub const HOSTS: usize = 1 << 16;
/// Flows, all groups together.
pub const FLOWS: u64 = 10_000_000;
/// Paths back to senders, of which a flow has one and a connection with a `subflow_route` two: an event names one in 24 bits.
pub const RETURN_PATHS: u64 = 1 << 24;
/// Steps of one rate, or of one delay.
pub const STEPS: usize = 1_000_000;
/// Points of one series.
pub const POINTS: u64 = 10_000_000;
/// Bytes of a scenario file.
pub const SCENARIO_BYTES: u64 = 64 << 20;
/// Bytes of a trace file.
pub const TRACE_BYTES: u64 = 256 << 20;

/// The text of a regular file of at most `most` bytes. A device or a pipe is refused before it is opened, because it might
/// never end, or never begin.
pub(crate) fn read_text(path: &Path, most: u64) -> Result<String, String> {
    let say = |error: io::Error| error.to_string();
    if !std::fs::metadata(path).map_err(say)?.is_file() {
        return Err("not a regular file".into());
    }
    let mut text = String::new();
    // A file can grow, and those of /proc do not say how long they are: the limit holds for what is read.
    let length = File::open(path).map_err(say)?.take(most + 1).read_to_string(&mut text).map_err(say)?;
    if length as u64 > most {
        return Err(format!("longer than {most} bytes, which is the limit"));
    }
    Ok(text)
}
