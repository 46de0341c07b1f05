//! Why the kernel, or this crate, refused.

use std::io;

use netlink_packet_core::DecodeError;
use nix::errno::Errno;

/// This crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel refused a request.
    #[error("{operation}: {}{}", errno.desc(), message.as_ref().map(|m| format!(": {m}")).unwrap_or_default())]
    Kernel {
        /// What was asked for, such as `route fd00:0:1::/48 on r1`.
        operation: String,
        /// The kernel's error number.
        errno: Errno,
        /// The kernel's own sentence (extended acknowledgement), where it gave one.
        message: Option<String>,
    },
    /// A system call failed.
    #[error("{operation}: {source}")]
    Io {
        /// What was being done.
        operation: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The kernel's answer could not be read.
    #[error("{operation}: the kernel's answer cannot be read: {source}")]
    Decode {
        /// What was asked for.
        operation: String,
        /// What is wrong with the answer.
        source: DecodeError,
    },
    /// The kernel's tables changed under every attempt to read them.
    #[error(
        "{operation}: the kernel's table changed during each of {attempts} attempts to read it"
    )]
    Unstable {
        /// What was asked for.
        operation: String,
        /// How often it was tried.
        attempts: u32,
    },
    /// The kernel lacks a feature.
    #[error("{feature} needs {needs}")]
    Unsupported {
        /// What was asked for.
        feature: &'static str,
        /// What provides it.
        needs: &'static str,
    },
    /// A file that should be a namespace is something else.
    #[error("{path} is neither a network namespace nor an empty file: left alone")]
    NotANamespace {
        /// The file.
        path: std::path::PathBuf,
    },
}

impl Error {
    /// An [`Error::Io`] of `operation`.
    pub(crate) fn io(operation: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Io { operation: operation.into(), source: source.into() }
    }

    /// The error number behind this, if there is one.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::Kernel { errno, .. } => Some(*errno),
            Self::Io { source, .. } => source.raw_os_error().map(Errno::from_raw),
            _ => None,
        }
    }

    /// Whether the thing to be made is there already.
    pub fn is_exists(&self) -> bool {
        self.errno() == Some(Errno::EEXIST)
    }

    /// Whether the thing that was named is not there: a rule answers ENOENT, a route ESRCH, a
    /// link ENODEV, an address EADDRNOTAVAIL.
    pub fn is_not_found(&self) -> bool {
        matches!(
            self.errno(),
            Some(Errno::ENOENT | Errno::ESRCH | Errno::ENODEV | Errno::EADDRNOTAVAIL)
        )
    }

    /// Whether the caller lacks the right (CAP_NET_ADMIN, as a rule).
    pub fn is_permission(&self) -> bool {
        matches!(self.errno(), Some(Errno::EPERM | Errno::EACCES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_operation_reason_and_the_kernels_sentence() {
        let error = Error::Kernel {
            operation: "route 10.0.0.0/8 on r1".into(),
            errno: Errno::ENODEV,
            message: Some("Nexthop has invalid gateway".into()),
        };
        assert_eq!(
            error.to_string(),
            "route 10.0.0.0/8 on r1: No such device: Nexthop has invalid gateway"
        );
        assert!(error.is_not_found() && !error.is_exists() && !error.is_permission());
        assert!(Error::io("x", Errno::EPERM).is_permission());
    }
}
