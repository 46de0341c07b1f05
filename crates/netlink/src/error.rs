//! Errors of the kernel and of this crate.

use std::io;

use netlink_packet_core::DecodeError;
use nix::errno::Errno;

/// This crate's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failed netlink operation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel refused a request.
    #[error("{operation}: {}{}", errno.desc(), extended(message.as_deref()))]
    Kernel {
        /// The requested operation, such as `route fd00:0:1::/48 on r1`.
        operation: String,
        /// The kernel's error number.
        errno: Errno,
        /// The kernel's message (extended ACK), if present.
        message: Option<String>,
    },
    /// A system call failed.
    #[error("{operation}: {source}")]
    Io {
        /// The operation that was in progress.
        operation: String,
        /// The error of the system call.
        source: io::Error,
    },
    /// The kernel's reply could not be parsed.
    #[error("{operation}: the kernel's answer cannot be read: {source}")]
    Decode {
        /// The requested operation.
        operation: String,
        /// The parse error.
        source: DecodeError,
    },
    /// The table changed during every attempt to dump it.
    #[error(
        "{operation}: the kernel's table changed during each of {attempts} attempts to read it"
    )]
    Unstable {
        /// The requested operation.
        operation: String,
        /// The number of attempts.
        attempts: u32,
    },
    /// The kernel lacks a feature.
    #[error("{feature} needs {needs}")]
    Unsupported {
        /// The requested feature.
        feature: &'static str,
        /// The version or option that provides it.
        needs: &'static str,
    },
    /// An interface is named by an alternative name (IFLA_ALT_IFNAME). It counts as not found.
    #[error("`{name}` is an alternative name of the interface {interface}: write `{interface}`")]
    AlternativeName {
        /// The alternative name.
        name: String,
        /// The name of the interface.
        interface: String,
    },
    /// A path that should be a namespace is a different kind of file.
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

    /// The error number of the cause, if it has one.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::Kernel { errno, .. } => Some(*errno),
            Self::Io { source, .. } => source.raw_os_error().map(Errno::from_raw),
            Self::AlternativeName { .. } => Some(Errno::ENODEV),
            _ => None,
        }
    }

    /// Returns true if the object to create already exists.
    pub fn is_exists(&self) -> bool {
        self.errno() == Some(Errno::EEXIST)
    }

    /// Returns true if the object does not exist. The kernel reports ENOENT for a rule, ESRCH for a
    /// route, ENODEV for a link and EADDRNOTAVAIL for an address.
    pub fn is_not_found(&self) -> bool {
        matches!(
            self.errno(),
            Some(Errno::ENOENT | Errno::ESRCH | Errno::ENODEV | Errno::EADDRNOTAVAIL)
        )
    }

    /// Returns true if the caller lacks a privilege, usually CAP_NET_ADMIN.
    pub fn is_permission(&self) -> bool {
        matches!(self.errno(), Some(Errno::EPERM | Errno::EACCES))
    }
}

/// Formats the kernel's message as the rest of a sentence.
fn extended(message: Option<&str>) -> String {
    message.map_or(String::new(), |message| format!(": {message}"))
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
