//! Starts, finds and ends the processes of a lab.

pub(crate) mod bounded;
pub(crate) mod control_plane;
pub(crate) mod emulated;
pub(crate) mod ended;
pub(crate) mod patience;
pub(crate) mod processes;
pub(crate) mod programs;
pub(crate) mod recorded;
pub(crate) mod restart;
pub(crate) mod spawn;
pub(crate) mod supervised;
pub(crate) mod switch;
pub(crate) mod tenants;
pub(crate) mod xdp;
