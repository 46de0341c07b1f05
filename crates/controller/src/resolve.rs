//! Resolves the names in an application to nodes and flows.

use ipnet::IpNet;
use model::{Application, Destination, Flow};
use pathfinder::Ted;

use crate::message::Refusal;

/// The two ends of an application, and its flows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) flows: Vec<Flow>,
}

/// Finds both ends of `app` among the nodes that have announced themselves.
///
/// The flows of a host have no source prefix, because all packets that leave the host are its own.
/// The flows of a router have one, because transit traffic passes through it.
pub(crate) fn resolve(app: &Application, ted: &Ted) -> Result<Resolved, Refusal> {
    let unknown = |name: &str| Refusal::NoNode {
        name: name.into(),
        known: ted.announcements().map(|(a, _)| a.node.clone()).collect(),
    };
    let from = ted.announcement(&app.from).ok_or_else(|| unknown(&app.from))?;
    let (to, destinations) = match &app.to {
        Destination::Node(name) => {
            let node = ted.announcement(name).ok_or_else(|| unknown(name))?;
            (name.clone(), node.addresses.iter().map(|&a| IpNet::from(a)).collect::<Vec<_>>())
        }
        Destination::Prefix(prefix) => {
            // Both ends of a link have addresses in its prefix, but the user means the host. Among
            // several nodes, the choice must not depend on the order of announcements.
            let owner = ted
                .announcements()
                .map(|(announcement, _)| announcement)
                .filter(|a| a.node != from.node)
                .filter(|a| a.addresses.iter().any(|address| prefix.contains(address)))
                .min_by_key(|a| (a.transit, &a.node))
                .ok_or(Refusal::NoNodeIn(*prefix))?;
            (owner.node.clone(), vec![*prefix])
        }
    };
    let sources: Vec<Option<IpNet>> = if from.transit {
        from.addresses.iter().map(|&address| Some(IpNet::from(address))).collect()
    } else {
        vec![None]
    };
    let flow = |src: Option<IpNet>, dst: IpNet| Flow {
        src,
        dst,
        protocol: app.protocol,
        src_ports: app.src_ports,
        dst_ports: app.dst_ports,
        dscp: app.dscp,
    };
    let same_family = |src: &Option<IpNet>, dst: &IpNet| {
        src.is_none_or(|src| {
            matches!((src, dst), (IpNet::V4(_), IpNet::V4(_)) | (IpNet::V6(_), IpNet::V6(_)))
        })
    };
    let flows = destinations
        .iter()
        .flat_map(|dst| {
            sources.iter().filter(|src| same_family(src, dst)).map(|src| flow(*src, *dst))
        })
        .collect();
    Ok(Resolved { from: app.from.clone(), to, flows })
}
