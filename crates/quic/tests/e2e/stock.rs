//! A server of another implementation: stock quinn, which speaks QUIC over one path only.
use narrows_core::congestion::ControllerConfig;
use narrows_core::registry::Registered as _;
use narrows_quic::{Config, Error, Identity, Trust, connect, rustls};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

const NAME: &str = "localhost";
const BYTES: usize = 200_000;

/// Answers each stream with the number of bytes that came on it.
fn serve(identity: &Identity) -> (SocketAddr, JoinHandle<()>) {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![identity.certificate().clone()], identity.key().clone_key())
        .unwrap();
    let tls = quinn::crypto::rustls::QuicServerConfig::try_from(tls).unwrap();
    let config = quinn::ServerConfig::with_crypto(Arc::new(tls));
    let endpoint = quinn::Endpoint::server(config, "127.0.0.1:0".parse().unwrap()).unwrap();
    let at = endpoint.local_addr().unwrap();
    let task = tokio::spawn(async move {
        while let Some(incoming) = endpoint.accept().await {
            tokio::spawn(async move {
                let connection = incoming.await.expect("a handshake");
                while let Ok((mut answer, mut stream)) = connection.accept_bi().await {
                    let came = stream.read_to_end(BYTES + 1).await.expect("a whole stream");
                    answer.write_all(&(came.len() as u64).to_be_bytes()).await.expect("a client that listens");
                    answer.finish().expect("once");
                }
            });
        }
    });
    (at, task)
}

/// Sends to the server and returns how many bytes it says have come.
async fn send(connection: &narrows_quic::Connection) -> u64 {
    let (mut stream, mut answer) = connection.quic().open_bi().await.unwrap();
    stream.write_all(&vec![7; BYTES]).await.unwrap();
    stream.finish().unwrap();
    let answer = answer.read_to_end(8).await.unwrap();
    u64::from_be_bytes(answer.try_into().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_controller_sends_to_another_implementation() {
    let identity = Identity::self_signed(NAME).unwrap();
    let trust = Trust::only(identity.certificate()).unwrap();
    let (at, task) = serve(&identity);
    let mut tried = 0;
    for &name in ControllerConfig::names() {
        // Two refuse the transport, for they count marks; some need two paths.
        let Ok(config) = Config::new().controller(name) else { continue };
        if ControllerConfig::named(name).is_some_and(|config| config.splits()) {
            continue;
        }
        let connection = connect(at, NAME, &trust, &config).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((send(&connection).await, connection.paths()), (BYTES as u64, 1), "{name}");
        tried += 1;
    }
    assert!(tried >= 8, "{tried} controllers");
    task.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_paths_need_a_peer_that_has_them_or_one_will_do() {
    let identity = Identity::self_signed(NAME).unwrap();
    let trust = Trust::only(identity.certificate()).unwrap();
    let (at, task) = serve(&identity);
    let two =
        Config::new().controller("tonopah:on=cubic,detector=sequential").unwrap().patience(Duration::from_secs(5));
    let refused = connect(at, NAME, &trust, &two).await.map(drop).unwrap_err();
    assert!(matches!(refused, Error::NeedsMultipath { peer } if peer == at), "{refused}");
    let connection = connect(at, NAME, &trust, &two.one_path_will_do()).await.unwrap();
    assert_eq!((send(&connection).await, connection.paths()), (BYTES as u64, 1));
    let why = connection.lost_path().expect("a reason");
    assert!(why.contains("does not speak multipath QUIC"), "{why}");
    assert_eq!(connection.verdict(), None, "one path says nothing about the queue");
    task.abort();
}
