//! The roles of this program when a test starts it.
use std::io::{self, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::process::ExitCode;

use narrows_host::{Block, Launch, Namespace, Process, Route, Stream, Tun, TunSpec};

/// The environment variable with the role's name.
pub(super) const VARIABLE: &str = "NARROWS_TEST_ROLE";
/// Prints the source of the right to make namespaces, or why there is none.
pub(super) const GAIN: &str = "gain";
/// Holds a resource of every kind, prints its inner namespace's number, and waits for the end of its input.
pub(super) const HOLD: &str = "hold";
/// Runs a shell as the program does, and then reads a line from the terminal.
pub(super) const SHELL: &str = "shell";
/// `nest N`: N nested shells; the innermost one prints the addresses of its namespace.
pub(super) const NEST: &str = "nest";
/// `serve tcp ADDRESS` or `serve udp ADDRESS`: waits for clients there for ever. It needs no rights.
pub(super) const SERVE: &str = "serve ";

pub(super) fn play(role: &str) -> ExitCode {
    match role.split_once(' ').unwrap_or((role, "")) {
        (HOLD, _) => hold(),
        (SHELL, _) => shell(),
        (NEST, deep) => nest(deep.parse().unwrap()),
        _ => panic!("no such role: {role}"),
    }
}

fn hold() -> ExitCode {
    let named = |name: &str| TunSpec { name: name.into(), ..TunSpec::default() };
    let _outer = Tun::create(&Namespace::current().unwrap(), &named("outer")).unwrap();
    let inside = Namespace::create().unwrap();
    let _inner = Tun::create(&inside, &named("inner")).unwrap();
    let script = "setsid sleep 1000 & (trap '' TERM INT HUP; sleep 1000) & wait";
    let launch =
        Launch { argv: ["sh", "-c", script].map(Into::into).to_vec(), stdin: Stream::Null, ..Launch::default() };
    let _process = Process::spawn(&inside, &launch).unwrap();
    println!("{}", inside.id().unwrap());
    let _ = io::stdin().read(&mut [0]);
    ExitCode::SUCCESS
}

fn shell() -> ExitCode {
    let inside = Namespace::create().unwrap();
    let launch = Launch { argv: ["bash", "--norc", "-i"].map(Into::into).to_vec(), ..Launch::default() };
    let status = Process::spawn(&inside, &launch).unwrap().wait();
    // Only a process that has the terminal may read it.
    let mut line = String::new();
    io::stdin().read_line(&mut line).unwrap();
    println!("shell {status}, then read {}", line.trim());
    ExitCode::SUCCESS
}

pub(super) fn serve(what: &str) -> ExitCode {
    let (_tcp, _udp) = match what.split_once(' ').unwrap() {
        ("tcp", address) => (Some(TcpListener::bind(address).unwrap()), None),
        (_, address) => (None, Some(UdpSocket::bind(address).unwrap())),
    };
    loop {
        std::thread::park();
    }
}

fn nest(deep: u32) -> ExitCode {
    let outside = Namespace::current().unwrap();
    let (block, _outer) = match Block::take(&outside, &TunSpec::default()) {
        Ok(taken) => taken,
        Err(error) => {
            println!("{error}");
            return ExitCode::SUCCESS;
        }
    };
    println!("{}/{} {}/{}", block.outer()[0].0, block.outer()[0].1, block.inner()[1].0, block.inner()[1].1);
    io::stdout().flush().unwrap();
    let inside = Namespace::create().unwrap();
    let via = |i: usize| Route { to: None, via: Some(block.outer()[i].0), src: Some(block.inner()[i].0) };
    let (addresses, routes) = (block.inner().to_vec(), vec![via(0), via(1)]);
    let _inner = Tun::create(&inside, &TunSpec { addresses, routes, ..TunSpec::default() }).unwrap();
    if deep > 1 {
        let launch = Launch {
            argv: vec![std::env::current_exe().unwrap().into()],
            env: vec![(VARIABLE.into(), format!("{NEST} {}", deep - 1).into())],
            ..Launch::default()
        };
        assert!(Process::spawn(&inside, &launch).unwrap().wait().success());
    }
    ExitCode::SUCCESS
}
