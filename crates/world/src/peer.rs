//! One end of somebody else's transport, sans-I/O: datagrams in, datagrams out, and a timer.
//!
//! A driver owns the clock and the network. It hands over each datagram when it arrives, calls [`Peer::on_timeout`] when the time that
//! [`Peer::timeout`] asked for has come, and after either lets the application work and takes the datagrams that the peer sends.
use narrows_core::{Bytes, Ecn, Span, Time};

/// One end of a transport.
pub trait Peer: Send {
    /// A datagram arrives. The peer may take its bytes.
    fn receive(&mut self, datagram: &mut Datagram, now: Time);

    /// Writes the next datagram to send, into an empty buffer; returns whether there is one. Called until there is none.
    fn transmit(&mut self, datagram: &mut Datagram, now: Time) -> bool;

    /// The next time at which [`Self::on_timeout`] is to be called; `None` if nothing is pending.
    fn timeout(&self) -> Option<Time>;

    /// The time of [`Self::timeout`] has come.
    fn on_timeout(&mut self, now: Time);

    /// The application's turn: writes what it has to send into the connection, and reads what has arrived.
    fn application(&mut self, stream: &mut Stream, now: Time);

    /// The inner state that the peer shows, for series and verdicts.
    fn shown(&self) -> Shown {
        Shown::default()
    }
}

/// A datagram and what the network reads of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// UDP payload, or a whole IP packet from a peer that builds its own headers.
    pub bytes: Vec<u8>,
    /// Length of the headers that the bytes lack: 28 for UDP over IPv4, 0 for a whole IP packet.
    pub headers: Bytes,
    /// ECN field of the IP header.
    pub ecn: Ecn,
}

impl Datagram {
    /// Headers of IPv4 and UDP.
    pub const UDP: Bytes = Bytes(28);

    /// Length at the IP layer, bytes.
    pub fn ip_len(&self) -> u64 {
        self.bytes.len() as u64 + self.headers.0
    }
}

impl Default for Datagram {
    fn default() -> Datagram {
        Datagram { bytes: Vec::new(), headers: Datagram::UDP, ecn: Ecn::NotEct }
    }
}

/// The application's side of a connection: data to write at one end, data read at the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stream {
    /// Data that the application has not written yet; `None` for unlimited data.
    unwritten: Option<u64>,
    written: u64,
    read: u64,
}

impl Stream {
    /// The application has this much more to send, bytes; `None` means unlimited data.
    pub fn offer(&mut self, bytes: Option<u64>) {
        self.unwritten = bytes.map(|bytes| self.unwritten.unwrap_or(0).saturating_add(bytes));
    }

    /// The application ends: what it has not written is discarded.
    pub fn end(&mut self) {
        self.unwritten = Some(0);
    }

    /// Data that wait to be written, bytes; unlimited data are `u64::MAX`.
    pub fn unwritten(&self) -> u64 {
        self.unwritten.unwrap_or(u64::MAX)
    }

    /// This many bytes have been written into the connection.
    pub fn wrote(&mut self, bytes: usize) {
        self.written = self.written.saturating_add(bytes as u64);
        self.unwritten = self.unwritten.map(|left| left.saturating_sub(bytes as u64));
    }

    /// This many bytes have been read from the connection.
    pub fn has_read(&mut self, bytes: usize) {
        self.read = self.read.saturating_add(bytes as u64);
    }

    /// Bytes read so far.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// Bytes written so far.
    pub fn written(&self) -> u64 {
        self.written
    }
}

/// The inner state of a peer, as far as it shows it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Shown {
    /// Congestion window.
    pub cwnd: Option<Bytes>,
    /// Data in flight.
    pub inflight: Option<Bytes>,
    /// Smoothed RTT.
    pub srtt: Option<Span>,
    /// Packets or segments declared lost so far.
    pub lost: Option<u64>,
    /// Full-sized packets have this payload.
    pub mss: Option<Bytes>,
    /// When and why the connection failed.
    pub failed: Option<(Time, String)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_counts_what_is_written_and_read() {
        let mut stream = Stream { unwritten: Some(0), ..Stream::default() };
        stream.offer(Some(10));
        stream.offer(Some(5));
        stream.wrote(12);
        assert_eq!((stream.unwritten(), stream.written()), (3, 12));
        stream.end();
        assert_eq!(stream.unwritten(), 0);
        stream.offer(None);
        assert_eq!(stream.unwritten(), u64::MAX);
    }
}
