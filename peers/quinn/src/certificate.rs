//! Proof of identity: each reader makes a certificate for itself, and its writer trusts that one alone.

use std::sync::Arc;

use noctule_peer::PeerError;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, ServerConfig, TransportConfig};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The name in every certificate; addresses tell the nodes apart.
pub(crate) const NAME: &str = "noctule-lab";

/// A server with a certificate made for it now, and the certificate.
pub(crate) fn server(
    transport: &Arc<TransportConfig>,
) -> Result<(ServerConfig, CertificateDer<'static>), PeerError> {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()]);
    let made = made.map_err(|e| PeerError::of("cannot make a certificate", e))?;
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let config = ServerConfig::with_single_cert(vec![certificate.clone()], key);
    let mut config = config.map_err(|e| PeerError::of("the certificate was refused", e))?;
    config.transport_config(Arc::clone(transport));
    Ok((config, certificate))
}

/// A client that trusts the certificate in `text` and no other.
pub(crate) fn client(text: &str, transport: &Arc<TransportConfig>) -> Result<ClientConfig, PeerError> {
    let refused = |e: &dyn std::fmt::Display| PeerError::of("the reader's certificate was refused", e);
    let mut roots = RootCertStore::empty();
    let certificate = from_text(text).ok_or_else(|| refused(&"it is not hexadecimal"))?;
    roots.add(certificate.into()).map_err(|e| refused(&e))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|e| refused(&e))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut config =
        ClientConfig::new(Arc::new(QuicClientConfig::try_from(config).map_err(|e| refused(&e))?));
    config.transport_config(Arc::clone(transport));
    Ok(config)
}

/// Bytes in hexadecimal, as an address can hold them.
pub(crate) fn to_text(certificate: &[u8]) -> String {
    certificate.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_text(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
