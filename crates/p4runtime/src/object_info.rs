//! P4info inside an object.

use p4info::v1::P4Info;
use prost::Message as _;

use crate::server::SHAPES;

/// Maximum memory of p4info from an object, in bytes. That of a large program takes less than 1
/// MiB.
pub(crate) const MAX_MEMORY: u64 = 64 << 20;

/// Reason that an object's p4info is not decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectInfoError {
    /// The bytes are not a P4Info message.
    #[error("it is not a valid P4Info message")]
    Malformed,
    /// Decoding it takes too much memory.
    #[error("it takes {0} bytes of memory (maximum {MAX_MEMORY})")]
    TooLarge(u64),
}

/// Decodes the p4info of an object ([`p4_object::Object::info`]). Its memory is counted first: an
/// element of two bytes takes several hundred.
///
/// # Errors
///
/// Fails if the bytes are malformed, or if they take too much memory.
pub fn object_info(bytes: &[u8]) -> Result<P4Info, ObjectInfoError> {
    let memory = p4info_memory(bytes).ok_or(ObjectInfoError::Malformed)?;
    if memory > MAX_MEMORY {
        return Err(ObjectInfoError::TooLarge(memory));
    }
    P4Info::decode(bytes).map_err(|_| ObjectInfoError::Malformed)
}

/// Memory that encoded p4info takes when it is decoded. `None` if the bytes are malformed.
pub(crate) fn p4info_memory(bytes: &[u8]) -> Option<u64> {
    SHAPES.memory("p4.config.v1.P4Info", bytes)
}
