//! What happens to connections that last: new keys, other ports, and memory.
use crate::proxy::{Faults, Proxy};
use narrows_quic::{Config, Connection, Identity, Server, Trust, connect};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

const NAME: &str = "localhost";
const TWO_PATHS: &str = "tonopah:on=cubic,detector=sequential";
/// Length of a stream.
const STREAM: usize = 1 << 20;

/// Both ends of a connection through a proxy.
async fn both(controller: &str, faults: Faults) -> (Connection, Connection, Proxy) {
    let identity = Identity::self_signed(NAME).unwrap();
    let trust = Trust::only(identity.certificate()).unwrap();
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), &identity, &Config::new()).unwrap();
    let proxy = Proxy::start(server.local_addr().unwrap(), faults);
    let config = Config::new().controller(controller).unwrap().seed(1);
    let (client, served) = tokio::join!(connect(proxy.at, NAME, &trust, &config), server.accept());
    (client.unwrap(), served.expect("a server that is open").unwrap(), proxy)
}

/// Sends a stream, whose bytes have to arrive as they are.
async fn carry(client: &Connection, served: &Connection) {
    let payload: Vec<u8> = (0..STREAM).map(|n| (n % 251) as u8).collect();
    let send = async {
        let mut stream = client.quic().open_uni().await.unwrap();
        stream.write_all(&payload).await.unwrap();
        stream.finish().unwrap();
        stream.stopped().await.unwrap();
    };
    let receive = async { served.quic().accept_uni().await.unwrap().read_to_end(STREAM + 1).await.unwrap() };
    let ((), received) = tokio::join!(send, receive);
    assert!(received == payload);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_keys_of_either_side_spoil_nothing() {
    let faults = Faults { delay: Duration::from_millis(2), lost: 100, late: 50, ..Faults::default() };
    for controller in ["cubic", TWO_PATHS] {
        let (client, served, _proxy) = both(controller, faults).await;
        for _ in 0..4 {
            carry(&client, &served).await;
            client.quic().force_key_update();
            carry(&client, &served).await;
            served.quic().force_key_update();
        }
        assert_eq!(client.paths(), if controller == TWO_PATHS { 2 } else { 1 }, "{:?}", client.lost_path());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nat_that_forgets_ports_ends_no_connection() {
    let faults = Faults { delay: Duration::from_millis(2), rebinds_every: 300, ..Faults::default() };
    for controller in ["cubic", TWO_PATHS] {
        let (client, served, proxy) = both(controller, faults).await;
        let all = async {
            for _ in 0..4 {
                carry(&client, &served).await;
            }
        };
        timeout(Duration::from_secs(20), all).await.unwrap_or_else(|_| panic!("{controller}: it stands still"));
        let rebound = proxy.rebound.load(Ordering::Relaxed);
        assert!(rebound >= 4, "{controller}: {rebound}");
        assert!(client.quic().close_reason().is_none(), "{controller}: {:?}", client.quic().close_reason());
    }
}

/// Resident memory of this process, kB (proc_pid_status(5)).
fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()).unwrap_or_default()
}

/// One connection at 20 Mbit/s under the sequential test, with packets lost and keys renewed, for as many minutes as `NARROWS_SOAK` says (30).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes half an hour"]
async fn memory_does_not_grow() {
    let minutes: u64 = std::env::var("NARROWS_SOAK").ok().and_then(|text| text.parse().ok()).unwrap_or(30);
    let faults = Faults { delay: Duration::from_millis(5), rate_mbit: 20, lost: 2000, ..Faults::default() };
    let (mut client, served, _proxy) = both(TWO_PATHS, faults).await;
    // Taken as a program that listens does; nobody reads them otherwise, and they would add up.
    let mut verdicts = client.verdicts().expect("taken once");
    let begun = Instant::now();
    let (mut streams, mut decisions, mut settled, mut most) = (0u64, 0u64, 0, 0);
    for minute in 1..=minutes {
        while begun.elapsed() < Duration::from_secs(60 * minute) {
            carry(&client, &served).await;
            streams += 1;
            if streams.is_multiple_of(25) {
                client.quic().force_key_update();
            }
            decisions += std::iter::from_fn(|| verdicts.try_next()).count() as u64;
            sleep(Duration::from_millis(1)).await;
        }
        let now = resident_kb();
        if minute <= minutes.div_ceil(3) {
            settled = now;
        }
        most = most.max(now);
        println!(
            "{minute} min: {} MB sent, {decisions} verdicts, {now} kB resident",
            streams * STREAM as u64 / 1_000_000
        );
    }
    assert_eq!(client.paths(), 2, "{:?}", client.lost_path());
    // The allocator's own slack.
    assert!(most < settled + settled / 10 + 2048, "{settled} kB after a third of the time, {most} kB at most");
}
