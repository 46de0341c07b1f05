//! Rejections by a device.

/// Reason that a device rejects a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Invalid program or values.
    #[error("{0}")]
    Invalid(String),
    /// Resources are exhausted.
    #[error("no room: {0}")]
    Full(String),
    /// The operation is not supported.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// The device is not running.
    #[error("not running: {0}")]
    Away(String),
    /// Another change of the same batch was rejected.
    #[error("not done, since another part of the batch was refused")]
    WithOthers,
}
