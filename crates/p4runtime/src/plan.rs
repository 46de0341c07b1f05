//! Validated updates.

use std::sync::Arc;

use crate::device::{Change, Key};
use crate::store::Effect;

/// A validated update.
pub(crate) struct Plan {
    /// Change for the device, if any.
    pub(crate) change: Option<Change>,
    pub(crate) effect: Effect,
    pub(crate) place: Place,
}

/// Object that an update affects. Two updates of the same object are applied in order.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Row(u32, Arc<Key>),
    Default(u32),
    Cell(u32, Option<u64>),
}
