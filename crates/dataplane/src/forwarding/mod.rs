//! State that a data plane forwards by, shared by all data planes: computed from the operator's file
//! ([`resolve`]) and the kernel's own configuration ([`import`]), compared ([`Difference`]), and
//! expressed as routes of the kernel ([`SlowPath`]).

mod absent;
mod alone;
mod counterpart;
mod difference;
mod edge;
mod function_links;
mod import;
mod import_room;
mod machine;
mod outer_destinations;
mod resolve;
mod rule_priority;
mod slow_path;
mod stacked;
mod state;
mod text;

pub use alone::NotInKernel;
pub use difference::{Change, ChangeKind, Difference};
pub use edge::{check_tables, warnings};
pub use function_links::check_functions;
pub use import::{Imported, Kernel, Left, TableTenants, import, leave_own};
pub use machine::{Links, Unresolved};
pub use resolve::{Tenants, resolve};
pub use slow_path::{Present, Refused, SlowPath};
pub use state::{
    Attachment, Behavior, DomainVlan, Endpoint, Forwarding, Map, Owner, Policy, PolicyId, Port,
    Proxy, ProxyLink, TABLE_TENANTS, Tags, TenantId, Upper, VlanInterface, Weighted,
};
pub use text::{Names, lists};
