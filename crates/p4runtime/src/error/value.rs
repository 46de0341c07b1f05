//! Errors of IDs and values.

use tonic::Code;

/// Errors of IDs and values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum ValueError {
    #[error("no {kind} has the id {id:#010x}")]
    UnknownId { kind: &'static str, id: u32 },
    #[error("`{of}`: the value is empty or does not fit in {width} bits")]
    Width { of: String, width: u32 },
    #[error("`{of}`: the value is not a valid {wanted}")]
    Data { of: String, wanted: String },
    #[error("`{of}`: index {index} is negative")]
    NegativeIndex { of: String, index: i64 },
    #[error("`{of}`: index {index}, but there are {size} cells")]
    Index { of: String, index: i64, size: u64 },
    #[error("`{of}`: a negative {what}")]
    Negative { of: String, what: &'static str },
    #[error("`{of}`: {problem}")]
    Rates { of: String, problem: &'static str },
}

impl ValueError {
    /// The gRPC code of the error, as in the specification where that defines one.
    pub(super) fn code(&self) -> Code {
        match self {
            Self::UnknownId { .. }
            | Self::Data { .. }
            | Self::NegativeIndex { .. }
            | Self::Negative { .. }
            | Self::Rates { .. } => Code::InvalidArgument,
            Self::Width { .. } | Self::Index { .. } => Code::OutOfRange,
        }
    }
}
