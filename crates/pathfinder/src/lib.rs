//! Path computation for applications: the topology, its load, and the path of each application.
//!
//! This crate is pure: it does no I/O, and time is an argument, so a test can replay every
//! decision.
//!
//! - [`Ted`] is the traffic-engineering database, fed by the nodes' announcements. It produces
//!   immutable [`Graph`] snapshots.
//! - [`igp`] computes the forwarding of the routers' IGP, [`search`] the path that an application
//!   needs.
//! - [`layers`] lets a search find paths through service functions.
//! - [`segments`] encodes a path as the shortest segment list that the IGP follows.
//! - [`Routes`] derives the routes of a topology's routers from its shortest paths.
//! - [`Decider`] keeps the applications, their reservations and their measured load, and decides
//!   which of them move.
#![forbid(unsafe_code)]

mod config;
mod decider;
mod explain;
mod graph;
pub mod igp;
pub mod layers;
mod ledger;
mod load;
mod routes;
pub mod search;
pub mod segments;
mod ted;

pub use config::Config;
pub use decider::{Action, AppStatus, Cause, Decider, Decision, Demand, State};
pub use explain::{Alternative, Explanation, Verdict};
pub use graph::{ArcId, Graph, GraphArc, GraphNode, NodeId, Path, PortId};
pub use ledger::Ledger;
pub use load::{AppLoad, PortLoad, Stamps};
pub use routes::{Destination, Routes, StaticRoute, routing};
pub use ted::Ted;
