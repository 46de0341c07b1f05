//! Values of a resolved topology. They know neither the file's grammar nor its rules.

pub(super) mod attachment;
pub(super) mod backend;
pub(super) mod event;
pub(super) mod function;
pub(super) mod impairments;
pub(super) mod network;
pub(super) mod quantity;
pub(super) mod test;
pub(super) mod timers;
