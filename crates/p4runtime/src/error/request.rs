//! Errors of a request's device, role, client and stream.

use std::collections::BTreeMap;

use tonic::Code;

/// Errors of a request's device, role, client and stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum RequestError {
    #[error("unknown device {id}: this server has {}", device_list(.devices))]
    NoDevice {
        id: u64,
        /// The server's devices.
        devices: Vec<u64>,
    },
    #[error("no role `{0}`: only the default role, which has no name")]
    NoRole(String),
    #[error("not primary: the election id differs from that of the primary client")]
    NotPrimary,
    #[error("the device has no program yet")]
    NoProgram,
    #[error("the program is saved, but not active before COMMIT: it has no counters or registers")]
    NotCommitted,
    #[error("the primary has set another program during the read: read again")]
    OtherProgram,
    #[error("{0} are not supported")]
    Unsupported(&'static str),
    #[error("{0} is not set")]
    NotSet(&'static str),
    #[error("unknown {0}")]
    Unspecified(&'static str),
    #[error("election id {0} is in use by another client")]
    ElectionTaken(u128),
    #[error("this stream is bound to device {0}")]
    OtherDevice(u64),
    #[error("the limit of {0} streams is reached")]
    TooManyClients(usize),
    #[error("packet metadata {0} is unknown, duplicated or missing")]
    Metadata(u32),
    #[error("digest list {list} of {digest:#010x} is not awaiting acknowledgement")]
    NoList { digest: u32, list: u64 },
    #[error("the first message of a stream must be an arbitration update")]
    NoArbitration,
    #[error(
        "this stream is read too slowly: {messages} messages ({bytes} bytes in all) are waiting"
    )]
    SlowClient {
        messages: usize,
        /// Memory in all.
        bytes: usize,
    },
    #[error("{0} packets and digests were dropped: this stream is read or acknowledged too slowly")]
    Dropped(u64),
    #[error("out of memory for responses: read fewer entities per request, or retry later")]
    AnswerMemory,
}

/// Formats devices: `device 1`, `devices 1, 2`.
fn device_list(ids: &[u64]) -> String {
    if ids.is_empty() {
        return "no devices".into();
    }
    let list: Vec<String> = ids.iter().map(u64::to_string).collect();
    format!("device{} {}", if ids.len() == 1 { "" } else { "s" }, list.join(", "))
}

impl RequestError {
    /// The error for an id that is not one of the devices.
    pub(crate) fn no_device<D>(id: u64, devices: &BTreeMap<u64, D>) -> Self {
        Self::NoDevice { id, devices: devices.keys().copied().collect() }
    }

    /// The gRPC code of the error, as in the specification where that defines one.
    pub(super) fn code(&self) -> Code {
        match self {
            Self::NoDevice { .. } | Self::NoRole(..) | Self::NoList { .. } => Code::NotFound,
            Self::NotPrimary => Code::PermissionDenied,
            Self::NoProgram | Self::NotCommitted | Self::OtherDevice(..) | Self::NoArbitration => {
                Code::FailedPrecondition
            }
            Self::OtherProgram => Code::Aborted,
            Self::Unsupported(..) => Code::Unimplemented,
            Self::NotSet(..)
            | Self::Unspecified(..)
            | Self::ElectionTaken(..)
            | Self::Metadata(..) => Code::InvalidArgument,
            Self::TooManyClients(..)
            | Self::SlowClient { .. }
            | Self::Dropped(..)
            | Self::AnswerMemory => Code::ResourceExhausted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_device_is_answered_with_those_of_the_server() {
        let of = |ids: &[u64]| ids.iter().map(|id| (*id, ())).collect();
        let one = RequestError::no_device(7, &of(&[1]));
        assert_eq!(one.to_string(), "unknown device 7: this server has device 1");
        let two = RequestError::no_device(7, &of(&[1, 3]));
        assert_eq!(two.to_string(), "unknown device 7: this server has devices 1, 3");
    }
}
