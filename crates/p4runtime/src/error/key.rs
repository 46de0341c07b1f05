//! Errors of an entry's match fields.

use tonic::Code;

/// Errors of an entry's match fields.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum KeyError {
    #[error("table `{table}` has no match field {field}")]
    UnknownField { table: String, field: u32 },
    #[error("duplicate match field `{0}`")]
    DuplicateField(String),
    #[error("match field `{0}` is missing: an exact match has a value")]
    MissingField(String),
    #[error("match field `{field}` takes a match of kind {wanted}")]
    MatchKind { field: String, wanted: &'static str },
    #[error("match field `{0}` would match anything: omit it")]
    DontCare(String),
    #[error("match field `{0}`: the value has bits outside the mask")]
    OutsideMask(String),
    #[error("match field `{field}`: prefix length {length} is outside 0 to {width}")]
    PrefixLength { field: String, length: i32, width: u32 },
    #[error("match field `{0}`: bits are set beyond the prefix length")]
    AfterPrefix(String),
    #[error("match field `{0}`: the range ends before it begins")]
    EmptyRange(String),
    #[error("table `{0}` needs a priority above 0")]
    PriorityNeeded(String),
    #[error("table `{0}` has no priorities: leave it 0")]
    PriorityForbidden(String),
}

impl KeyError {
    /// The gRPC code of the error, as in the specification where that defines one.
    pub(super) fn code(&self) -> Code {
        match self {
            Self::UnknownField { .. }
            | Self::DuplicateField(..)
            | Self::MissingField(..)
            | Self::MatchKind { .. }
            | Self::DontCare(..)
            | Self::OutsideMask(..)
            | Self::PrefixLength { .. }
            | Self::AfterPrefix(..)
            | Self::EmptyRange(..)
            | Self::PriorityNeeded(..)
            | Self::PriorityForbidden(..) => Code::InvalidArgument,
        }
    }
}
