//! Commands and program inputs that a topology file contains, and interfaces of this machine that it takes:
//! its author has root's rights.

use model::Isolation;
use model::topology::{Attachment, Means, Topology};
use serde::Serialize;

/// Stands for the user of a program in a sandbox.
pub const SANDBOX: &str = "a sandbox";

/// An action on this machine that a topology file causes: a command, a program, an attached interface, or
/// a file that is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Run {
    /// The node that provides the network namespace; that of an attached interface is the machine's. The
    /// file system is the machine's.
    pub node: String,
    /// The user that runs it, or [`SANDBOX`].
    pub user: &'static str,
    /// The program that interprets `text`, unless `text` is a command itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<&'static str>,
    /// The command, or the program's input.
    pub text: String,
}

/// All such actions of a lab with this topology, except the start of Kaido itself and of FRR's daemons.
pub fn runs(topology: &Topology) -> Vec<Run> {
    let mut runs = Vec::new();
    for node in &topology.nodes {
        let mut add = |by, text: &str| {
            runs.push(Run { node: node.name.clone(), user: "root", by, text: text.into() });
        };
        if let Some(attachment) = &node.attachment {
            let (by, text) = taken(attachment);
            add(Some(by), &text);
        }
        if let Some(config) = &node.extra_config {
            add(Some("vtysh"), config);
        }
        if node.is_switch() {
            add(None, "ovs-vswitchd");
        }
        for function in &node.functions {
            match (&function.rules, &function.file) {
                (Some(rules), _) => add(Some("nft"), rules),
                (None, Some(file)) => add(Some("nft"), &format!("the content of {file}")),
                (None, None) => {}
            }
            if let Some(health) = &function.health {
                add(None, &health.run.join(" "));
            }
        }
        for tenant in &node.tenants {
            let (program, name) = (tenant.program.display(), &tenant.name);
            let (user, place) = match tenant.isolation {
                Isolation::Inline if node.is_switch() => ("root", "in the switch's process"),
                Isolation::Inline => ("root", "in the process that moves the packets"),
                Isolation::Process => (SANDBOX, "in a process of its own"),
                Isolation::Vm { .. } => (SANDBOX, "in a virtual machine of its own"),
            };
            let kernel = match &tenant.isolation {
                Isolation::Vm { kernel: Some(file) } => {
                    format!(", with the kernel {}", file.display())
                }
                _ => String::new(),
            };
            let text = format!("{program} of tenant {name}, {place}{kernel}");
            runs.push(Run { node: node.name.clone(), user, by: Some("P4"), text });
            if let Some(file) = &tenant.vm_info {
                let text = format!("reads {}, values of the VM of tenant {name}", file.display());
                runs.push(Run { node: node.name.clone(), user: "root", by: Some("Kaido"), text });
            }
        }
    }
    runs
}

/// Describes the packets of this machine that an attachment takes.
fn taken(Attachment { interface, means }: &Attachment) -> (&'static str, String) {
    match means {
        Means::Frames => (
            "the emulator",
            format!("sends and receives all frames of this machine's interface {interface}"),
        ),
        Means::Queue { prefixes, bypass } => {
            let beyond: Vec<_> = prefixes.iter().map(ToString::to_string).collect();
            let beyond = match &beyond[..] {
                [] => String::new(),
                all => format!(" (beyond it: {})", all.join(", ")),
            };
            let ended = if *bypass { "forwards" } else { "drops" };
            let text = format!(
                "rules in this machine's table mangle: packets from its interface {interface}{beyond} to the lab or \
                 to another attached interface are sent through the lab; this machine {ended} them if the emulator ends"
            );
            ("iptables", text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_rules_and_configurations_are_listed() {
        let text = "name: x\nnodes:\n  r1: {router: frr, config: \"log stdout\"}\n  fw:\n    router: linux\n    \
             functions:\n      f: {rules: 'table inet f {}', health: {run: [sh, -c, id]}}\n      \
             g: {file: g.nft}\nlinks: [r1-fw]\n";
        let topology =
            topology_file::parse("lab.yaml", text).unwrap_or_else(|problems| panic!("{problems}"));
        let runs = runs(&topology);
        let seen: Vec<_> = runs.iter().map(|run| (&*run.node, run.by, run.text.trim())).collect();
        assert_eq!(
            seen,
            [
                ("r1", Some("vtysh"), "log stdout"),
                ("fw", Some("nft"), "table inet f {}"),
                ("fw", None, "sh -c id"),
                ("fw", Some("nft"), "the content of g.nft"),
            ]
        );
        assert!(runs.iter().all(|run| run.user == "root"));
    }

    /// They change the network of this machine, and not only that of the lab.
    #[test]
    fn attached_interfaces_are_listed() {
        let text = "name: x\nnodes:\n  a: {attach: eth1}\n  b: {attach: eth2, via: nfqueue, prefixes: \
             [198.51.100.0/24, '2001:db8:b::/64']}\n  x1: {router: virtual}\nlinks: [a-x1: {ipv4: \
             192.0.2.0/24}, x1-b]\n";
        let topology =
            topology_file::parse("lab.yaml", text).unwrap_or_else(|problems| panic!("{problems}"));
        let runs = runs(&topology);
        let seen: Vec<_> = runs.iter().map(|run| (&*run.node, run.user, run.by)).collect();
        assert_eq!(seen, [("a", "root", Some("the emulator")), ("b", "root", Some("iptables"))]);
        assert!(runs[0].text.contains("all frames of this machine's interface eth1"));
        for part in ["eth2 (beyond it: 198.51.100.0/24, 2001:db8:b::/64)", "drops them"] {
            assert!(runs[1].text.contains(part), "{}", runs[1].text);
        }
    }

    #[test]
    fn switches_and_their_programs_are_listed() {
        let text = "name: x\nnodes:\n  h1: {}\n  h2: {}\n  sw: {switch: {kind: openvswitch, tenants: {a: \
             {program: a.p4, ports: {h1: 1}, isolation: inline}, b: {program: b.p4, ports: {h2: 1}}}}}\n\
             links: [h1-sw, h2-sw]\n";
        let topology =
            topology_file::parse("lab.yaml", text).unwrap_or_else(|problems| panic!("{problems}"));
        let runs = runs(&topology);
        let seen: Vec<_> = runs.iter().map(|run| (run.user, run.by, run.text.as_str())).collect();
        assert_eq!(
            seen,
            [
                ("root", None, "ovs-vswitchd"),
                ("root", Some("P4"), "a.p4 of tenant a, in the switch's process"),
                ("a sandbox", Some("P4"), "b.p4 of tenant b, in a process of its own"),
            ]
        );
    }

    #[test]
    fn files_of_virtual_machines_are_listed() {
        let text = "name: x\nnodes:\n  h1: {tenants: {a: {program: a.p4, ports: {h2: 1}, isolation: vm, \
             kernel: ../vmlinuz, vm_info: /run/vm}}}\n  h2: {}\nlinks: [h1-h2]\n";
        let topology =
            topology_file::parse("lab.yaml", text).unwrap_or_else(|problems| panic!("{problems}"));
        let runs = runs(&topology);
        let seen: Vec<_> = runs.iter().map(|run| (run.user, run.by, run.text.as_str())).collect();
        let program =
            "a.p4 of tenant a, in a virtual machine of its own, with the kernel ../vmlinuz";
        let values = "reads /run/vm, values of the VM of tenant a";
        assert_eq!(seen, [(SANDBOX, Some("P4"), program), ("root", Some("Kaido"), values)]);
    }
}
