//! Serves the page and its engines to the owner of the address.
//!
//! Every program and every user of this machine can connect to loopback, and every page in the browser can send requests to it. So the address
//! has a secret. A request must name this server as its host, because a foreign name may lead here; what asks the engine must come from
//! a page of this server.
use super::http::{Answer, Connection, Head};
use super::{Beside, Start};
use crate::failure::Failure;
use narrows_playground::page::{FILES, NATIVE, WASM};
use narrows_playground::{Engine, Limits};
use std::hint::black_box;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::{io, thread};

pub(super) struct Server {
    listener: TcpListener,
    place: Place,
    start: Option<Start>,
    /// By page; the last one was used last.
    engines: Mutex<Vec<(String, Arc<Mutex<Engine>>)>>,
    connections: AtomicUsize,
}

/// Where the page is.
struct Place {
    port: u16,
    secret: String,
}

/// Pages that have an engine at a time.
const PAGES: usize = 8;
/// The longest name of a page, bytes.
const NAME: usize = 64;
/// The longest request, bytes.
const REQUEST: usize = 256 << 10;
/// Connections at a time.
const CONNECTIONS: usize = 64;

impl Server {
    pub(super) fn new(listener: TcpListener, start: Option<Start>) -> Result<Server, Failure> {
        let port = listener.local_addr().map_err(Failure::other)?.port();
        let mut secret = [0; 16];
        getrandom::fill(&mut secret).map_err(|error| Failure::other(format!("no random numbers: {error}")))?;
        let secret = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let place = Place { port, secret };
        Ok(Server { listener, place, start, engines: Mutex::default(), connections: AtomicUsize::new(0) })
    }

    pub(super) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.place.port, self.place.secret)
    }

    /// Answers until the process ends.
    pub(super) fn listen(self) {
        let server = Arc::new(self);
        loop {
            // A client that is gone already is no reason to end.
            let Ok((stream, _)) = server.listener.accept() else { continue };
            let served = Arc::clone(&server);
            if server.connections.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS
                || thread::Builder::new().spawn(move || served.serve(stream)).is_err()
            {
                server.connections.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// One connection. How it ends is of no interest: the page asks again on another one.
    fn serve(&self, stream: TcpStream) {
        let _ = self.answer_all(stream);
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    fn answer_all(&self, stream: TcpStream) -> io::Result<()> {
        let mut connection = Connection::new(stream)?;
        loop {
            let answered = match connection.head() {
                Ok(Some(head)) => self.answer(&mut connection, &head).map(|answer| answer.map(|answer| (head, answer))),
                Ok(None) => return Ok(()),
                Err(refusal) => Err(refusal),
            };
            match answered {
                Ok(Some((head, answer))) if connection.answer(&head, &answer)? => {}
                Ok(_) => return Ok(()),
                Err(refusal) => return connection.refuse(&refusal),
            }
        }
    }

    /// The answer to a request, `None` when its client is gone. An error is a refusal before the request's body was read.
    fn answer(&self, connection: &mut Connection, head: &Head) -> Result<Option<Answer>, Answer> {
        let path = self.place.path(head)?;
        match (head.method.as_str(), path) {
            ("POST", "ask") => {
                let page = head.only("x-page").filter(|page| !page.is_empty() && page.len() <= NAME);
                let page = page.ok_or_else(|| Answer::refused(400, "x-page names no page\n"))?;
                let body = connection.body(head, REQUEST)?;
                Ok(body.map(|body| Answer::found("application/json", self.ask(page, &body))))
            }
            ("GET" | "HEAD", path) => self.file(path).map(Some).ok_or_else(|| Answer::refused(404, "no such page\n")),
            _ => Err(Answer::refused(405, "allowed: GET, and POST to `ask`\n")),
        }
    }

    fn file(&self, path: &str) -> Option<Answer> {
        if path == "scenario.toml" {
            let text = self.start.as_ref()?.text.clone();
            return Some(Answer::found("text/plain; charset=utf-8", text));
        }
        let page = &FILES[0];
        if path.is_empty() || path == page.path {
            return Some(Answer::found(page.mime, page.text.replacen(WASM, NATIVE, 1)));
        }
        FILES.iter().find(|file| file.path == path).map(|file| Answer::found(file.mime, file.text))
    }

    fn ask(&self, page: &str, request: &str) -> String {
        let engine = self.engine(page);
        let mut engine = engine.lock().unwrap_or_else(PoisonError::into_inner);
        engine.answer(request)
    }

    /// The page's engine. A new page takes the place of one that asked nothing for the longest time.
    fn engine(&self, page: &str) -> Arc<Mutex<Engine>> {
        // Dropped after the lock, because a large run takes long to free.
        let mut gone = None;
        let mut engines = self.engines.lock().unwrap_or_else(PoisonError::into_inner);
        let known = engines.iter().position(|(name, _)| name == page).map(|at| engines.remove(at));
        let (name, engine) = known.unwrap_or_else(|| {
            gone = (engines.len() == PAGES).then(|| engines.remove(0));
            (page.to_owned(), Arc::new(Mutex::new(self.new_engine())))
        });
        engines.push((name, Arc::clone(&engine)));
        drop(engines);
        drop(gone);
        engine
    }

    fn new_engine(&self) -> Engine {
        let engine = Engine::new(Limits::NATIVE);
        match &self.start {
            Some(Start { traces: Beside(folder), .. }) => engine.with_traces(Box::new(Beside(folder.clone()))),
            None => engine,
        }
    }
}

impl Place {
    /// The path below the page's address, if the request may be answered.
    fn path<'a>(&self, head: &'a Head) -> Result<&'a str, Answer> {
        let hosts = ["127.0.0.1", "localhost"].map(|host| format!("{host}:{}", self.port));
        if !head.only("host").is_some_and(|host| hosts.iter().any(|own| own == host)) {
            return Err(Answer::refused(403, "this server has another name\n"));
        }
        // Browsers send an origin with each POST.
        let mut origins = head.values("origin").peekable();
        let has_origin = origins.peek().is_some();
        let is_own =
            |origin: &str| origin.strip_prefix("http://").is_some_and(|host| hosts.iter().any(|own| own == host));
        if !origins.all(is_own) || (head.method == "POST" && !has_origin) {
            return Err(Answer::refused(403, "the request comes from another page\n"));
        }
        let path = head.path.split('?').next().unwrap_or_default();
        let parts = path.strip_prefix('/').and_then(|path| path.split_once('/'));
        let path = parts.filter(|(secret, _)| is_same(secret, &self.secret)).map(|(_, path)| path);
        path.ok_or_else(|| Answer::refused(404, "no such page\n"))
    }
}

/// Compares in a time that does not depend on where the texts differ.
fn is_same(given: &str, secret: &str) -> bool {
    let differing = given.bytes().zip(secret.bytes()).fold(0, |all, (a, b)| black_box(all | (a ^ b)));
    given.len() == secret.len() && differing == 0
}
