//! SRv6 in XDP.

mod alone;
mod attach;
mod counterpart;
mod counters;
mod devices;
mod edge;
mod forwarding;
mod function_links;
pub(crate) mod functions;
mod guards;
mod import;
mod lengths;
mod outer;
mod outer_destinations;
mod pins;
mod ports;
mod program;
mod proxies;
mod proxy_tables;
mod record;
mod rule_priority;
mod slow_path;
mod sources;
mod spread;
mod tables;
mod tracing;

pub use alone::NotInKernel;
pub use edge::{check_tables, warnings};
pub use forwarding::{
    Attachment, Behavior, Endpoint, Forwarding, Map, Owner, Policy, PolicyId, Port, Proxy,
    ProxyLink, Tags, TenantId, Upper, Weighted,
};
pub use function_links::check_functions;
pub use functions::function_settings;
pub use import::{Imported, Kernel, Left, TABLE_TENANTS, TableTenants, import, leave_own};
pub use outer::outer;
pub(crate) use pins::Pins;
pub use program::Xdp;
pub use slow_path::{Present, Refused, SlowPath};
pub use tables::{Counted, Tables};

mod difference;
mod machine;
mod resolve;
mod text;

pub use difference::{Change, Difference, Kind};
pub use machine::{Links, Unresolved};
pub use resolve::{Tenants, resolve};
pub use text::{Names, lists};
