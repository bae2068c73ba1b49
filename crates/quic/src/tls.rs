//! Certificates: who a server is, and whom a client trusts.
use crate::Error;
use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme};
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

    /// The identity that follows from a seed. The same seed gives the same certificate and key (Ed25519), so a client that has it knows the
    /// server's [fingerprint](Identity::fingerprint).
    ///
    /// # Errors
    /// When no certificate can be made.
    pub fn from_seed(name: &str, seed: &[u8; 32]) -> Result<Identity, Error> {
        /// PKCS #8 version 1 with an Ed25519 key (RFC 8410 §7), up to the seed.
        const PREFIX: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
        let key = PrivatePkcs8KeyDer::from([&PREFIX[..], seed].concat());
        let pair = rcgen::KeyPair::from_pkcs8_der_and_sign_algo(&key, &rcgen::PKCS_ED25519).map_err(tls)?;
        let mut params = rcgen::CertificateParams::new([name.to_owned()]).map_err(tls)?;
        params.serial_number = Some(vec![1].into());
        let certificate = params.self_signed(&pair).map_err(tls)?.der().clone();
        Ok(Identity { certificate, key: key.into(), protocols: Vec::new() })
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

    /// SHA-256 of the certificate, by which clients know it with [`Trust::fingerprint`].
    pub fn fingerprint(&self) -> [u8; 32] {
        fingerprint(&self.certificate)
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
    whom: Whom,
    protocols: Vec<Vec<u8>>,
}

#[derive(Clone)]
enum Whom {
    Roots(RootCertStore),
    Fingerprint([u8; 32]),
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
        Trust { whom: Whom::Roots(roots), protocols: Vec::new() }
    }

    /// Only a server that shows the certificate with this SHA-256, whatever names or dates are in it.
    pub const fn fingerprint(sha256: [u8; 32]) -> Trust {
        Trust { whom: Whom::Fingerprint(sha256), protocols: Vec::new() }
    }

    /// Asks for an application protocol (ALPN, RFC 7301).
    #[must_use]
    pub fn protocol(mut self, name: &[u8]) -> Trust {
        self.protocols.push(name.to_vec());
        self
    }

    pub(crate) fn config(&self) -> Result<Arc<QuicClientConfig>, Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let algorithms = provider.signature_verification_algorithms;
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).map_err(tls)?;
        let mut config = match &self.whom {
            Whom::Roots(roots) => builder.with_root_certificates(roots.clone()).with_no_client_auth(),
            Whom::Fingerprint(sha256) => {
                let verifier = Pinned { sha256: *sha256, algorithms };
                builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth()
            }
        };
        config.alpn_protocols.clone_from(&self.protocols);
        Ok(Arc::new(QuicClientConfig::try_from(config).map_err(tls)?))
    }
}

fn fingerprint(certificate: &CertificateDer<'_>) -> [u8; 32] {
    let mut sum = [0; 32];
    sum.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, certificate).as_ref());
    sum
}

/// Accepts one certificate. The server still has to prove that it holds the certificate's key.
#[derive(Debug)]
struct Pinned {
    sha256: [u8; 32],
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if fingerprint(end_entity) == self.sha256 {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(rustls::Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

fn tls(error: impl std::fmt::Display) -> Error {
    Error::Tls(error.to_string())
}
