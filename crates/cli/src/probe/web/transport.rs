//! What a download goes over: TCP, or TLS on top of it. The kernel's view of the TCP connection is there in both cases.
use super::deadline::Timed;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Which servers are believed.
#[derive(Clone, Debug)]
pub(super) struct Trust(Arc<ClientConfig>);

impl Trust {
    /// The authorities that this system knows and those of a file (PEM).
    pub(super) fn new(more: Option<&Path>) -> Result<Trust, String> {
        let mut roots = RootCertStore::empty();
        // What cannot be read is missing; a server that needs it is refused by name.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if let Some(file) = more {
            let wrong = |why: String| format!("--ca {}: {why}; allowed: certificates in PEM", file.display());
            let certificates = CertificateDer::pem_file_iter(file).map_err(|error| wrong(error.to_string()))?;
            let mut some = false;
            for certificate in certificates {
                let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
                roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
                some = true;
            }
            if !some {
                return Err(wrong("it has no certificate".into()));
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(|error| format!("TLS: {error}"))?;
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Trust(Arc::new(config)))
    }
}

/// A connection to a web server.
#[derive(Debug)]
pub(super) enum Transport {
    Plain(Timed),
    Tls(Box<StreamOwned<ClientConnection, Timed>>),
}

impl Transport {
    /// TLS with the server of this name.
    pub(super) fn secured(mut tcp: Timed, host: &str, trust: &Trust) -> Result<Transport, String> {
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned());
        let name = name.map_err(|_| format!("{host:?} is no name in a certificate"))?;
        let tls = ClientConnection::new(Arc::clone(&trust.0), name);
        let mut tls = tls.map_err(|error| format!("TLS: {error}"))?;
        while tls.is_handshaking() {
            tls.complete_io(&mut tcp).map_err(|error| format!("TLS: {error}"))?;
        }
        Ok(Transport::Tls(Box::new(StreamOwned::new(tls, tcp))))
    }

    pub(super) fn tcp(&self) -> &TcpStream {
        match self {
            Transport::Plain(tcp) => tcp.tcp(),
            Transport::Tls(tls) => tls.sock.tcp(),
        }
    }

    /// See [`Timed::opened`].
    pub(super) fn opened(&mut self, wait: Duration) -> io::Result<()> {
        match self {
            Transport::Plain(tcp) => tcp.opened(wait),
            Transport::Tls(tls) => tls.sock.opened(wait),
        }
    }
}

impl Read for Transport {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Transport::Plain(tcp) => tcp.read(into),
            // A server that ends TCP without a word of TLS has sent all it wanted.
            Transport::Tls(tls) => match tls.read(into) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
                other => other,
            },
        }
    }
}

impl Write for Transport {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Transport::Plain(tcp) => tcp.write(bytes),
            Transport::Tls(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Transport::Plain(tcp) => tcp.flush(),
            Transport::Tls(tls) => tls.flush(),
        }
    }
}
