//! Errors of entries and the tables that they are in.

use tonic::Code;

/// Errors of entries and the tables that they are in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum EntryError {
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
    #[error("a default action takes no match fields, priority or idle timeout")]
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
    DuplicateMember(String),
    #[error("table `{table}`: metadata of {bytes} bytes exceeds the limit of {most}")]
    Metadata {
        table: String,
        /// Metadata of the entry.
        bytes: usize,
        most: usize,
    },
    #[error("the limit of {bytes} bytes of metadata of all entries is reached")]
    AllMetadata {
        /// Limit for all entries together.
        bytes: usize,
    },
    #[error("digest `{0}` is already enabled")]
    DigestOn(String),
    #[error("digest `{0}` is not enabled: insert it first")]
    DigestOff(String),
}

impl EntryError {
    /// The gRPC code of the error, as in the specification where that defines one.
    pub(super) fn code(&self) -> Code {
        match self {
            Self::NoKey(..)
            | Self::DefaultHasKey
            | Self::OnlyModified(..)
            | Self::ConstIsRead
            | Self::NoDirect(..)
            | Self::NoIdleTimeout(..)
            | Self::AllTables
            | Self::Metadata { .. } => Code::InvalidArgument,
            Self::Exists(..) | Self::DuplicateMember(..) | Self::DigestOn(..) => {
                Code::AlreadyExists
            }
            Self::NoEntry(..) | Self::DigestOff(..) => Code::NotFound,
            Self::Full { .. } | Self::AllMetadata { .. } => Code::ResourceExhausted,
            Self::ConstantTable(..) | Self::ConstantEntry(..) | Self::ConstantDefault(..) => {
                Code::PermissionDenied
            }
        }
    }
}
