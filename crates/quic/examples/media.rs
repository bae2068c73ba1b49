//! A media sender that asks for low delay: 25 frames a second at the rate that the connection allows. While the bottleneck queues
//! fairly, a controller with little delay takes over; behind a shared queue it would starve, and CUBIC stays.
//!
//! ```text
//! media receive 127.0.0.1:4433 server.der
//! media send 127.0.0.1:4433 server.der 10
//! ```
//! The last word is the length in seconds.
use narrows_quic::rustls::pki_types::CertificateDer;
use narrows_quic::{Config, Connection, Identity, Server, Trust, connect};
use std::error::Error;
use std::time::Duration;
use tokio::time::interval;

const NAME: &str = "media";
const CONTROLLER: &str = "tonopah:on=cubic,detector=sequential,fair=switch";
const FRAME: Duration = Duration::from_millis(40);
/// Bytes of a frame, at least and at most: 200 kbit/s and 20 Mbit/s.
const FRAME_BYTES: (u64, u64) = (1_000, 100_000);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["receive", at, certificate] => receive(at, certificate).await,
        ["send", to, certificate, seconds] => send(to, certificate, seconds.parse()?).await,
        _ => Err("usage: media receive ADDRESS:PORT FILE | media send ADDRESS:PORT FILE SECONDS".into()),
    }
}

async fn receive(at: &str, certificate: &str) -> Result<(), Box<dyn Error>> {
    let identity = Identity::self_signed(NAME)?;
    std::fs::write(certificate, identity.certificate())?;
    let server = Server::bind(at.parse()?, &identity, &Config::new())?;
    let connection = server.accept().await.ok_or("closed")??;
    let (mut frames, mut bytes) = (0, 0);
    // Each frame is a stream of its own, so that a late one holds up no other.
    while let Ok(mut frame) = connection.quic().accept_uni().await {
        bytes += frame.read_to_end(FRAME_BYTES.1 as usize).await?.len();
        frames += 1;
    }
    println!("{frames} frames, {bytes} bytes");
    Ok(())
}

async fn send(to: &str, certificate: &str, seconds: u64) -> Result<(), Box<dyn Error>> {
    let trust = Trust::only(&CertificateDer::from(std::fs::read(certificate)?))?;
    let config = Config::new().controller(CONTROLLER)?;
    let mut connection = connect(to.parse()?, NAME, &trust, &config).await?;
    let (mut ticks, mut last) = (interval(FRAME), None);
    for _ in 0..seconds * 25 {
        ticks.tick().await;
        let mut stream = connection.quic().open_uni().await?;
        stream.write_all(&vec![0; frame_bytes(&connection) as usize]).await?;
        stream.finish()?;
        last = Some(stream);
        for one in connection.new_verdicts() {
            eprintln!(
                "{:6.2} s: {:?}, confidence {:.3}",
                one.at.as_secs_f64(),
                one.verdict.finding,
                one.verdict.confidence
            );
        }
    }
    if let Some(last) = last {
        last.stopped().await?;
    }
    Ok(connection.close().await?)
}

/// Three quarters of what the controller would pace in the time of a frame, so that a frame has left before the next one comes.
fn frame_bytes(connection: &Connection) -> u64 {
    let rate = connection.meters().and_then(|meters| meters.pacing);
    let bytes = rate.map_or(0.0, |rate| rate.as_bps() as f64 / 8.0 * FRAME.as_secs_f64() * 0.75);
    (bytes as u64).clamp(FRAME_BYTES.0, FRAME_BYTES.1)
}
