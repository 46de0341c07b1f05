//! Errors of requests and their gRPC codes.

use tonic::Code;

use crate::refused::Refused;

/// Reason that a request, or an update of a batch, is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each says what it is")]
pub enum Error {
    // ---- request routing and permission ----
    #[error("there is no device {0} here")]
    NoDevice(u64),
    #[error("there is no role `{0}`: only the default role, which has no name")]
    NoRole(String),
    #[error("not from the primary client: only its election id may change anything")]
    NotPrimary,
    #[error("the device has no program yet")]
    NoProgram,
    #[error("the program is saved, but not active before COMMIT: it has no counters or registers")]
    NotCommitted,
    #[error("{0} are not supported")]
    Unsupported(&'static str),
    #[error("{0} is not set")]
    NotSet(&'static str),
    #[error("unknown {0}")]
    Unspecified(&'static str),

    // ---- arbitration ----
    #[error("election id {0} is in use by another client")]
    ElectionTaken(u128),
    #[error("this stream is bound to device {0}")]
    OtherDevice(u64),
    #[error("the limit of {0} streams is reached")]
    TooManyClients(usize),

    // ---- ids and values ----
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

    // ---- keys ----
    #[error("table `{table}` has no match field {field}")]
    UnknownField { table: String, field: u32 },
    #[error("duplicate match field `{0}`")]
    TwiceField(String),
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
    #[error("match field `{0}`: the value has bits set after the prefix")]
    BehindPrefix(String),
    #[error("match field `{0}`: the range ends before it begins")]
    Bounds(String),
    #[error("table `{0}` needs a priority above 0")]
    PriorityNeeded(String),
    #[error("table `{0}` has no priorities: leave it 0")]
    PriorityForbidden(String),

    // ---- actions ----
    #[error("action {action} is not an action of table `{table}`")]
    OtherAction { table: String, action: String },
    #[error("action `{action}` of table `{table}` is for {only} only")]
    Scope { table: String, action: String, only: &'static str },
    #[error("action `{action}` has no parameter {param}")]
    UnknownParam { action: String, param: u32 },
    #[error("duplicate parameter `{0}`")]
    TwiceParam(String),
    #[error("parameter `{0}` is missing")]
    MissingParam(String),

    // ---- entries ----
    #[error("table `{0}` has no match fields: it has a default action, and no entries")]
    NoKey(String),
    #[error("table `{0}` has this entry already")]
    Exists(String),
    #[error("table `{0}` has no such entry")]
    NoEntry(String),
    #[error("table `{table}` is full: it has {size} entries")]
    Full { table: String, size: u64 },
    #[error("the entries of table `{0}` are constant")]
    ConstantTable(String),
    #[error("this entry of table `{0}` is constant")]
    ConstantEntry(String),
    #[error("the default action of table `{0}` is constant")]
    ConstantDefault(String),
    #[error("a default action has no match fields, no priority and no idle timeout")]
    DefaultHasKey,
    #[error("{0} can be modified; they are not inserted or deleted")]
    OnlyModified(&'static str),
    #[error("is_const is only valid in a read response")]
    ConstIsRead,
    #[error("table `{0}` has no direct {1}")]
    NoDirect(String, &'static str),
    #[error("table `{0}` has no idle timeouts")]
    NoIdleTimeout(String),
    #[error("table id 0 selects all tables: no other field may be set")]
    AllTables,
    #[error("value set `{0}` has this member twice")]
    TwiceMember(String),
    #[error("digest `{0}` is already enabled")]
    DigestOn(String),
    #[error("digest `{0}` is not enabled: insert it first")]
    DigestOff(String),

    // ---- batches ----
    #[error("not done, since another update of the batch was refused")]
    WithOthers,
    #[error("the limit of {0} uncommitted changes is reached")]
    TooManySaved(usize),
    #[error("more than {0} entities: read them in parts")]
    TooMany(usize),
    #[error("more than {0} entries to look at, whether they are meant or not: read in parts")]
    TooManyLooked(usize),
    #[error("the client has disconnected")]
    Gone,

    // ---- forwarding pipeline configs ----
    #[error("COMMIT uses the saved program: do not send another one")]
    CommitBrings,
    #[error("no program was saved")]
    NothingSaved,
    #[error("p4info: `{of}`: {problem}")]
    Info { of: String, problem: &'static str },
    #[error("p4info: duplicate id {0:#010x}")]
    TwiceId(u32),
    #[error("the contents of table `{0}` do not fit the new program")]
    NotKept(String),

    // ---- stream messages and the rest ----
    #[error("packet metadata {0} is unknown, duplicated or missing")]
    Metadata(u32),
    #[error("digest list {list} of {digest:#010x} waits for no acknowledgement")]
    NoList { digest: u32, list: u64 },
    #[error("a stream begins with an arbitration update")]
    NoArbitration,
    #[error("this stream is read too slowly: {0} messages wait")]
    SlowClient(usize),
    #[error("{0} packets and digests were dropped: this stream is read too slowly")]
    Dropped(u64),
    #[error("the client read nothing for {0} s")]
    SlowReader(u64),
    #[error("{0}")]
    Device(#[from] Refused),
}

impl Error {
    /// The gRPC code of the error, as in the specification where that defines one.
    pub fn code(&self) -> Code {
        match self {
            Self::NoDevice(_)
            | Self::NoRole(_)
            | Self::NoEntry(_)
            | Self::DigestOff(_)
            | Self::NothingSaved
            | Self::NoList { .. } => Code::NotFound,
            Self::NotPrimary
            | Self::Scope { .. }
            | Self::ConstantTable(_)
            | Self::ConstantEntry(_)
            | Self::ConstantDefault(_) => Code::PermissionDenied,
            Self::NoProgram | Self::NotCommitted | Self::OtherDevice(_) | Self::NoArbitration => {
                Code::FailedPrecondition
            }
            Self::Unsupported(_) => Code::Unimplemented,
            Self::Width { .. } | Self::Index { .. } => Code::OutOfRange,
            Self::Exists(_) | Self::TwiceMember(_) | Self::DigestOn(_) => Code::AlreadyExists,
            Self::Full { .. }
            | Self::TooManyClients(_)
            | Self::TooManySaved(_)
            | Self::TooMany(_)
            | Self::TooManyLooked(_)
            | Self::SlowClient(_)
            | Self::Dropped(_) => Code::ResourceExhausted,
            Self::SlowReader(_) => Code::DeadlineExceeded,
            Self::WithOthers => Code::Aborted,
            Self::Gone => Code::Cancelled,
            Self::Device(refused) => match refused {
                Refused::Invalid(_) => Code::InvalidArgument,
                Refused::Full(_) => Code::ResourceExhausted,
                Refused::Unsupported(_) => Code::Unimplemented,
                Refused::Away(_) => Code::Unavailable,
                Refused::WithOthers => Code::Aborted,
            },
            _ => Code::InvalidArgument,
        }
    }
}
