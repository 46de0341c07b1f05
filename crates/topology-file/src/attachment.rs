//! Nodes that stand for an external network: hosts beyond an interface of this machine.

use std::collections::HashMap;

use document::{Place, Step, steps};
use ipnet::IpNet;
use model::topology::{Attachment, Means, Topology};

use super::file::{File, Node as NodeText, Via};

/// Resolves the attachment of a node.
pub(crate) fn attachment(place: &mut Place<'_>, name: &str, text: &NodeText) -> Option<Attachment> {
    let at = |key: &str| [Step::from("nodes"), Step::from(name), Step::from(key)];
    let Some(interface) = &text.attach else {
        let given = [
            ("via", text.via.is_some()),
            ("prefixes", text.prefixes.is_some()),
            ("bypass", text.bypass.is_some()),
        ];
        for (key, _) in given.into_iter().filter(|(_, given)| *given) {
            let message = format!("`{key}` is for attached interfaces");
            place.key(&at(key), message, "add `attach: eth1`, or remove it");
        }
        return None;
    };
    let is_possible = model::is_interface_name(interface)
        && interface != "lo"
        && interface.bytes().all(|b| b.is_ascii_graphic() && b != b'%');
    if !is_possible {
        let message = format!("`{interface}` cannot be attached");
        place.value(&at("attach"), message, "name an interface of this machine, such as eth1");
    }
    if text.router.is_some() {
        let message = format!("`{name}` is attached, and a router");
        place.key(&at("router"), message, "remove it: what is attached is the outside world");
    }
    let means = match text.via {
        None => {
            let given = [("prefixes", text.prefixes.is_some()), ("bypass", text.bypass.is_some())];
            for (key, _) in given.into_iter().filter(|(_, given)| *given) {
                let message = format!("`{key}` is for packets that come by a netfilter queue");
                place.key(&at(key), message, "add `via: nfqueue`, or remove it");
            }
            Means::Frames
        }
        Some(Via::Nfqueue) => {
            let prefixes: Vec<IpNet> =
                text.prefixes.iter().flat_map(|all| &all.0).map(|prefix| prefix.0).collect();
            if prefixes.is_empty() {
                let message =
                    format!("`{name}` has no `prefixes`: the networks behind it are unknown");
                place.key(&at("via"), message, "add `prefixes: [192.0.2.0/24]`");
            }
            Means::Queue { prefixes, bypass: text.bypass.unwrap_or(false) }
        }
    };
    Some(Attachment { interface: interface.clone(), means })
}

/// Checks of attached nodes that need their links.
pub(crate) fn check(place: &mut Place<'_>, file: &File, topology: &Topology) {
    let mut attached = HashMap::new();
    for node in &topology.nodes {
        let Some(interface) = node.attachment.as_ref().map(|one| one.interface.as_str()) else {
            continue;
        };
        let at = steps!["nodes", &node.name, "attach"];
        let first = *attached.entry(interface).or_insert(&node.name);
        if *first != node.name {
            let message = format!("`{interface}` is attached as `{first}` already");
            place.value(at, message, "attach it once: several nodes can be on one LAN with it");
        }
        if node.interfaces.len() != 1 && node.takes_frames() {
            let message = format!("`{}` has {} links", node.name, node.interfaces.len());
            place.key(at, message, "give it one: an interface is one end of a link, or on one LAN");
        }
    }
    if !topology.controller {
        return;
    }
    for node in topology.nodes.iter().filter(|node| !node.has_namespace()) {
        let message = format!("no daemon can run on `{}`, which a controller needs", node.name);
        let help = if file.applications.0.is_empty() {
            "remove `controller: true`, or use `router: linux` or `router: frr`"
        } else {
            "remove the applications, or use `router: linux` or `router: frr`"
        };
        place.key(steps!["nodes", &node.name], message, help);
    }
}
