//! A connection's events as noq reports them: qlog, a sequence of JSON texts (draft-ietf-quic-qlog-main-schema).
use crate::Error;
use crate::config::new_file;
use narrows_files::{Existing, is_qlog};
use noq::{ConnectionId, QlogConfig, QlogFactory, Side};
use std::fs::File;
use std::io::BufWriter;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Makes a file for each connection: `FILE`, then `FILE.2`, and so on.
pub(crate) struct Files {
    file: PathBuf,
    /// The first file, which is made at once, so that a path at which none can be made is found before there is a connection.
    first: Mutex<Option<File>>,
    made: AtomicU64,
    replace: bool,
}

impl Files {
    pub(crate) fn new(file: &Path, replace: bool) -> Result<Files, Error> {
        let first = new_file(file, Existing::unless_forced(replace, is_qlog))?;
        Ok(Files { file: file.to_owned(), first: Mutex::new(Some(first)), made: AtomicU64::new(0), replace })
    }

    /// The file of the next connection; none if it cannot be made.
    fn next(&self) -> Option<File> {
        let number = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        if number == 1 {
            return self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
        let mut file = self.file.clone();
        file.as_mut_os_string().push(format!(".{number}"));
        new_file(&file, Existing::unless_forced(self.replace, is_qlog)).ok()
    }
}

impl QlogFactory for Files {
    fn for_connection(&self, side: Side, _: SocketAddr, _: ConnectionId, _: Instant) -> Option<QlogConfig> {
        let mut config = QlogConfig::new(Box::new(BufWriter::new(self.next()?)));
        let name = self.file.file_stem().unwrap_or_default().to_string_lossy();
        let side = if side == Side::Client { "client" } else { "server" };
        config.title(Some(format!("narrows {} {name} {side}", env!("CARGO_PKG_VERSION"))));
        Some(config)
    }
}
