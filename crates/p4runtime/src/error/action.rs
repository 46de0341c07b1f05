//! Errors of an entry's action.

use tonic::Code;

/// Errors of an entry's action.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum ActionError {
    #[error("action {action} is not an action of table `{table}`")]
    OtherAction { table: String, action: String },
    #[error("action `{action}` of table `{table}` is for {only} only")]
    Scope { table: String, action: String, only: &'static str },
    #[error("action `{action}` has no parameter {param}")]
    UnknownParam { action: String, param: u32 },
    #[error("duplicate parameter `{0}`")]
    DuplicateParam(String),
    #[error("parameter `{0}` is missing")]
    MissingParam(String),
}

impl ActionError {
    /// The gRPC code of the error, as in the specification where that defines one.
    pub(super) fn code(&self) -> Code {
        match self {
            Self::OtherAction { .. }
            | Self::UnknownParam { .. }
            | Self::DuplicateParam(..)
            | Self::MissingParam(..) => Code::InvalidArgument,
            Self::Scope { .. } => Code::PermissionDenied,
        }
    }
}
