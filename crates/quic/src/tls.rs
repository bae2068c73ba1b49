//! Certificates: who a server is, and whom a client trusts.
use crate::Error;
use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::sync::Arc;

/// A server's certificate and key.
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    protocols: Vec<Vec<u8>>,
}

impl Identity {
    /// A new certificate that the server signs itself; clients know it by [`Trust::only`].
    ///
    /// # Errors
    /// When no key can be made.
    pub fn self_signed(name: &str) -> Result<Identity, Error> {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).map_err(tls)?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        Ok(Identity { certificate: made.cert.der().clone(), key: key.into(), protocols: Vec::new() })
    }

    /// From a certificate and its key, in DER.
    pub const fn new(certificate: CertificateDer<'static>, key: PrivateKeyDer<'static>) -> Identity {
        Identity { certificate, key, protocols: Vec::new() }
    }

    /// Offers an application protocol (ALPN, RFC 7301).
    #[must_use]
    pub fn protocol(mut self, name: &[u8]) -> Identity {
        self.protocols.push(name.to_vec());
        self
    }

    /// The certificate, for clients.
    pub const fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// The key, for other servers of this identity.
    pub const fn key(&self) -> &PrivateKeyDer<'static> {
        &self.key
    }

    pub(crate) fn config(&self) -> Result<Arc<QuicServerConfig>, Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider);
        let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).map_err(tls)?;
        let mut config = builder
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], self.key.clone_key())
            .map_err(tls)?;
        config.alpn_protocols.clone_from(&self.protocols);
        Ok(Arc::new(QuicServerConfig::try_from(config).map_err(tls)?))
    }
}

/// Whom a client trusts.
#[derive(Clone)]
pub struct Trust {
    roots: RootCertStore,
    protocols: Vec<Vec<u8>>,
}

impl Trust {
    /// Only a server that shows this certificate, or one that it has signed.
    ///
    /// # Errors
    /// When it is no certificate.
    pub fn only(certificate: &CertificateDer<'static>) -> Result<Trust, Error> {
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).map_err(tls)?;
        Ok(Trust::roots(roots))
    }

    /// Servers whose certificates these authorities have signed.
    pub const fn roots(roots: RootCertStore) -> Trust {
        Trust { roots, protocols: Vec::new() }
    }

    /// Asks for an application protocol (ALPN, RFC 7301).
    #[must_use]
    pub fn protocol(mut self, name: &[u8]) -> Trust {
        self.protocols.push(name.to_vec());
        self
    }

    pub(crate) fn config(&self) -> Result<Arc<QuicClientConfig>, Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).map_err(tls)?;
        let mut config = builder.with_root_certificates(self.roots.clone()).with_no_client_auth();
        config.alpn_protocols.clone_from(&self.protocols);
        Ok(Arc::new(QuicClientConfig::try_from(config).map_err(tls)?))
    }
}

fn tls(error: impl std::fmt::Display) -> Error {
    Error::Tls(error.to_string())
}
