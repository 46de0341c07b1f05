//! Creates a node: its namespace, links, addresses, routes and routing daemons.

pub(crate) mod announce;
pub(crate) mod build;
pub(crate) mod ends;
pub(crate) mod enter;
pub(crate) mod frr;
pub(crate) mod frr_config;
pub(crate) mod functions;
pub(crate) mod index;
pub(crate) mod links;
pub(crate) mod netem;
pub(crate) mod surplus;
pub(crate) mod xdp_links;
