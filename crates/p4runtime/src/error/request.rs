//! Errors of a request's device, role, client and stream.

use tonic::Code;

/// Errors of a request's device, role, client and stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum RequestError {
    #[error("unknown device {0}")]
    NoDevice(u64),
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

impl RequestError {
    /// The gRPC code of the error, as in the specification where that defines one.
    pub(super) fn code(&self) -> Code {
        match self {
            Self::NoDevice(..) | Self::NoRole(..) | Self::NoList { .. } => Code::NotFound,
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
