//! Service functions of routers, and references to them in applications.

use document::{Place, Step, steps};
use ipnet::Ipv6Net;
use model::is_lab_name;
use model::topology::{Dataplane, Function, Node, Topology};
use srv6::{SegmentList, Sid, function};

use super::file::{File, Node as NodeText, NodeSrv6};
use super::function_text::Mark;

/// Default length of the argument in bits.
const BITS: u8 = 16;
/// Length of a mark in bits.
const MAX_BITS: u8 = 32;
/// Maximum number of functions with a SID on one node.
const MAX_FUNCTIONS: usize = 0x1_0000 - function::END_AN_NF_FIRST as usize;

/// Resolves the nodes' functions. The nodes must have their locators.
pub(crate) fn functions(place: &mut Place<'_>, file: &File, nodes: &mut [Node]) {
    for (node, (_, text)) in nodes.iter_mut().zip(&file.nodes.0) {
        if text.functions.0.is_empty() || !may_have_functions(place, node, text) {
            continue;
        }
        node.dataplane = Dataplane::Xdp;
        let Some(locator) = node.locator else { continue };
        if text.functions.0.len() > MAX_FUNCTIONS {
            let message = format!("`{}` has more than {MAX_FUNCTIONS} functions", node.name);
            place.key(steps!["nodes", &node.name, "functions"], message, "remove some of them");
            continue;
        }
        for (index, (name, text)) in text.functions.0.iter().enumerate() {
            let at = |key: &str| {
                let way = steps!["nodes", &node.name, "functions", name, key];
                way.to_vec()
            };
            if !is_lab_name(name) {
                let message = format!("`{name}` cannot name a function");
                let help = "use up to 31 of a-z, 0-9 and -, beginning with a letter";
                place.key(&at(""), message, help);
            }
            let room = (128 - 16 - locator.prefix().prefix_len()).min(MAX_BITS);
            let bits = text.bits.unwrap_or(BITS.min(room));
            if bits > room {
                let message = format!("an argument of {bits} bits does not fit after {locator}");
                place.value(&at("bits"), message, &format!("write 0 to {room}"));
                continue;
            }
            let Mark(mark) = text.mark.unwrap_or(Mark(0));
            if u64::from(mark) >> bits != 0 {
                let message = format!("the mark {mark:#x} has more than {bits} bits");
                place.value(&at("mark"), message, "write a smaller one, or `bits:` with more");
            }
            // The cast is safe: the index is below MAX_FUNCTIONS.
            let first = locator.sid(function::END_AN_NF_FIRST + index as u16);
            let prefix = Ipv6Net::new(first.0, 128 - bits).expect("32 bits at most").trunc();
            let sid = Sid((u128::from(prefix.network()) | u128::from(mark)).into());
            let health = text.health.as_ref().map(|health| health.resolve(place, &at("health")));
            if text.rules.is_some() && text.file.is_some() {
                let message = "the rules are in the file, or here";
                place.key(&at("file"), message, "remove it, or `rules:`");
            }
            if text.rules.as_ref().is_some_and(|rules| rules.contains('\0')) {
                let message = "the rules have a NUL byte, and nft reads as far as there";
                place.value(&at("rules"), message, "remove it");
            }
            let (name, rules, file) = (name.clone(), text.rules.clone(), text.file.clone());
            node.functions.push(Function { name, prefix, sid, mark, rules, file, health });
        }
    }
}

/// Checks that a node can have service functions.
fn may_have_functions(place: &mut Place<'_>, node: &Node, text: &NodeText) -> bool {
    let at = steps!["nodes", &node.name, "functions"];
    if node.is_host() {
        let message = format!("`functions` is for routers, and `{}` is a host", node.name);
        place.key(at, message, "add `router: linux`, or remove it");
        return false;
    }
    if !node.has_namespace() || node.is_switch() {
        // Reported with the node's other keys.
        return false;
    }
    if text.srv6 == Some(NodeSrv6::Switch(false)) {
        let message = format!("`functions` is for SRv6, which `{}` does not speak", node.name);
        place.key(at, message, "remove it, or `srv6: false`");
        return false;
    }
    if text.dataplane == Some(Dataplane::Kernel) {
        let message = "the kernel alone has no End.AN.NF";
        let at = steps!["nodes", &node.name, "dataplane"];
        place.value(at, message, "write `dataplane: xdp`, or remove it");
        return false;
    }
    true
}

/// Checks the functions that an application refers to.
pub(crate) fn named(
    place: &mut Place<'_>,
    at: &[Step],
    functions: &[String],
    from: &str,
    topology: &Topology,
) {
    // The last SID is needed for decapsulation. A longer list is not looked at: it may be endless.
    if functions.len() >= SegmentList::MAX_SERVED {
        let message = format!("{} functions are too many segments", functions.len());
        let most = SegmentList::MAX_SERVED - 1;
        place.value(at, message, &format!("write {most} at most"));
        return;
    }
    let known = || topology.nodes.iter().flat_map(|node| &node.functions);
    let item = |index: usize| [at, &[Step::Index(index)]].concat();
    for (index, name) in functions.iter().enumerate() {
        if functions[..index].contains(name) {
            let message = format!("`{name}` is listed twice");
            place.value(&item(index), message, "remove one of the two");
            continue;
        }
        if !known().any(|function| function.name == *name) {
            let near = place.near(name, known().map(|function| function.name.as_str()));
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    format!("add `functions: {{{name}: {{}}}}` to a router, or correct the name")
                }
            };
            place.value(&item(index), format!("no function is called `{name}`"), &help);
            continue;
        }
        let mut nodes = topology.nodes.iter().filter(|node| node.name != from);
        if !nodes.any(|node| node.functions.iter().any(|function| function.name == *name)) {
            let message =
                format!("`{name}` is at `{from}` alone, whose own packets do not pass it");
            place.value(&item(index), message, "add it to another router, or remove it here");
        }
    }
}
