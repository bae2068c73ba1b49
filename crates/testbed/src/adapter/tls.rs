//! TLS for both ends of a QUIC connection: a certificate that the server signs itself, of fixed length.
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::sync::Arc;

/// The server's name.
pub(super) const NAME: &str = "testbed";

/// What client and server need. Ed25519's signatures have one length, so a handshake has the same lengths each time.
pub(super) fn configs() -> (ClientConfig, ServerConfig) {
    let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a key can be made");
    let mut params = rcgen::CertificateParams::new([NAME.to_owned()]).expect("the name is a host's");
    params.serial_number = Some(vec![1].into());
    let certificate = params.self_signed(&pair).expect("a certificate can be made").der().clone();
    let key = PrivatePkcs8KeyDer::from(pair.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).expect("it was just made");
    let versions = &[&rustls::version::TLS13];
    let client = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(versions);
    let server = ServerConfig::builder_with_provider(provider).with_protocol_versions(versions);
    let client = client.expect("ring has TLS 1.3").with_root_certificates(roots).with_no_client_auth();
    let server = server.expect("ring has TLS 1.3").with_no_client_auth();
    (client, server.with_single_cert(vec![certificate], key.into()).expect("the key is the certificate's"))
}
