//! `narrows play`: the page and its engine over HTTP, and whom it refuses.
use crate::support::{Place, json, text};
use narrows_playground::page::{FILES, NATIVE, WASM};
use serde_json::{Value, json as value};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Command, Stdio};

const SCENARIO: &str = "name = \"two\"\nduration = \"3s\"\n[[hop]]\nname = \"link\"\nrate = \"10mbit\"\nqueue = \"fq_codel\"\n\
                        [[flow]]\nname = \"bulk\"\nrtt = \"20ms\"\n[[flow]]\nname = \"call\"\nrtt = \"20ms\"\ntraffic = \"call\"\n";

/// The program, serving.
struct Playing {
    child: Child,
    port: u16,
    secret: String,
}

impl Playing {
    fn start(place: &Place, args: &[&str]) -> Playing {
        let mut command = place.command(&[&["play", "--no-open"], args].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("an address");
        let rest = line.trim().strip_prefix("http://127.0.0.1:").and_then(|rest| rest.strip_suffix('/'));
        let (port, secret) = rest.and_then(|rest| rest.split_once('/')).expect("a port and a secret");
        assert!(secret.len() >= 32, "{line}");
        Playing { port: port.parse().expect("a port"), secret: secret.to_owned(), child }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).expect("it listens")
    }

    /// The status, the head and the body of the answer to a request with these headers.
    fn raw(&self, method: &str, path: &str, headers: &[String], body: &str) -> (u16, String, String) {
        let mut stream = self.connect();
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {length}\r\n");
        let head = headers.iter().fold(head, |head, header| head + header + "\r\n");
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).expect("a status");
        (status.parse().expect("a number"), head.to_owned(), body.to_owned())
    }

    fn host(&self) -> String {
        format!("Host: 127.0.0.1:{}", self.port)
    }

    fn origin(&self) -> String {
        format!("Origin: http://127.0.0.1:{}", self.port)
    }

    fn get(&self, file: &str) -> (u16, String, String) {
        self.raw("GET", &format!("/{}/{file}", self.secret), &[self.host()], "")
    }

    fn ask(&self, page: &str, request: &Value) -> Value {
        let headers = [self.host(), self.origin(), format!("x-page: {page}")];
        let (status, _, body) = self.raw("POST", &format!("/{}/ask", self.secret), &headers, &request.to_string());
        assert_eq!(status, 200, "{body}");
        json(&body)
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_page_comes_with_the_scenario() {
    let place = Place::new("play-page");
    place.write("two.toml", SCENARIO);
    let playing = Playing::start(&place, &["two.toml"]);
    for file in FILES {
        let (status, head, body) = playing.get(file.path);
        assert_eq!(status, 200, "{}", file.path);
        assert!(head.contains(&format!("Content-Type: {}", file.mime)), "{}: {head}", file.path);
        for kept in ["Cache-Control: no-store", "default-src 'self'", "X-Content-Type-Options: nosniff", "no-referrer"]
        {
            assert!(head.contains(kept), "{kept}: {head}");
        }
        assert_eq!(body, file.text.replace(WASM, NATIVE), "{}", file.path);
    }
    assert_eq!(playing.get("").2, playing.get("index.html").2);
    assert_eq!(playing.get("scenario.toml").2, SCENARIO);
    assert_eq!(playing.get("elsewhere.js").0, 404);
    assert_eq!(Playing::start(&place, &[]).get("scenario.toml").0, 404);
}

#[test]
fn the_engine_has_the_figures_of_a_run() {
    let place = Place::new("play-figures");
    place.write("two.toml", SCENARIO);
    place.write("links/steps.csv", "time_s,rate_mbit\n0,10\n1,5\n");
    let traced = SCENARIO.replace("10mbit", "trace:links/steps.csv");
    place.write("traced.toml", &traced);
    let playing = Playing::start(&place, &["traced.toml"]);
    for (file, text) in [("two.toml", SCENARIO), ("traced.toml", &traced)] {
        let run = json(&place.ok(&["run", file, "--json"]));
        let played = playing.ask("a", &value!({"ask": "run", "text": text, "points": 100}));
        for part in ["hops", "flows", "fairness"] {
            assert!(!run[part].is_null());
            assert_eq!(played["summary"][part], run[part], "{file}");
        }
    }
    let outside = traced.replace("links/", "../play-figures/links/");
    let refused = playing.ask("a", &value!({"ask": "read", "text": outside}));
    let message = refused["error"]["message"].as_str().expect("a message");
    assert!(message.contains("allowed here: a file in the scenario's folder"), "{message}");
}

#[test]
fn each_page_has_an_engine_and_the_least_used_one_goes() {
    let place = Place::new("play-pages");
    let playing = Playing::start(&place, &[]);
    let open = value!({"ask": "open", "seat": 0, "text": SCENARIO, "at": 0});
    let frame = value!({"ask": "frame", "seat": 0, "to": 1_000_000});
    let is_played = |page: &str| playing.ask(page, &frame)["now"] == 1_000_000;
    playing.ask("first", &open);
    assert!(is_played("first") && !is_played("second"));
    for other in 0..6 {
        playing.ask(&format!("other-{other}"), &open);
    }
    // It was used after "second", the only one of the eight that goes for a ninth.
    assert!(is_played("first"));
    playing.ask("second", &open);
    playing.ask("other-0", &frame);
    playing.ask("ninth", &open);
    assert!(is_played("first") && is_played("second") && is_played("other-0") && is_played("ninth"));
    assert!(!is_played("other-1"));
}

#[test]
fn strangers_are_refused() {
    let place = Place::new("play-strangers");
    let playing = Playing::start(&place, &[]);
    let (port, ask, page) = (playing.port, format!("/{}/ask", playing.secret), "x-page: a".to_owned());
    let (host, origin) = (playing.host(), playing.origin());
    let catalogue = value!({"ask": "catalogue"}).to_string();
    let wrong = format!("/{}0/ask", &playing.secret[1..]);
    let status = |method: &str, path: &str, headers: &[&str], body: &str| {
        playing.raw(method, path, &headers.iter().map(ToString::to_string).collect::<Vec<_>>(), body).0
    };
    let (by_name, from_name) = (format!("Host: localhost:{port}"), format!("Origin: http://localhost:{port}"));
    let rebound = format!("Host: evil.example:{port}");
    assert_eq!(status("POST", &ask, &[&host, &origin, &page], &catalogue), 200);
    assert_eq!(status("POST", &ask, &[&by_name, &from_name, &page], &catalogue), 200);
    for (why, expected, method, path, headers) in [
        ("a wrong secret", 404, "POST", &wrong, &[&host, &origin, &page][..]),
        ("no secret", 404, "GET", &"/".to_owned(), &[&host]),
        ("another host", 403, "POST", &ask, &[&rebound, &origin, &page]),
        ("another host that only looks", 403, "GET", &ask.replace("ask", ""), &[&rebound]),
        ("no host", 403, "POST", &ask, &[&origin, &page]),
        ("two hosts", 403, "POST", &ask, &[&host, &rebound, &origin, &page]),
        ("another origin", 403, "POST", &ask, &[&host, &"Origin: http://evil.example".to_owned(), &page]),
        ("another port's origin", 403, "POST", &ask, &[&host, &"Origin: http://127.0.0.1:1".to_owned(), &page]),
        ("two origins", 403, "POST", &ask, &[&host, &origin, &"Origin: null".to_owned(), &page]),
        ("no origin", 403, "POST", &ask, &[&host, &page]),
        ("another origin that looks", 403, "GET", &ask.replace("ask", ""), &[&host, &"Origin: null".to_owned()]),
        ("no page", 400, "POST", &ask, &[&host, &origin]),
        ("a page with a long name", 400, "POST", &ask, &[&host, &origin, &format!("x-page: {}", "a".repeat(65))]),
        ("no such method", 405, "DELETE", &ask, &[&host, &origin, &page]),
        ("a second length", 411, "POST", &ask, &[&host, &origin, &page, &"Content-Length: 5".to_owned()]),
        ("chunks", 411, "POST", &ask, &[&host, &origin, &page, &"Transfer-Encoding: chunked".to_owned()]),
        ("a head without end", 431, "POST", &ask, &[&host, &format!("x-long: {}", "a".repeat(20_000))]),
    ] {
        let headers: Vec<&str> = headers.iter().map(|header| header.as_str()).collect();
        assert_eq!(status(method, path, &headers, &catalogue), expected, "{why}");
    }
    assert_eq!(status("POST", &ask, &[&host, &origin, &page], &" ".repeat((256 << 10) + 1)), 413);
    assert_eq!(status("POST", &ask, &[&host, &origin, &page], &" ".repeat(256 << 10)), 200);
    assert_eq!(status("no\u{1}HTTP", "at all", &[], ""), 400);
}

#[test]
fn a_connection_stays_open_and_a_closed_one_is_survived() {
    let place = Place::new("play-closed");
    let playing = Playing::start(&place, &[]);
    let long = SCENARIO.replace("3s", "600s");
    let run = value!({"ask": "run", "text": long, "points": 100}).to_string();
    let request = |body: &str| {
        let (path, length, headers) = (&playing.secret, body.len(), [playing.host(), playing.origin()].join("\r\n"));
        format!("POST /{path}/ask HTTP/1.1\r\n{headers}\r\nx-page: a\r\nContent-Length: {length}\r\n\r\n{body}")
    };
    // A half of a request, one whose answer nobody reads, one that ends at once.
    playing.connect().write_all(&request(&run).as_bytes()[..200]).expect("it reads");
    playing.connect().write_all(request(&run).as_bytes()).expect("it reads");
    playing.connect().shutdown(Shutdown::Both).expect("connected");
    // The engine of page "a" is busy; other pages do not wait for it.
    assert!(playing.ask("b", &value!({"ask": "catalogue"}))["version"].is_string());
    let mut stream = BufReader::new(playing.connect());
    for _ in 0..3 {
        stream.get_mut().write_all(request("{}").replace("x-page: a", "x-page: b").as_bytes()).expect("it is open");
        let mut length = 0;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).expect("an answer");
            length =
                line.strip_prefix("Content-Length: ").map_or(length, |length| length.trim().parse().expect("a length"));
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).expect("a body");
        assert!(text(&body).contains("no such request"), "{}", text(&body));
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_it() {
    let place = Place::new("play-ends");
    let mut playing = Playing::start(&place, &[]);
    let waiting = playing.connect();
    let kill = format!("kill -INT {}", playing.child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().expect("sh").success());
    assert_eq!(playing.child.wait().expect("it ends").code(), Some(0));
    drop(waiting);
}

#[test]
fn what_cannot_be_served_is_said_first() {
    let place = Place::new("play-refused");
    place.write("typo.toml", &SCENARIO.replace("queue", "qeue"));
    let long = format!("{SCENARIO}# {}\n", "a".repeat(128 << 10));
    place.write("long.toml", &long);
    place.write("folder/outside.toml", &SCENARIO.replace("10mbit", "trace:../steps.csv"));
    place.write("steps.csv", "time_s,rate_mbit\n0,10\n1,5\n");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    let port = taken.local_addr().expect("bound").port().to_string();
    for (args, part) in [
        (&["typo.toml"][..], "typo.toml:6: unknown key \"qeue\""),
        (&["none.toml"], "none.toml: cannot read the scenario"),
        (&["long.toml"], "long.toml: the scenario has 131"),
        (&["folder/outside.toml"], "allowed here: a file in the scenario's folder"),
        (&["--port", &port], "without --port a free one is taken"),
        (&["--port", "70000"], "allowed: a whole number, 1 to 65535"),
    ] {
        let output = place.run(&[&["play", "--no-open"], args].concat());
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()), "{args:?}");
        assert!(text(&output.stderr).contains(part), "{args:?}: {}", text(&output.stderr));
    }
}

/// The page cannot ask the report for its colours.
#[test]
fn the_page_has_the_colours_of_the_report() {
    let style = FILES.iter().find(|file| file.path == "style.css").expect("a style sheet").text;
    for n in 0..7 {
        let paint = narrows_report::palette::paint(n);
        let line = format!("--flow-{n}: light-dark({}, {});", paint.light, paint.dark);
        assert!(style.contains(&line), "{line}");
    }
}
