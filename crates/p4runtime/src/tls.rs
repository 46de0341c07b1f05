//! Mutual TLS 1.3 with certificates in PEM files.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::short_chains::ShortChains;

/// Maximum file size in bytes.
const MAX_FILE: u64 = 1 << 20;
/// ALPN protocol id of gRPC (RFC 7301).
const PROTOCOL: &[u8] = b"h2";

/// TLS files of one side.
#[derive(Debug, Clone)]
pub struct Files {
    /// Certificate chain, without the authority.
    pub certificate: PathBuf,
    /// Private key; the file has mode 0600.
    pub key: PathBuf,
    /// Certificate of the authority that signs the peer's certificate.
    pub authority: PathBuf,
}

/// Errors of the TLS setup.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// A file is not PEM, or lacks the expected content.
    #[error("{}: no {what} in PEM: {why}", path.display())]
    Content {
        /// Path of the file.
        path: PathBuf,
        /// Expected content.
        what: &'static str,
        /// Cause.
        why: String,
    },
    /// A private key is readable by users other than its owner.
    #[error("private key {} is accessible to other users (mode {mode:04o}): chmod 600", path.display())]
    Mode {
        /// Path of the key.
        path: PathBuf,
        /// Mode of the file.
        mode: u32,
    },
    /// The certificate and the key do not match.
    #[error("the certificate and the private key do not match")]
    Config(#[from] rustls::Error),
    /// The authority cannot verify clients.
    #[error("the authority cannot verify certificates: {0}")]
    Authority(String),
}

/// Cryptography of both sides. The server computes a key exchange for each client without a
/// certificate, too: with P-384 it would take 1 ms, ten times as long as with these groups.
fn provider() -> Arc<CryptoProvider> {
    let kx_groups = vec![ring::kx_group::X25519, ring::kx_group::SECP256R1];
    Arc::new(CryptoProvider { kx_groups, ..ring::default_provider() })
}

impl Files {
    /// Configuration of a server that requires client certificates signed by the authority.
    ///
    /// # Errors
    ///
    /// Fails if a file is invalid.
    pub fn server(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(self.authority()?), provider())
                .build()
                .map_err(|why| TlsError::Authority(why.to_string()))?;
        let (chain, key) = self.identity()?;
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_client_cert_verifier(Arc::new(ShortChains(verifier)))
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        // A resumed session does not verify the client's certificate, which may have expired.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }

    /// Configuration of a client.
    ///
    /// # Errors
    ///
    /// As [`Files::server`].
    pub fn client(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let (chain, key) = self.identity()?;
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_root_certificates(self.authority()?)
            .with_client_auth_cert(chain, key)?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(Arc::new(config))
    }

    fn authority(&self) -> Result<RootCertStore, TlsError> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&self.authority)? {
            roots.add(certificate)?;
        }
        Ok(roots)
    }

    fn identity(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
        let path = &self.key;
        let (pem, mode) = read(path)?;
        if mode & 0o077 != 0 {
            return Err(TlsError::Mode { path: path.clone(), mode });
        }
        let key = PrivateKeyDer::from_pem_slice(&pem)
            .map_err(|why| content(path, "private key", why.to_string()))?;
        Ok((certificates(&self.certificate)?, key))
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let (pem, _) = read(path)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let all = all.map_err(|why| content(path, "certificate", why.to_string()))?;
    if all.is_empty() {
        return Err(content(path, "certificate", "it has none".to_owned()));
    }
    Ok(all)
}

fn content(path: &Path, what: &'static str, why: String) -> TlsError {
    TlsError::Content { path: path.to_owned(), what, why }
}

/// Reads a file; returns its bytes and its mode.
fn read(path: &Path) -> Result<(Vec<u8>, u32), TlsError> {
    let bytes = || {
        let file = File::open(path)?;
        let mode = file.metadata()?.mode() & 0o7777;
        let mut bytes = Vec::new();
        file.take(MAX_FILE).read_to_end(&mut bytes)?;
        Ok((bytes, mode))
    };
    bytes().map_err(|source| TlsError::Read { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use tokio_rustls::rustls::NamedGroup;

    use super::*;

    #[test]
    fn key_exchanges_are_fast_ones() {
        let groups: Vec<NamedGroup> = provider().kx_groups.iter().map(|one| one.name()).collect();
        assert_eq!(groups, [NamedGroup::X25519, NamedGroup::secp256r1]);
    }
}
