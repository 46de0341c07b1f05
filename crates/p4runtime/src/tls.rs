//! TLS 1.3 with certificates of both sides, from files in PEM.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// The longest file.
const LONGEST: u64 = 1 << 20;
/// gRPC's protocol in the handshake (RFC 7301).
const PROTOCOL: &[u8] = b"h2";

/// One side's files.
#[derive(Debug, Clone)]
pub struct Files {
    /// Its certificate, and those up to its authority's.
    pub certificate: PathBuf,
    /// The certificate's private key, of mode 0600.
    pub key: PathBuf,
    /// The authority that the other side's certificate is signed by.
    pub authority: PathBuf,
}

/// An error in setting TLS up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A file is not in PEM, or has another content.
    #[error("{}: no {what} in PEM: {why}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The content that it should have.
        what: &'static str,
        /// The cause.
        why: String,
    },
    /// Users other than its owner can read a private key.
    #[error("{}: its mode is {mode:04o}, so that others can read the key: chmod 600", path.display())]
    Mode {
        /// The key's file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The files do not fit each other.
    #[error("the certificate and the key do not serve TLS")]
    Config(#[from] rustls::Error),
    /// The authority cannot verify clients.
    #[error("the authority cannot verify certificates: {0}")]
    Authority(String),
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

impl Files {
    /// A server's side, which takes no client without a certificate of the authority's.
    ///
    /// # Errors
    ///
    /// A file is not as it has to be.
    pub fn server(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(self.authority()?), provider())
                .build()
                .map_err(|why| TlsError::Authority(why.to_string()))?;
        let (chain, key) = self.identity()?;
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(Arc::new(config))
    }

    /// A client's side.
    ///
    /// # Errors
    ///
    /// As of the server's.
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

/// A file's bytes, and the mode of the file that they are from.
fn read(path: &Path) -> Result<(Vec<u8>, u32), TlsError> {
    let bytes = || {
        let file = File::open(path)?;
        let mode = file.metadata()?.mode() & 0o7777;
        let mut bytes = Vec::new();
        file.take(LONGEST).read_to_end(&mut bytes)?;
        Ok((bytes, mode))
    };
    bytes().map_err(|source| TlsError::Read { path: path.to_owned(), source })
}
