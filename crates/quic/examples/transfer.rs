//! Sends a file over two paths, and says what the connection found out about the bottleneck.
//!
//! ```text
//! transfer receive 127.0.0.1:4433 server.der > copy
//! transfer send 127.0.0.1:4433 server.der < file
//! ```
//! The receiver writes its certificate to `server.der`; bring it to the sender.
use narrows_quic::rustls::pki_types::CertificateDer;
use narrows_quic::{Config, Identity, Server, Trust, connect};
use std::error::Error;
use tokio::io::{AsyncWriteExt, copy, stdin, stdout};

const NAME: &str = "transfer";
const CONTROLLER: &str = "tonopah:on=cubic,detector=sequential";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["receive", at, certificate] => receive(at, certificate).await,
        ["send", to, certificate] => send(to, certificate).await,
        _ => Err("usage: transfer receive ADDRESS:PORT FILE | transfer send ADDRESS:PORT FILE".into()),
    }
}

async fn receive(at: &str, certificate: &str) -> Result<(), Box<dyn Error>> {
    let identity = Identity::self_signed(NAME)?;
    std::fs::write(certificate, identity.certificate())?;
    let server = Server::bind(at.parse()?, &identity, &Config::new())?;
    let connection = server.accept().await.ok_or("closed")??;
    let mut stream = connection.quic().accept_uni().await?;
    copy(&mut stream, &mut stdout()).await?;
    stdout().flush().await?;
    // The sender ends the connection when it knows that everything has arrived.
    connection.quic().closed().await;
    Ok(())
}

async fn send(to: &str, certificate: &str) -> Result<(), Box<dyn Error>> {
    let trust = Trust::only(&CertificateDer::from(std::fs::read(certificate)?))?;
    let config = Config::new().controller(CONTROLLER)?;
    let connection = connect(to.parse()?, NAME, &trust, &config).await?;
    let mut stream = connection.quic().open_uni().await?;
    let bytes = copy(&mut stdin(), &mut stream).await?;
    stream.finish()?;
    stream.stopped().await?;
    eprintln!("{bytes} bytes; {:?}", connection.verdict());
    Ok(connection.close().await?)
}
