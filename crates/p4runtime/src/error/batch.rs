//! Errors of a batch or of the size of a request.

use tonic::Code;

/// Errors of a batch or of the size of a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum BatchError {
    #[error("not done, since another update of the batch was refused")]
    WithOthers,
    #[error("the limit of {0} uncommitted changes is reached")]
    TooManySaved(usize),
    #[error("the changes that wait take too much memory: send fewer in a batch, or commit them")]
    TooMuchMemory,
    #[error("more than {0} entities: read them in parts")]
    TooMany(usize),
    #[error("the read examines more than {0} entries: read one table at a time")]
    TooManyToScan(usize),
    #[error("the client has disconnected")]
    Disconnected,
}

impl BatchError {
    /// The gRPC code of the error, as in the specification where that defines one.
    pub(super) fn code(&self) -> Code {
        match self {
            Self::WithOthers => Code::Aborted,
            Self::TooManySaved(..)
            | Self::TooMuchMemory
            | Self::TooMany(..)
            | Self::TooManyToScan(..) => Code::ResourceExhausted,
            Self::Disconnected => Code::Cancelled,
        }
    }
}
