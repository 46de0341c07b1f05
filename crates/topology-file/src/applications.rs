//! Applications and their references to nodes and functions.

use document::{Place, Step, split_help};
use model::topology::Topology;
use model::{Application, ApplicationError, Bandwidth, Destination};

use super::file::{ApplicationText, File};
use super::functions;
use super::nodes::unknown_node;

/// Resolves the applications; invalid ones are reported.
pub(crate) fn applications(
    place: &mut Place<'_>,
    file: &File,
    topology: &Topology,
) -> Vec<Application> {
    let interfaces = || topology.nodes.iter().flat_map(|node| &node.interfaces);
    // If any link is unlimited, the maximum rate is unknown.
    let largest = interfaces()
        .map(|interface| interface.rate)
        .collect::<Option<Vec<_>>>()
        .and_then(|rates| rates.into_iter().max());
    let texts = file.applications.0.iter();
    texts.filter_map(|(name, text)| application(place, name, text, topology, largest)).collect()
}

fn application(
    place: &mut Place<'_>,
    name: &str,
    text: &ApplicationText,
    topology: &Topology,
    largest: Option<Bandwidth>,
) -> Option<Application> {
    let at = |key: &str| [Step::from("applications"), Step::from(name), Step::from(key)];
    linked_node(place, &at("from"), &text.from, topology);
    let to = match text.to.parse::<Destination>() {
        Ok(to) => to,
        Err(error) => {
            let (message, help) = split_help(&error.to_string());
            place.value(&at("to"), message, &help.unwrap_or_default());
            return None;
        }
    };
    if let Destination::Node(to) = &to {
        linked_node(place, &at("to"), to, topology);
    }
    let application = Application {
        name: name.into(),
        from: text.from.clone(),
        to,
        protocol: text.protocol,
        src_ports: text.source_ports,
        dst_ports: text.ports,
        dscp: text.dscp,
        demand: text.demand,
        class: text.class.unwrap_or_default(),
        functions: text.functions.0.clone(),
    };
    functions::named(place, &at("functions"), &text.functions.0, &text.from, topology);
    for error in application.errors() {
        let (message, help) = split_help(&error.to_string());
        let help = help.unwrap_or_default();
        match error {
            ApplicationError::Name(_) | ApplicationError::NoDemand => {
                place.key(&at(""), message, &help);
            }
            // No node has such a name, so this is reported above.
            ApplicationError::From(_) => {}
            ApplicationError::ToItself(_) => place.value(&at("to"), message, &help),
            ApplicationError::Ports => place.key(&at("ports"), message, &help),
            ApplicationError::SourcePorts => place.key(&at("source-ports"), message, &help),
            ApplicationError::Functions => place.key(&at("functions"), message, &help),
            // Reported with its location in the list.
            ApplicationError::Function(_)
            | ApplicationError::Twice(_)
            | ApplicationError::TooManyFunctions(..) => {}
        }
    }
    if let (Some(demand), Some(largest)) = (application.demand, largest)
        && demand > largest
    {
        let message = format!("the demand {demand} exceeds the rate of every link");
        let help = format!("ask for at most {largest}, the fastest link's rate, or raise a rate");
        place.value(&at("demand"), message, &help);
    }
    Some(application)
}

/// Checks that `name` is a node of the file.
pub(crate) fn known_node(place: &mut Place<'_>, at: &[Step], name: &str, topology: &Topology) {
    if topology.node(name).is_none() {
        unknown_node(place, at, name, topology.nodes.iter().map(|n| n.name.as_str()));
    }
}

/// Checks that `name` is a node of the file with an address on a link.
pub(crate) fn linked_node(place: &mut Place<'_>, at: &[Step], name: &str, topology: &Topology) {
    match topology.node(name) {
        None => known_node(place, at, name, topology),
        Some(node) if node.is_switch() => {
            let message = format!("`{name}` is a switch, which has no address");
            place.value(at, message, "name a host or a router");
        }
        Some(node) if node.interfaces.is_empty() => {
            let help = "add a link of this node under `links:`";
            place.value(at, format!("`{name}` has no link"), help);
        }
        Some(_) => {}
    }
}
