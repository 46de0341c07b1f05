//! Values: networks, the data plane's configuration, segment lists and applications.
//!
//! All types hold parsed and validated values. This crate does no I/O and parses no files: the
//! grammars of files are in `topology_file`, `dataplane_file` and `tenants_file`.
#![forbid(unsafe_code)]

mod announcement;
mod application;
mod assignment;
mod bandwidth;
pub mod dataplane;
mod decision;
mod flow;
mod name;
mod occurrence;
mod policy;
mod telemetry;
mod tenant;
pub mod topology;

pub use announcement::{
    Adjacency, Announcement, Function as AnnouncedFunction, Interface as AnnouncedInterface,
    NodeSids,
};
pub use application::{Application, ApplicationError, Destination, DestinationError};
pub use assignment::{Assignment, Placement, Step};
pub use bandwidth::{Bandwidth, BandwidthError};
pub use decision::Decision;
pub use flow::{Class, Dscp, DscpError, Flow, PortRange, PortRangeError, Protocol};
pub use name::{is_daemon_name, is_interface_name, is_lab_name, is_node_name};
pub use occurrence::Occurrence;
pub use policy::{Color, Policy};
pub use telemetry::{FunctionState, InterfaceLoad, Telemetry};
pub use tenant::{Isolation, Tenant};
