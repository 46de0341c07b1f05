//! The page for newcomers, docs/two-servers.md, done word for word:
//!
//! ```text
//!  host1 eth0 --- eth1 | server1 | eth0 --- eth0 | server2 | eth1 --- eth0 host2
//! ```

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use netlink::{Namespace, Offload, set_offload};
use testkit::{Kaido, Said, until};

use crate::daemon::Daemon;
use crate::net::{join, show};

const PAGE: &str = include_str!("../../../../docs/two-servers.md");
const UNIT: &str = include_str!("../../../../contrib/systemd/kaido-dataplane.service");
const PROGRAM: &str = "/usr/local/bin/kaido";
const FILE: &str = "/etc/kaido/dataplane.yaml";

#[test]
fn root_the_page_for_newcomers_works_as_it_is_written() {
    let mut machines = Machines::new();
    let mut commands = 0;
    for (language, text) in blocks(PAGE) {
        match language {
            "yaml" => machines.write(text),
            "console" => {
                for line in text.lines() {
                    let (machine, command) = line.split_once("# ").unwrap();
                    if command.starts_with("ping") {
                        machines.wait_for_addresses();
                    }
                    machines.run(machine, command);
                    commands += 1;
                }
            }
            _ => {}
        }
    }
    assert!(commands > 30 && machines.servers.len() == 2, "{commands}");
    for server in machines.servers.values() {
        let packets = server.packets("fd00:0:1:d4::/128").or(server.packets("fd00:0:2:d4::/128"));
        assert!(packets > Some(0), "{}", server.show());
    }
    // Once the neighbours are known nothing is lost, and all goes through what the hosts' links take.
    let said = machines.run("host2", "ping -c 3 -i 0.1 -M do -s 1472 10.1.0.2");
    assert!(said.contains(" 0% packet loss"), "{said}");
}

#[test]
fn root_systemd_has_nothing_against_the_unit() {
    let kaido = Kaido::new(env!("CARGO_BIN_EXE_kaido"));
    let unit = UNIT.replace(PROGRAM, env!("CARGO_BIN_EXE_kaido"));
    let file = kaido.file("kaido-dataplane.service", &unit);
    match Command::new("systemd-analyze").args(["verify", &file]).output() {
        Ok(said) => {
            let text = String::from_utf8_lossy(&said.stderr);
            // What it says of others is not asked.
            assert!(said.status.success() && !text.contains("kaido"), "{text}");
        }
        Err(error) => eprintln!("SKIPPED: no systemd-analyze: {error}"),
    }
}

/// The page's blocks, each with its language.
fn blocks(page: &str) -> impl Iterator<Item = (&str, &str)> {
    page.split("```").skip(1).step_by(2).map(|block| block.split_once('\n').unwrap())
}

/// What the unit says under a key, after the command's own words.
fn unit<'a>(key: &str, words: &str) -> Vec<&'a str> {
    let line = UNIT.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    line.strip_prefix(&format!("={PROGRAM} {words} ")).unwrap().split(' ').collect()
}

struct Machines {
    servers: BTreeMap<String, Daemon>,
    hosts: BTreeMap<String, Namespace>,
}

impl Machines {
    fn new() -> Self {
        let new = |name: &str| (name.to_owned(), Namespace::unnamed().unwrap());
        let hosts = BTreeMap::from(["host1", "host2"].map(new));
        let servers = ["server1", "server2"].map(new);
        join(&servers[0].1, "eth0", &servers[1].1, "eth0");
        for (server, host) in servers.iter().zip(hosts.values()) {
            join(&server.1, "eth1", host, "eth0");
            // What XDP on veth asks of the other end: docs/dataplane.md.
            host.run(|| set_offload("eth0", Offload::TxChecksum, false)).unwrap().unwrap();
        }
        let daemon =
            |(name, node)| (name, Daemon::new(Kaido::new(env!("CARGO_BIN_EXE_kaido")), node));
        Self { servers: servers.map(daemon).into(), hosts }
    }

    /// A block that says in its first line whose file it is.
    fn write(&self, text: &str) {
        let name = text.strip_prefix("# ").and_then(|text| text.split_once(": ")).unwrap().0;
        self.servers[name].kaido.file("dataplane.yaml", text);
    }

    /// Whoever types takes longer than the kernel, which looks for duplicates of an address first.
    fn wait_for_addresses(&self) {
        for server in self.servers.values() {
            let is_ready = || show(&server.node, "-6 addr show tentative").is_empty().then_some(());
            until(Duration::from_secs(10), is_ready, || "an address is tentative".into());
        }
    }

    /// Runs a command on a machine, which must succeed; returns what it says.
    fn run(&mut self, machine: &str, command: &str) -> String {
        if let Some(host) = self.hosts.get(machine) {
            let run = || Said::of(Command::new("sh").args(["-c", command])).ok();
            let said = host.run(run).unwrap();
            if command == "ip link set eth0 up" {
                // Only now the kernel takes it to heart.
                host.run(|| set_offload("eth0", Offload::Gro, true)).unwrap().unwrap();
            }
            return said;
        }
        let server = self.servers.get_mut(machine).unwrap();
        let file = server.kaido.folder().join("dataplane.yaml").to_str().unwrap().to_owned();
        let ours = |word: &str| word.replace(FILE, &file);
        match command {
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
                let folder = std::path::Path::new(env!("CARGO_BIN_EXE_kaido")).parent().unwrap();
                let path = std::env::var("PATH").unwrap();
                shell.env("PATH", format!("{}:{path}", folder.display()));
                shell.env("KAIDO_RUN", server.kaido.run_folder()).args(["-c", &ours(command)]);
                server.node.run(|| Said::of(&mut shell).ok()).unwrap()
            }
        }
    }
}
