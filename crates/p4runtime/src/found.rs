//! Result of a read.

use std::sync::Arc;

use crate::data::Data;
use crate::device::{Count, Key, Match, Meter, Target};
use crate::store::{DefaultRow, Row};
use crate::v1::digest_entry;

/// An entity in internal form.
#[derive(Debug, Clone)]
pub(crate) enum Found {
    Row { table: u32, key: Arc<Key>, row: Arc<Row>, count: Option<Count>, meter: bool },
    Default { table: u32, row: Box<DefaultRow>, count: Option<Count>, meter: bool },
    DirectCounter { table: u32, of: Target, count: Count },
    DirectMeter { table: u32, of: Target, meter: Option<Meter> },
    Counter { id: u32, at: u64, count: Count },
    Meter { id: u32, at: u64, meter: Option<Meter> },
    Register { id: u32, at: u64, data: Box<Data> },
    ValueSet { id: u32, members: Arc<Vec<Vec<Match>>> },
    Digest { id: u32, config: digest_entry::Config },
}
