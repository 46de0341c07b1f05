//! Netfilter rules that divert packets which this machine would forward from an interface into the
//! emulator's queues. Each interface has two chains in the table `mangle`, named after its first
//! queue.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::IpAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use model::topology::{Attachment, Means, Topology};

use super::{Queues, attachments};
use crate::Error;
use crate::error::AttachError;

/// First queue number for labs: other software starts at 0.
const FIRST: u16 = 16_384;
const EACH: u16 = Attachment::QUEUES;

fn has_queues(topology: &Topology) -> bool {
    attachments(topology).any(|(_, attached)| matches!(attached.means, Means::Queue { .. }))
}

/// Checks that this machine can queue packets, if the network needs that.
pub(super) fn check(topology: &Topology) -> Result<(), Error> {
    if !has_queues(topology) {
        return Ok(());
    }
    // The first two add the rules, the other two remove them.
    for program in ["iptables-restore", "ip6tables-restore", "iptables", "ip6tables"] {
        let found = Command::new(program).arg("--version").stdout(Stdio::null()).status();
        found.map_err(|source| Error::Attach(AttachError::NoIptables { program, source }))?;
    }
    if !Path::new("/dev/net/tun").exists() {
        return Err(Error::Attach(AttachError::NoTun));
    }
    Ok(())
}

/// Chooses unused queue numbers. `root`: the directory of all labs.
pub(super) fn choose(topology: &Topology, root: &Path) -> Result<Queues, Error> {
    if !has_queues(topology) {
        return Ok(Queues::new());
    }
    let mut taken: BTreeSet<u16> = BTreeSet::new();
    let listed = std::fs::read_to_string("/proc/thread-self/net/netfilter/nfnetlink_queue");
    let number = |line: &str| line.split_whitespace().next()?.parse::<u16>().ok();
    taken.extend(listed.unwrap_or_default().lines().filter_map(number));
    let known = with_chains().into_iter().chain(of_labs(root));
    taken.extend(known.flat_map(|first| first..first.saturating_add(EACH)));
    free_numbers(topology, &taken)
}

/// Assigns numbers to all queues of a network, skipping those in `taken`.
fn free_numbers(topology: &Topology, taken: &BTreeSet<u16>) -> Result<Queues, Error> {
    let mut free = (FIRST..u16::MAX - EACH)
        .step_by(EACH.into())
        .filter(|first| (*first..first + EACH).all(|number| !taken.contains(&number)));
    attachments(topology)
        .filter(|(_, attachment)| matches!(attachment.means, Means::Queue { .. }))
        .map(|(_, attachment)| {
            let interface = attachment.interface.clone();
            let first = free
                .next()
                .ok_or_else(|| Error::Attach(AttachError::NoFreeQueue(interface.clone())))?;
            Ok((interface, first))
        })
        .collect()
}

/// First queues of all labs in a directory.
fn of_labs(root: &Path) -> BTreeSet<u16> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(root.join("labs")).into_iter().flatten().flatten() {
        let text = crate::files::read(&crate::life::state::emulator_config(&entry.path()))
            .unwrap_or_default();
        if let Ok(lab) = serde_json::from_slice::<emulator_daemon::Config>(&text) {
            found.extend(lab.queues.values());
        }
    }
    found
}

/// First queues of the chains that exist but that no lab in this directory has recorded.
pub(super) fn unknown(root: &Path) -> BTreeSet<u16> {
    &with_chains() - &of_labs(root)
}

/// First queues of all chains that exist, including those of labs in other directories.
fn with_chains() -> BTreeSet<u16> {
    let mut found = BTreeSet::new();
    for program in ["iptables", "ip6tables"] {
        let listed = Command::new(program).args(["-w", "-t", "mangle", "-S"]).output();
        let text = listed.map(|listed| listed.stdout).unwrap_or_default();
        let number = |line: &str| line.strip_prefix("-N kaido-")?.parse::<u16>().ok();
        found.extend(String::from_utf8_lossy(&text).lines().filter_map(number));
    }
    found
}

/// Adds the rules, atomically for each address family.
pub(crate) fn open(topology: &Topology, queues: &Queues) -> Result<(), Error> {
    for ipv6 in [false, true] {
        let mut text = String::from("*mangle\n");
        for (_, attachment) in attachments(topology) {
            let Means::Queue { prefixes, bypass } = &attachment.means else { continue };
            let Some(first) = queues.get(&attachment.interface) else { continue };
            let bypass = if *bypass { " --queue-bypass" } else { "" };
            let (which, taken) = (format!("kaido-{first}"), format!("kaido-{first}-take"));
            text += &format!(":{which} - [0:0]\n:{taken} - [0:0]\n");
            for prefix in inside(topology, prefixes, ipv6) {
                text += &format!("-A {which} -d {prefix} -j {taken}\n");
            }
            text += &format!("-A {taken} -p tcp -j NFQUEUE --queue-num {first}{bypass}\n");
            text += &format!("-A {taken} -j NFQUEUE --queue-num {}{bypass}\n", first + 1);
            text += &format!("-A PREROUTING -i {} -j {which}\n", attachment.interface);
        }
        text += "COMMIT\n";
        if let Some(said) = restore(ipv6, &text)? {
            return Err(Error::Attach(AttachError::QueueRules(said)));
        }
    }
    Ok(())
}

/// The prefixes whose packets from an attached interface are sent into the lab: the lab's own
/// prefixes, and those beyond its other attached interfaces. `behind`: the prefixes beyond this
/// interface.
fn inside(topology: &Topology, behind: &[IpNet], ipv6: bool) -> Vec<IpNet> {
    let mut prefixes: Vec<IpNet> = Vec::new();
    for segment in &topology.segments {
        prefixes.extend([IpNet::V4(segment.ipv4), IpNet::V6(segment.ipv6)]);
    }
    for node in &topology.nodes {
        prefixes.extend(node.loopback4.map(|address| IpNet::from(IpAddr::V4(address))));
        prefixes.extend(node.loopback6.map(|address| IpNet::from(IpAddr::V6(address))));
        prefixes.extend(node.locator.map(|locator| IpNet::V6(locator.prefix())));
        prefixes.extend(node.prefixes().iter().filter(|prefix| !behind.contains(prefix)));
    }
    if ipv6 {
        let all: Vec<Ipv6Net> = prefixes
            .into_iter()
            .filter_map(|prefix| if let IpNet::V6(net) = prefix { Some(net) } else { None })
            .collect();
        Ipv6Net::aggregate(&all).into_iter().map(IpNet::V6).collect()
    } else {
        let all: Vec<Ipv4Net> = prefixes
            .into_iter()
            .filter_map(|prefix| if let IpNet::V4(net) = prefix { Some(net) } else { None })
            .collect();
        Ipv4Net::aggregate(&all).into_iter().map(IpNet::V4).collect()
    }
}

/// Runs iptables-restore on `text`. Returns its error message if it rejects the text.
fn restore(ipv6: bool, text: &str) -> Result<Option<String>, Error> {
    let program = if ipv6 { "ip6tables-restore" } else { "iptables-restore" };
    let failed = |source| Error::Attach(AttachError::NoIptables { program, source });
    let mut command = Command::new(program);
    // Wait for the lock: another program may be changing its rules.
    command.args(["--noflush", "--wait"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A child that exits early reports the reason itself.
        let _ = stdin.write_all(text.as_bytes());
    }
    let done = child.wait_with_output().map_err(failed)?;
    let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    Ok((!done.status.success()).then_some(said))
}

/// Removes the rules that exist.
pub(crate) fn close(queues: &Queues) -> Result<(), Error> {
    for (interface, first) in queues {
        let (which, taken) = (format!("kaido-{first}"), format!("kaido-{first}-take"));
        for program in ["iptables", "ip6tables"] {
            let run = |arguments: &[&str]| {
                let mut command = Command::new(program);
                command.args(["-w", "-t", "mangle"]).args(arguments);
                command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
                let ended = command.status();
                let ended = ended
                    .map_err(|source| Error::Attach(AttachError::NoIptables { program, source }))?;
                Ok::<_, Error>(ended.success())
            };
            // Each of them may be removed already, or may never have been added.
            while run(&["-D", "PREROUTING", "-i", interface, "-j", &which])? {}
            for chain in [&which, &taken] {
                run(&["-F", chain])?;
            }
            for chain in [&which, &taken] {
                run(&["-X", chain])?;
            }
            if run(&["-S", &which])? || run(&["-S", &taken])? {
                return Err(Error::Attach(AttachError::QueueRules(format!(
                    "{program} does not remove {which}"
                ))));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attachment_without_a_free_queue_is_refused() {
        let text = "name: lab\nnodes:\n  x: {router: virtual}\n  \
                    a: {attach: eth1, via: nfqueue, prefixes: [192.0.2.0/25]}\n  \
                    b: {attach: eth2, via: nfqueue, prefixes: [192.0.2.128/25]}\n\
                    links: [a-x, b-x]\n";
        let topology = topology_file::parse("a.yaml", text).expect("it is a topology");
        let mut taken: BTreeSet<u16> = (0..=u16::MAX).collect();
        taken.retain(|number| !(FIRST..FIRST + EACH).contains(number));
        match free_numbers(&topology, &taken) {
            Err(Error::Attach(AttachError::NoFreeQueue(interface))) => {
                assert_eq!(interface, "eth2")
            }
            other => panic!("{other:?}"),
        }
        taken.clear();
        let queues = free_numbers(&topology, &taken).expect("all are free");
        assert_eq!(queues.into_values().collect::<Vec<_>>(), [FIRST, FIRST + EACH]);
    }
}
