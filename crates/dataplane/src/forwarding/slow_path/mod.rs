//! The slow path: packets that the program leaves to the kernel, such as those that are too big,
//! are handled correctly only if the kernel has the same SID and the same policy. This module
//! installs those of the file as routes.
//!
//! Each of them has an unreachable fallback route for the time while its interface is down, so that
//! no packet takes another path.
//!
//! - A SID becomes a seg6local route in the main table, unless there is already a route of another
//!   protocol for it.
//! - A tenant's prefixes become seg6 routes in a table of the tenant. A rule for each of the
//!   tenant's interfaces refers to the table, so that no other packet matches the routes. In the
//!   same table, the locators and the SIDs outside of them are unreachable: as in the program,
//!   tenants cannot reach SIDs.
//! - At the edge of the SR domain, rules keep packets from reaching SIDs (`edge.rs`).
//! - A service function's SID has an unreachable route in the main table, which a routing protocol
//!   may advertise, and another one in a table that precedes the main one. While the function is
//!   down, the first one is withdrawn, and the second one prevents packets from following a less
//!   specific route, past the rules.
//!
//! Entries without a counterpart are omitted: tags, whole frames, a table without its VRF, a prefix
//! that matches the outer packets, and routes that an older kernel rejects.

mod install;
mod key;
mod path;
mod present;
mod refused;
mod tenants;

pub use path::SlowPath;
pub use present::Present;
pub use refused::Refused;
