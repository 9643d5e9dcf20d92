//! Both sides' configuration. Signatures of Ed25519 have one length, so that a run does not depend on the key.

use std::error::Error;
use std::sync::Arc;

use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{ClientConfig, ServerConfig, TransportConfig};
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519, SerialNumber};
use rustls::RootCertStore;
use rustls::pki_types::PrivateKeyDer;

/// The name in the certificate.
pub const NAME: &str = "map";

/// A server with a certificate made now, and a client that trusts it.
pub fn pair(
    transport: &Arc<TransportConfig>,
) -> Result<(ServerConfig, ClientConfig), Box<dyn Error + Send + Sync>> {
    let key = KeyPair::generate_for(&PKCS_ED25519)?;
    let mut params = CertificateParams::new([NAME.to_owned()])?;
    params.serial_number = Some(SerialNumber::from(1));
    let certificate = params.self_signed(&key)?.der().clone();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone())?;
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let mut server = ServerConfig::with_single_cert(vec![certificate], key)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let crypto = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(crypto)?));
    server.transport_config(Arc::clone(transport));
    client.transport_config(Arc::clone(transport));
    Ok((server, client))
}
