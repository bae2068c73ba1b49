//! HTTP/1.1 as a page on loopback needs it: heads and bodies of bounded length, connections that stay open.
//!
//! An answer is one write without Nagle's delay, because a page asks for the next picture when it has this one.
use std::borrow::Cow;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// What a request says before its body.
pub(super) struct Head {
    pub(super) method: String,
    pub(super) path: String,
    headers: Vec<(String, String)>,
    is_http_1_1: bool,
}

impl Head {
    /// The values of all headers of this name.
    pub(super) fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.headers.iter().filter(move |(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The value of the only header of this name.
    pub(super) fn only(&self, name: &str) -> Option<&str> {
        let mut values = self.values(name);
        values.next().filter(|_| values.next().is_none())
    }

    /// Whether the client has more to ask on this connection.
    fn keeps_open(&self) -> bool {
        self.is_http_1_1 && !self.values("connection").any(|value| value.eq_ignore_ascii_case("close"))
    }
}

impl From<httparse::Request<'_, '_>> for Head {
    fn from(request: httparse::Request<'_, '_>) -> Head {
        let text = |header: &httparse::Header<'_>| {
            (header.name.to_owned(), String::from_utf8_lossy(header.value).trim().to_owned())
        };
        Head {
            method: request.method.unwrap_or_default().to_owned(),
            path: request.path.unwrap_or_default().to_owned(),
            headers: request.headers.iter().map(text).collect(),
            is_http_1_1: request.version == Some(1),
        }
    }
}

/// An answer.
pub(super) struct Answer {
    status: u16,
    mime: &'static str,
    body: Cow<'static, str>,
}

impl Answer {
    pub(super) fn found(mime: &'static str, body: impl Into<Cow<'static, str>>) -> Answer {
        Answer { status: 200, mime, body: body.into() }
    }

    pub(super) fn refused(status: u16, why: &'static str) -> Answer {
        Answer { status, mime: "text/plain; charset=utf-8", body: why.into() }
    }
}

/// A client's connection.
pub(super) struct Connection {
    stream: TcpStream,
    /// Bytes that have arrived and are not used yet.
    arrived: Vec<u8>,
}

/// The longest head, bytes.
const HEAD: usize = 16 << 10;
/// Headers of a request at most.
const HEADERS: usize = 64;
/// Time in which the first request must arrive, and an answer must be taken.
const SHORT: Duration = Duration::from_secs(10);
/// How long a connection stays open without a request.
const LONG: Duration = Duration::from_secs(300);

/// Headers of every answer: no cache, no content from another site, no frame in another site, no referrer.
const ALWAYS: &str = "Cache-Control: no-store\r\n\
    Content-Security-Policy: default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; worker-src 'self'; \
    connect-src 'self'; frame-ancestors 'self'\r\n\
    X-Content-Type-Options: nosniff\r\n\
    Referrer-Policy: no-referrer\r\n";

impl Connection {
    pub(super) fn new(stream: TcpStream) -> io::Result<Connection> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SHORT))?;
        stream.set_write_timeout(Some(SHORT))?;
        Ok(Connection { stream, arrived: Vec::new() })
    }

    /// The next request's head; `None` when there will be none.
    pub(super) fn head(&mut self) -> Result<Option<Head>, Answer> {
        loop {
            let mut headers = [httparse::EMPTY_HEADER; HEADERS];
            let mut request = httparse::Request::new(&mut headers);
            match request.parse(&self.arrived) {
                Ok(httparse::Status::Complete(length)) => {
                    let head = Head::from(request);
                    self.arrived.drain(..length);
                    return Ok(Some(head));
                }
                Ok(httparse::Status::Partial) if self.arrived.len() >= HEAD => {
                    return Err(Answer::refused(431, "the request's head is too long\n"));
                }
                Ok(httparse::Status::Partial) => {}
                Err(_) => return Err(Answer::refused(400, "this is not HTTP\n")),
            }
            if !matches!(self.more(), Ok(1..)) {
                return Ok(None);
            }
        }
    }

    /// The request's body, of this length at most; `None` when the client is gone.
    pub(super) fn body(&mut self, head: &Head, most: usize) -> Result<Option<String>, Answer> {
        let is_chunked = head.values("transfer-encoding").next().is_some();
        let length = head.only("content-length").filter(|_| !is_chunked).and_then(|length| length.parse().ok());
        let length: usize = length.ok_or_else(|| Answer::refused(411, "the request needs one Content-Length\n"))?;
        if length > most {
            return Err(Answer::refused(413, "the request is too long\n"));
        }
        while self.arrived.len() < length {
            if !matches!(self.more(), Ok(1..)) {
                return Ok(None);
            }
        }
        let body = self.arrived.drain(..length).collect();
        String::from_utf8(body).map(Some).map_err(|_| Answer::refused(400, "the request is not UTF-8\n"))
    }

    fn more(&mut self) -> io::Result<usize> {
        let mut bytes = [0; 8 << 10];
        let length = self.stream.read(&mut bytes)?;
        self.arrived.extend_from_slice(&bytes[..length]);
        Ok(length)
    }

    /// Sends the answer to a request that was read whole. Whether the connection stays open.
    pub(super) fn answer(&mut self, head: &Head, answer: &Answer) -> io::Result<bool> {
        let stays = head.keeps_open();
        self.send(answer, head.method != "HEAD", stays)?;
        self.stream.set_read_timeout(Some(if answer.status == 200 { LONG } else { SHORT }))?;
        Ok(stays)
    }

    /// Sends a refusal of a request that may not have been read whole, and closes the connection.
    pub(super) fn refuse(mut self, answer: &Answer) -> io::Result<()> {
        self.send(answer, true, false)?;
        self.stream.shutdown(Shutdown::Write)?;
        // Closing with unread bytes would reset the connection, and the client might not see the answer. A long request is not read to its end.
        io::copy(&mut (&self.stream).take(1 << 20), &mut io::sink())?;
        Ok(())
    }

    fn send(&mut self, answer: &Answer, with_body: bool, stays: bool) -> io::Result<()> {
        let Answer { status, mime, body } = answer;
        let (length, connection) = (body.len(), if stays { "keep-alive" } else { "close" });
        let mut text = format!(
            "HTTP/1.1 {status} \r\nContent-Type: {mime}\r\nContent-Length: {length}\r\nConnection: {connection}\r\n{ALWAYS}\r\n"
        );
        if with_body {
            text += body;
        }
        self.stream.write_all(text.as_bytes())
    }
}
