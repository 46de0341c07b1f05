//! Paths for applications: what the network is, how full it is, and who goes where.
//!
//! Everything here is pure: no I/O, and the time is an argument, so that every decision can be
//! replayed in a test.
//!
//! - [`Ted`] is the traffic-engineering database, fed by the nodes' announcements; it yields
//!   immutable [`Graph`] snapshots.
//! - [`igp`] computes what the routers' own routing does, [`search`] what an application wants.
//! - [`layers`] lets a search find paths through service functions.
//! - [`segments`] turns a path into the shortest segment list that the IGP will follow.
//! - [`Decider`] holds applications, their reservations and their measured load, and says who
//!   moves.
#![forbid(unsafe_code)]

mod config;
mod decider;
mod explain;
mod graph;
pub mod igp;
pub mod layers;
mod ledger;
mod load;
pub mod search;
pub mod segments;
mod ted;

pub use config::Config;
pub use decider::{Action, AppStatus, Cause, Decider, Decision, Demand, State};
pub use explain::{Alternative, Explanation, Verdict};
pub use graph::{ArcId, Graph, GraphArc, GraphNode, NodeId, Path, PortId};
pub use ledger::Ledger;
pub use load::{AppLoad, PortLoad, Stamps};
pub use ted::Ted;
