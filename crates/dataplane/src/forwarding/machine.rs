//! The machine that a file applies to: its interfaces, and the entities that it lacks.

use std::collections::{BTreeSet, HashMap};

use model::dataplane::Name;
use netlink::Link;

use super::Tags;

/// Maximum depth of stacked interfaces: the kernel allows eight levels.
pub(super) const MAX_STACKED: usize = 8;

/// The interfaces of a machine, as netlink lists them.
#[derive(Debug, Default)]
pub struct Links {
    pub(super) links: Vec<Link>,
    by_name: HashMap<String, usize>,
    /// VRF devices by table.
    pub(super) by_table: HashMap<u32, u32>,
    /// True if the program can look up in a table without a VRF ([`bpf::Srv6::finds_tables`]).
    pub(super) finds_tables: bool,
    /// Interfaces that pass packets.
    pub(super) passing: BTreeSet<u32>,
    /// True if an interface to a service function may be missing, temporarily or permanently, and a
    /// port at the edge may be in a bridge: the file was accepted before.
    pub(super) may_lack: bool,
    /// Interfaces to service functions that may be missing, since an earlier file has named them.
    known: BTreeSet<Name>,
}

impl Links {
    /// Creates the set of interfaces. `finds_tables`: true if the program can look up in a table
    /// without a VRF ([`bpf::Srv6::finds_tables`]).
    pub fn new(links: Vec<Link>, finds_tables: bool) -> Self {
        let by_name = links.iter().enumerate().map(|(at, link)| (link.name.clone(), at)).collect();
        let vrfs = links.iter().filter_map(|link| Some((link.vrf_table?, link.index)));
        let by_table = vrfs.collect();
        let (passing, known) = (BTreeSet::new(), BTreeSet::new());
        Self { by_name, by_table, links, finds_tables, passing, may_lack: false, known }
    }

    /// Adds the old names of renamed interfaces.
    pub fn also_called<'a>(mut self, names: impl Iterator<Item = (&'a str, u32)>) -> Self {
        let links = self.links.iter().enumerate();
        let by_index: HashMap<u32, usize> = links.map(|(at, link)| (link.index, at)).collect();
        for (name, index) in names {
            if let Some(at) = by_index.get(&index) {
                self.by_name.entry(name.into()).or_insert(*at);
            }
        }
        self
    }

    /// Sets the interfaces that pass packets.
    pub fn passing(mut self, passing: BTreeSet<u32>) -> Self {
        self.passing = passing;
        self
    }

    /// Allows interfaces to service functions to be missing. Their SIDs then drop packets.
    pub fn lacking_functions(mut self) -> Self {
        self.may_lack = true;
        self
    }

    /// Allows these interfaces to service functions to be missing.
    pub fn lacking(mut self, known: BTreeSet<Name>) -> Self {
        self.known = known;
        self
    }

    /// Returns true if an interface to a service function may be missing.
    pub(super) fn may_lack(&self, name: &Name) -> bool {
        self.may_lack || self.known.contains(name)
    }

    /// Returns the problem of a line that names an interface that is not present.
    pub(super) fn no_interface(&self, line: u32, name: &Name) -> Unresolved {
        let known = self.links.iter().map(|link| link.name.as_str());
        let near = document::suggest(name, known).map(Into::into);
        Unresolved::NoInterface { line, port: name.clone(), near }
    }

    /// Returns true if there is an interface with this name.
    pub fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    pub(super) fn named(&self, name: &str) -> Option<&Link> {
        self.by_name.get(name).map(|at| &self.links[*at])
    }

    pub(super) fn indexed(&self, index: u32) -> Option<&Link> {
        self.links.iter().find(|link| link.index == index)
    }
}

impl Unresolved {
    /// Returns the port, if its interface exists and cannot be a port.
    pub fn unusable_port(&self) -> Option<&Name> {
        match self {
            Self::NotEthernet { port, .. }
            | Self::IsVlan { port, .. }
            | Self::IsVrf { port, .. }
            | Self::IsBond { port, .. } => Some(port),
            _ => None,
        }
    }
}

/// An entity that a file refers to and the machine lacks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    /// A port's name does not match any interface.
    #[error("line {line}: no interface `{port}`: {}", match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`ip link` lists those that there are".into(),
    })]
    NoInterface {
        /// Line in the file.
        line: u32,
        /// The port.
        port: Name,
        /// An interface with a similar name.
        near: Option<String>,
    },
    /// The port does not carry Ethernet frames.
    #[error(
        "line {line}: `{port}` carries no Ethernet frames: use an interface with a MAC address"
    )]
    NotEthernet {
        /// Line in the file.
        line: u32,
        /// The port.
        port: Name,
    },
    /// A tenant, or a host at an edge, can send frames to an interface to a service function.
    #[error(
        "line {line}: frames of `{name}` belong to a tenant, or may come from one, from an edge port or through a tunnel: use a \
         VLAN or an interface of another port"
    )]
    IsTenants {
        /// Line in the file.
        line: u32,
        /// The interface.
        name: Name,
    },
    /// The interface to a service function is a VLAN in the SR domain.
    #[error(
        "line {line}: `{name}` is in the SR domain (`vlans:` of its port), so that the function would reach all \
         SIDs: use another VLAN"
    )]
    InDomain {
        /// Line in the file.
        line: u32,
        /// The interface.
        name: Name,
    },
    /// The interface to a service function is a VRF.
    #[error("line {line}: `{name}` is a VRF: write an interface that leads to the function")]
    FunctionByVrf {
        /// Line in the file.
        line: u32,
        /// The interface.
        name: Name,
    },
    /// The port is an interface stacked on another one.
    #[error("line {line}: `{port}` is VLAN {vlan}{}: write that interface under `ports`, and the VLAN \
         under its `vlans`, or under `attachments` of a tenant", match parent {
        Some(parent) => format!(" of `{parent}`"),
        None => String::new(),
    })]
    IsVlan {
        /// Line in the file.
        line: u32,
        /// The port.
        port: Name,
        /// VLAN tag.
        vlan: u16,
        /// The lower interface.
        parent: Option<String>,
    },
    /// The port has no interface for a VLAN in the SR domain.
    #[error("line {line}: `{port}` has no interface for {}: {}", match tags {
        Tags { outer, inner: 0 } => format!("VLAN {outer}"),
        Tags { outer, inner } => format!("VLAN {inner} within VLAN {outer} (802.1ad)"),
    }, match tags {
        Tags { outer, inner: 0 } => {
            format!("`ip link add link {port} name {port}.{outer} up type vlan id {outer}`")
        }
        Tags { outer, inner } => format!(
            "`ip link add link {port} name {port}.{outer} up type vlan proto 802.1ad id {outer}`, then \
             `ip link add link {port}.{outer} name {port}.{outer}.{inner} up type vlan id {inner}`"
        ),
    })]
    NoVlan {
        /// Line in the file.
        line: u32,
        /// The port.
        port: Name,
        /// Tags of the VLAN.
        tags: Tags,
    },
    /// The port is a VRF.
    #[error("line {line}: `{port}` is a VRF: write the interfaces in it under `ports`")]
    IsVrf {
        /// Line in the file.
        line: u32,
        /// The port.
        port: Name,
    },
    /// The port is a bond.
    #[error(
        "line {line}: `{port}` is a bond, whose XDP program would run on the interfaces in it: take them out of \
         the bond and write them under `ports`, with equal-cost routes"
    )]
    IsBond {
        /// Line in the file.
        line: u32,
        /// The port.
        port: Name,
    },
    /// A port at the edge belongs to a bridge or a bond.
    #[error(
        "line {line}: `sids: false` has no effect on `{port}`, because its packets arrive on `{master}`: \
         remove the port from `{master}`, or filter SIDs there with `nft`"
    )]
    EdgeInMaster {
        /// Line in the file.
        line: u32,
        /// The port.
        port: Name,
        /// The bridge or bond.
        master: String,
    },
    /// The kernel can look up in the table only through its VRF.
    #[error(
        "line {line}: this kernel cannot look up a table by its number (Linux 6.5, and later updates of \
         6.1, can): make a VRF for it with `ip link add NAME type vrf table {table}`"
    )]
    NeedsVrf {
        /// Line in the file.
        line: u32,
        /// The table.
        table: u32,
    },
    /// The name given for a table does not match any VRF.
    #[error(
        "line {line}: no VRF `{vrf}`: create it with `ip link add {vrf} type vrf \
         table …`, or write `table:`"
    )]
    NoVrf {
        /// Line in the file.
        line: u32,
        /// The VRF.
        vrf: Name,
    },
}
