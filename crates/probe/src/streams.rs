//! A transfer over several streams, because one of narrows-quic's has at most 2 MiB in flight: 160 Mbit/s over 100 ms.
use crate::error::{Code, Error};
use narrows_quic::noq::{Connection, ReadError, RecvStream, SendStream, VarInt, WriteError};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Streams of a transfer; both sides count on this number.
pub(crate) const STREAMS: usize = 8;
/// Read at a time.
const CHUNK: usize = 256 << 10;
/// Reports of what was read that may wait.
const REPORTS: usize = 64;

/// The sender's side.
pub(crate) struct LoadStreams {
    streams: Vec<SendStream>,
    turn: usize,
}

impl LoadStreams {
    pub(crate) async fn open(quic: &Connection) -> Result<LoadStreams, Error> {
        let mut streams = Vec::with_capacity(STREAMS);
        for _ in 0..STREAMS {
            streams.push(quic.open_uni().await.map_err(Error::closed)?);
        }
        Ok(LoadStreams { streams, turn: 0 })
    }

    /// Writes to the next stream that has room; returns how much it took.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> Result<usize, WriteError> {
        let (turn, streams) = (self.turn, &mut self.streams);
        let (at, wrote) = poll_fn(|cx| {
            for at in (turn..turn + STREAMS).map(|at| at % STREAMS) {
                if let Poll::Ready(wrote) = Pin::new(&mut streams[at]).poll_write(cx, bytes) {
                    return Poll::Ready((at, wrote));
                }
            }
            Poll::Pending
        })
        .await;
        self.turn = (at + 1) % STREAMS;
        wrote
    }

    /// No more will be written.
    pub(crate) fn finish(&mut self) {
        for stream in &mut self.streams {
            // It may be finished already.
            let _ = stream.finish();
        }
    }

    /// Waits until all has arrived, or nobody wants it.
    pub(crate) async fn arrived(&self) {
        for stream in &self.streams {
            let _ = stream.stopped().await;
        }
    }

    /// What has not been sent will not be.
    pub(crate) fn reset(mut self) {
        for stream in &mut self.streams {
            let _ = stream.reset(VarInt::from_u32(0));
        }
    }
}

/// Receives a transfer to its end, which begins within that time; returns its length. `tell` gets the bytes received so far.
pub(crate) async fn receive(
    quic: &Connection,
    within: Duration,
    most: u64,
    mut tell: impl FnMut(u64),
) -> Result<u64, Error> {
    let (report, mut reports) = mpsc::channel(REPORTS);
    let mut readers = JoinSet::new();
    for _ in 0..STREAMS {
        readers.spawn(read(quic.clone(), report.clone()));
    }
    drop(report);
    let mut bytes = 0;
    let first = timeout(within, reports.recv()).await;
    let mut next = first.map_err(|_| Error::Lost("the other side is gone: it did not begin to send".into()))?;
    while let Some(read) = next {
        bytes += read?;
        tell(bytes);
        if bytes > most {
            return Err(Error::Closed(Code::Data));
        }
        next = reports.recv().await;
    }
    Ok(bytes)
}

/// Reads the next stream, and reports how much of it comes.
async fn read(quic: Connection, report: mpsc::Sender<Result<u64, Error>>) {
    let accepted = quic.accept_uni().await.map_err(Error::closed);
    let mut stream = match accepted {
        Ok(stream) => stream,
        Err(error) => return drop(report.send(Err(error)).await),
    };
    while let Some(read) = read_chunk(&mut stream).await {
        if report.send(read).await.is_err() {
            return;
        }
    }
}

/// The length of the next chunk; `None` at the end.
async fn read_chunk(stream: &mut RecvStream) -> Option<Result<u64, Error>> {
    match stream.read_chunk(CHUNK).await {
        Ok(Some(chunk)) => Some(Ok(chunk.len() as u64)),
        // The sender ends it by a reset, so that nothing more is sent.
        Ok(None) | Err(ReadError::Reset(_)) => None,
        Err(ReadError::ConnectionLost(reason)) => Some(Err(Error::closed(reason))),
        Err(error) => Some(Err(Error::Lost(format!("cannot receive: {error}")))),
    }
}
