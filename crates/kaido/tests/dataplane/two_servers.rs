//! The page for newcomers, docs/two-servers.md, done word for word:
//!
//! ```text
//!  host1 eth0 --- eth1 | server1 | eth0 --- eth0 | server2 | eth1 --- eth0 host2
//! ```

use std::process::Command;

use testkit::Kaido;

use crate::page::{Machines, PROGRAM, UNIT, perform};

const PAGE: &str = include_str!("../../../../docs/two-servers.md");

#[test]
fn root_the_page_for_newcomers_works_as_it_is_written() {
    let links = [
        (("server1", "eth0"), ("server2", "eth0")),
        (("server1", "eth1"), ("host1", "eth0")),
        (("server2", "eth1"), ("host2", "eth0")),
    ];
    let mut machines = Machines::new(&["server1", "server2"], &["host1", "host2"], &links);
    assert!(perform(PAGE, &mut machines) > 30);
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
