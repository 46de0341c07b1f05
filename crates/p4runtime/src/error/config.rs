//! Errors of a forwarding pipeline configuration.

use tonic::Code;

/// Errors of a forwarding pipeline configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum ConfigError {
    #[error("COMMIT uses the saved program: do not send another one")]
    CommitHasProgram,
    #[error("no program was saved")]
    NothingSaved,
    #[error("p4info: `{of}`: {problem}")]
    Info { of: String, problem: &'static str },
    #[error("p4info: duplicate id {0:#010x}")]
    DuplicateId(u32),
    #[error("the contents of table `{0}` do not fit the new program")]
    NotKept(String),
}

impl ConfigError {
    /// The gRPC code of the error, as in the specification where that defines one.
    pub(super) fn code(&self) -> Code {
        match self {
            Self::CommitHasProgram
            | Self::Info { .. }
            | Self::DuplicateId(..)
            | Self::NotKept(..) => Code::InvalidArgument,
            Self::NothingSaved => Code::NotFound,
        }
    }
}
