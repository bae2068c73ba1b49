//! Programs that scenarios run.
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;

/// `serve PORT`: accepts connections one after the other and reads each to its end.
pub(super) const SERVE: &str = "play-serve";
/// `send PEER PORT TIMES`: this many transfers, each over a new connection.
pub(super) const SEND: &str = "play-send";
/// The same server under another name, so that concurrent tests can tell whose processes are left.
pub(super) const ANSWER: &str = "play-answer";

/// Plays a role if the arguments name one.
pub(super) fn play(args: &[String]) -> Option<ExitCode> {
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [SERVE | ANSWER, port] => serve(port),
        [SEND, peer, port, times] => send(peer, port, times.parse().unwrap()),
        _ => return None,
    }
    Some(ExitCode::SUCCESS)
}

fn serve(port: &str) {
    let listener = TcpListener::bind(format!("[::]:{port}")).unwrap();
    let mut buffer = vec![0; 1 << 16];
    for connection in listener.incoming() {
        let mut connection = connection.unwrap();
        while connection.read(&mut buffer).is_ok_and(|read| read > 0) {}
    }
}

/// 100 kB each.
fn send(peer: &str, port: &str, times: u32) {
    let to = if peer.contains(':') { format!("[{peer}]:{port}") } else { format!("{peer}:{port}") };
    for _ in 0..times {
        let mut connection = TcpStream::connect(&to).unwrap();
        connection.write_all(&[7; 100_000]).unwrap();
        connection.shutdown(std::net::Shutdown::Write).unwrap();
        // Waits until the other side has read everything.
        let _ = connection.read(&mut [0]);
    }
}
