//! Machines on which the commands of a page of the manual are run as written.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use netlink::{Namespace, Offload, set_offload};
use testkit::{Kaido, Said, until};

use crate::daemon::Daemon;
use crate::net::{join, show};

pub(crate) const UNIT: &str = include_str!("../../../../contrib/systemd/kaido-dataplane.service");
pub(crate) const PROGRAM: &str = "/usr/local/bin/kaido";
const FILE: &str = "/etc/kaido/dataplane.yaml";

/// Executes all commands of the page on the machines that it names; returns their number.
pub(crate) fn perform(page: &str, machines: &mut Machines) -> usize {
    let mut commands = 0;
    for (language, text) in blocks(page) {
        match language {
            "yaml" => machines.write(text),
            "console" => {
                for line in text.lines() {
                    let (machine, command) = line.split_once("# ").unwrap();
                    if command.starts_with("ping") {
                        machines.wait_for_addresses();
                    }
                    match command.strip_suffix("# no reply") {
                        Some(ping) => machines.run(machine, &format!("! {}", ping.trim_end())),
                        None => machines.run(machine, command),
                    };
                    commands += 1;
                }
            }
            _ => {}
        }
    }
    commands
}

/// Returns the code blocks of the page, each with its language.
fn blocks(page: &str) -> impl Iterator<Item = (&str, &str)> {
    page.split("```").skip(1).step_by(2).map(|block| block.split_once('\n').unwrap())
}

/// Returns the arguments in the unit under a key, after the command's own words.
fn unit<'a>(key: &str, words: &str) -> Vec<&'a str> {
    let command = format!("{key}={PROGRAM} {words} ");
    let rest = UNIT.lines().find_map(|line| line.strip_prefix(&command)).unwrap();
    rest.split(' ').collect()
}

/// The name of a machine and of its interface.
type Port<'a> = (&'a str, &'a str);

pub(crate) struct Machines {
    pub(crate) servers: BTreeMap<String, Daemon>,
    pub(crate) hosts: BTreeMap<String, Namespace>,
}

impl Machines {
    /// Creates servers, which may run Kaido; hosts, which do not; and the links between their
    /// interfaces.
    pub(crate) fn new(servers: &[&str], hosts: &[&str], links: &[(Port<'_>, Port<'_>)]) -> Self {
        let new = |name: &&str| ((*name).to_owned(), Namespace::unnamed().unwrap());
        let hosts: BTreeMap<String, Namespace> = hosts.iter().map(new).collect();
        let servers: BTreeMap<String, Namespace> = servers.iter().map(new).collect();
        let of = |name: &str| hosts.get(name).or_else(|| servers.get(name)).unwrap();
        for (one, other) in links {
            join(of(one.0), one.1, of(other.0), other.1);
        }
        for host in hosts.values() {
            // XDP on veth requires this of the peer: docs/dataplane.md.
            host.run(|| set_offload("eth0", Offload::TxChecksum, false)).unwrap().unwrap();
        }
        let daemon =
            |(name, node)| (name, Daemon::new(Kaido::new(env!("CARGO_BIN_EXE_kaido")), node));
        Self { servers: servers.into_iter().map(daemon).collect(), hosts }
    }

    /// Writes a block that names the owner of its file in the first line.
    fn write(&self, text: &str) {
        let name = text.strip_prefix("# ").and_then(|text| text.split_once(": ")).unwrap().0;
        self.servers[name].kaido.file("dataplane.yaml", text);
    }

    /// Waits for duplicate address detection, which is faster than a person who types.
    pub(crate) fn wait_for_addresses(&self) {
        for server in self.servers.values() {
            let is_ready = || show(&server.node, "-6 addr show tentative").is_empty().then_some(());
            until(Duration::from_secs(10), is_ready, || "an address is tentative".into());
        }
    }

    /// Runs a command on a machine, and asserts that it succeeds; returns its output.
    pub(crate) fn run(&mut self, machine: &str, command: &str) -> String {
        if let Some(host) = self.hosts.get(machine) {
            let run = || Said::run(Command::new("sh").args(["-c", command])).ok();
            let said = host.run(run).unwrap();
            if command.starts_with("ip link set eth0 up") {
                // The kernel applies this setting only once the interface is up.
                host.run(|| set_offload("eth0", Offload::Gro, true)).unwrap().unwrap();
            }
            return said;
        }
        let server = self.servers.get_mut(machine).unwrap();
        let file = server.kaido.directory().join("dataplane.yaml").to_str().unwrap().to_owned();
        let ours = |word: &str| word.replace(FILE, &file);
        match command {
            // The daemon's file is in the test's directory.
            "mkdir -p /etc/kaido" => String::new(),
            "systemctl enable --now kaido-dataplane" => {
                let words: Vec<_> =
                    unit("ExecStart", "dataplane run").into_iter().map(ours).collect();
                server.start(&words.iter().map(String::as_str).collect::<Vec<_>>());
                String::new()
            }
            "systemctl reload kaido-dataplane" => {
                let words: Vec<_> = unit("ExecReload", "dataplane").into_iter().map(ours).collect();
                let words: Vec<_> = words.iter().map(String::as_str).collect();
                server.kaido.ok(&[&["dataplane"], &*words].concat())
            }
            _ => {
                let mut shell = Command::new("sh");
                let directory = std::path::Path::new(env!("CARGO_BIN_EXE_kaido")).parent().unwrap();
                let path = std::env::var("PATH").unwrap();
                shell.env("PATH", format!("{}:{path}", directory.display()));
                shell.env("KAIDO_RUN", server.kaido.run_directory()).args(["-c", &ours(command)]);
                server.node.run(|| Said::run(&mut shell).ok()).unwrap()
            }
        }
    }
}
