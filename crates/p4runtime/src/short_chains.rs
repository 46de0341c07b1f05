//! Verification of clients' certificates, with chains of limited length.

use std::sync::Arc;

use tokio_rustls::rustls;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

/// Maximum number of certificates between that of the client and the authority's.
const MAX_INTERMEDIATES: usize = 3;
/// Maximum size of all certificates in bytes.
const MAX_BYTES: usize = 16 << 10;

/// Refuses long chains before another verifier looks at them. That one searches paths through all
/// certificates, before the client has proved to own any of them: with 64 KiB of them, it takes seconds to
/// minutes on the thread that serves all clients.
#[derive(Debug)]
pub(crate) struct ShortChains(pub(crate) Arc<dyn ClientCertVerifier>);

/// Fails for a chain that is too long.
fn check(end: &CertificateDer<'_>, intermediates: &[CertificateDer<'_>]) -> Result<(), Error> {
    let bytes = end.len() + intermediates.iter().map(|one| one.len()).sum::<usize>();
    match intermediates.len() <= MAX_INTERMEDIATES && bytes <= MAX_BYTES {
        true => Ok(()),
        false => Err(CertificateError::ApplicationVerificationFailure.into()),
    }
}

impl ClientCertVerifier for ShortChains {
    fn verify_client_cert(
        &self,
        end: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        check(end, intermediates)?;
        self.0.verify_client_cert(end, intermediates, now)
    }

    fn offer_client_auth(&self) -> bool {
        self.0.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.0.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        self.0.requires_raw_public_keys()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_have_a_maximum_length() {
        let of = |bytes: usize| CertificateDer::from(vec![0; bytes]);
        let chain = |count: usize, bytes: usize| check(&of(1000), &vec![of(bytes); count]);
        assert_eq!(chain(0, 0), Ok(()));
        assert_eq!(chain(3, 2000), Ok(()));
        assert!(chain(4, 100).is_err() && chain(1, MAX_BYTES).is_err());
    }
}
