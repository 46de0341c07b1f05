//! What a controller must not forget: its applications, and where it put them.
//!
//! [`Store`] is the contract; [`Embedded`] keeps everything in one file, through the crate redb.
#![forbid(unsafe_code)]

mod embedded;

use model::{Application, Color, Decision, Placement};
use serde::{Deserialize, Serialize};

pub use embedded::{Embedded, Opened};

/// An application, and what was decided for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// What the user asked for.
    pub application: Application,
    /// Its number.
    pub color: Color,
    /// Where it was put; absent before the first decision.
    pub placement: Option<Placement>,
    /// The last decision that changed something.
    #[serde(default)]
    pub decision: Option<Decision>,
    /// How often it has changed paths.
    #[serde(default)]
    pub moves: u32,
}

impl Record {
    /// The record of an application that nothing has been decided about.
    pub fn new(application: Application, color: Color) -> Self {
        Self { application, color, placement: None, decision: None, moves: 0 }
    }
}

/// Keeps records by their applications' names. Each call is atomic, and on disk when it returns.
pub trait Store: Send {
    /// Every record, by name.
    fn records(&self) -> Result<Vec<Record>, Error>;
    /// Adds a record or replaces the one of the same name.
    fn put(&mut self, record: &Record) -> Result<(), Error>;
    /// Removes a record; one that is not there is no error.
    fn remove(&mut self, name: &str) -> Result<(), Error>;
}

/// Why the store failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be opened or made.
    #[error("cannot open the store {path}")]
    Open {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: Box<redb::DatabaseError>,
    },
    /// Another controller has it open.
    #[error("the store {0} is in use by another controller")]
    InUse(String),
    /// A damaged file cannot be set aside.
    #[error("cannot set the damaged store {path} aside")]
    SetAside {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Reading or writing failed.
    #[error("the store failed while it was {doing}")]
    Failed {
        /// What it was doing.
        doing: &'static str,
        /// Why.
        #[source]
        source: Box<redb::Error>,
    },
    /// A record cannot be read.
    #[error("the store's record of `{name}` is damaged")]
    Damaged {
        /// The record's name.
        name: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}
