//! The machine that a file is for: its interfaces, and what it lacks.

use std::collections::{BTreeSet, HashMap};

use model::dataplane::Name;
use netlink::Link;

/// The interfaces of a machine, as netlink lists them.
#[derive(Debug, Default)]
pub struct Links {
    pub(super) links: Vec<Link>,
    by_name: HashMap<String, usize>,
    /// VRF devices, by their tables.
    pub(super) by_table: HashMap<u32, u32>,
    /// Whether the program finds a table that no VRF has ([`bpf::Srv6::finds_tables`]).
    pub(super) finds_tables: bool,
    /// Those that pass packets.
    pub(super) passing: BTreeSet<u32>,
    /// Whether an interface to a service function may be missing: it comes again, or does not.
    pub(super) may_lack: bool,
}

impl Links {
    /// These interfaces. `finds_tables`: whether the program finds a table that no VRF has
    /// ([`bpf::Srv6::finds_tables`]).
    pub fn new(links: Vec<Link>, finds_tables: bool) -> Self {
        let by_name = links.iter().enumerate().map(|(at, link)| (link.name.clone(), at)).collect();
        let vrfs = links.iter().filter_map(|link| Some((link.vrf_table?, link.index)));
        let by_table = vrfs.collect();
        Self { by_name, by_table, links, finds_tables, passing: BTreeSet::new(), may_lack: false }
    }

    /// The same, where an interface that was renamed is found by its old name as well.
    pub fn also_called<'a>(mut self, names: impl Iterator<Item = (&'a str, u32)>) -> Self {
        for (name, index) in names {
            if let Some(at) = self.links.iter().position(|link| link.index == index) {
                self.by_name.entry(name.into()).or_insert(at);
            }
        }
        self
    }

    /// The same, of which these pass packets.
    pub fn passing(mut self, passing: BTreeSet<u32>) -> Self {
        self.passing = passing;
        self
    }

    /// The same, where an interface to a service function may be missing: its SID drops then.
    pub fn lacking_functions(mut self) -> Self {
        self.may_lack = true;
        self
    }

    /// Whether there is an interface with this name.
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

/// Something that a file names and the machine does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    /// No interface has a port's name.
    #[error("line {line}: there is no interface `{port}`: {}", match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`ip link` lists those that there are".into(),
    })]
    NoInterface {
        /// The line in the file.
        line: u32,
        /// The port.
        port: Name,
        /// An interface with nearly this name.
        near: Option<String>,
    },
    /// A port that carries no Ethernet frames.
    #[error(
        "line {line}: `{port}` carries no Ethernet frames: use an interface with a MAC address"
    )]
    NotEthernet {
        /// The line in the file.
        line: u32,
        /// The port.
        port: Name,
    },
    /// An interface to a service function whose frames are a tenant's.
    #[error(
        "line {line}: the frames of `{name}` are a tenant's: take them out of its `attachments:`, \
         or use another VLAN"
    )]
    IsTenants {
        /// The line in the file.
        line: u32,
        /// The interface.
        name: Name,
    },
    /// An interface to a service function that is a VRF.
    #[error("line {line}: `{name}` is a VRF: write an interface that leads to the function")]
    FunctionByVrf {
        /// The line in the file.
        line: u32,
        /// The interface.
        name: Name,
    },
    /// A port that is an interface above another one.
    #[error("line {line}: `{port}` is VLAN {vlan}{}: write that interface under `ports`, \
         and the VLAN under `attachments`", match parent {
        Some(parent) => format!(" of `{parent}`"),
        None => String::new(),
    })]
    IsVlan {
        /// The line in the file.
        line: u32,
        /// The port.
        port: Name,
        /// Its tag.
        vlan: u16,
        /// The interface below.
        parent: Option<String>,
    },
    /// A port that is a VRF.
    #[error("line {line}: `{port}` is a VRF: write the interfaces in it under `ports`")]
    IsVrf {
        /// The line in the file.
        line: u32,
        /// The port.
        port: Name,
    },
    /// A port at the edge that is a bridge's or a bond's.
    #[error(
        "line {line}: `sids: false` does not hold at `{port}`, whose packets come in by `{master}`: take it \
         out of that, or keep SIDs from `{master}` with `nft`"
    )]
    EdgeInMaster {
        /// The line in the file.
        line: u32,
        /// The port.
        port: Name,
        /// The bridge or bond.
        master: String,
    },
    /// A table that this kernel finds only by its VRF.
    #[error(
        "line {line}: this kernel does not look up in a table by its number (Linux 6.5, and later \
         updates of 6.1, do): make a VRF for it with `ip link add NAME type vrf table {table}`"
    )]
    NeedsVrf {
        /// The line in the file.
        line: u32,
        /// The table.
        table: u32,
    },
    /// No VRF has the name that a table is given by.
    #[error(
        "line {line}: there is no VRF `{vrf}`: make it with `ip link add {vrf} type vrf \
         table …`, or write `table:`"
    )]
    NoVrf {
        /// The line in the file.
        line: u32,
        /// The VRF.
        vrf: Name,
    },
}
