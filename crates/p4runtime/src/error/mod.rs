//! Errors of requests and their gRPC codes, by subject.

mod action;
mod batch;
mod config;
mod entry;
mod key;
mod request;
mod value;

use tonic::Code;

use crate::refused::Refused;

pub use action::ActionError;
pub use batch::BatchError;
pub use config::ConfigError;
pub use entry::EntryError;
pub use key::KeyError;
pub use request::RequestError;
pub use value::ValueError;

/// Reason that a request, or an update of a batch, is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Errors of a request's device, role, client and stream.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// Errors of IDs and values.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// Errors of an entry's match fields.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Errors of an entry's action.
    #[error(transparent)]
    Action(#[from] ActionError),
    /// Errors of entries and the tables that they are in.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// Errors of a batch or of the size of a request.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// Errors of a forwarding pipeline configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The device rejects the request.
    #[error("{0}")]
    Device(#[from] Refused),
}

/// Maximum length of a name in an error, in bytes.
const MAX_NAME: usize = 128;

/// A name for an error, truncated: names come from clients and programs and have any length, and a
/// batch has an error for each update.
pub(crate) fn named(name: &str) -> String {
    truncated(name, MAX_NAME)
}

/// The beginning of a text, with a mark if the rest is omitted.
pub(crate) fn truncated(text: &str, most: usize) -> String {
    let end = text.floor_char_boundary(most);
    if end == text.len() { text.to_owned() } else { format!("{}…", &text[..end]) }
}

impl Error {
    /// The gRPC code of the error, as in the specification where that defines one.
    pub fn code(&self) -> Code {
        match self {
            Self::Request(error) => error.code(),
            Self::Value(error) => error.code(),
            Self::Key(error) => error.code(),
            Self::Action(error) => error.code(),
            Self::Entry(error) => error.code(),
            Self::Batch(error) => error.code(),
            Self::Config(error) => error.code(),
            Self::Device(refused) => match refused {
                Refused::Invalid(_) => Code::InvalidArgument,
                Refused::Full(_) => Code::ResourceExhausted,
                Refused::Unsupported(_) => Code::Unimplemented,
                Refused::Away(_) => Code::Unavailable,
                Refused::WithOthers => Code::Aborted,
            },
        }
    }
}
