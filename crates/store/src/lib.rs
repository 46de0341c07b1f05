//! The persistent state of a controller: its applications and their placements.
//!
//! [`Store`] is the interface; [`Embedded`] implements it on a single redb file.
#![forbid(unsafe_code)]

mod embedded;

use model::{Application, Color, Decision, Placement};
use serde::{Deserialize, Serialize};

pub use embedded::{Embedded, Opened};

/// An application and its last decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The user's request.
    pub application: Application,
    /// The application's color.
    pub color: Color,
    /// The placement; None before the first decision.
    pub placement: Option<Placement>,
    /// The last decision that changed something.
    #[serde(default)]
    pub decision: Option<Decision>,
    /// The number of path changes.
    #[serde(default)]
    pub moves: u32,
}

impl Record {
    /// The record of an application without decisions.
    pub fn new(application: Application, color: Color) -> Self {
        Self { application, color, placement: None, decision: None, moves: 0 }
    }
}

/// Stores records by application name. Each call is atomic, and durable when it returns.
pub trait Store: Send {
    /// All records, ordered by name.
    fn records(&self) -> Result<Vec<Record>, Error>;
    /// Adds a record or replaces the one of the same name.
    fn put(&mut self, record: &Record) -> Result<(), Error>;
    /// Removes a record. A missing record is not an error.
    fn remove(&mut self, name: &str) -> Result<(), Error>;
}

/// A store error.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be opened or created.
    #[error("cannot open the store {path}")]
    Open {
        /// The file.
        path: String,
        /// The cause.
        #[source]
        source: Box<redb::DatabaseError>,
    },
    /// Another controller has the file open.
    #[error("the store {0} is in use by another controller")]
    InUse(String),
    /// A damaged file cannot be set aside.
    #[error("cannot set the damaged store {path} aside")]
    SetAside {
        /// The file.
        path: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// Reading or writing failed.
    #[error("store operation failed ({doing})")]
    Failed {
        /// The operation in progress.
        doing: &'static str,
        /// The cause.
        #[source]
        source: Box<redb::Error>,
    },
    /// A record cannot be parsed.
    #[error("the store's record of `{name}` is damaged")]
    Damaged {
        /// The record's name.
        name: String,
        /// The cause.
        #[source]
        source: serde_json::Error,
    },
}
