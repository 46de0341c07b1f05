//! Executes the commands of docs/two-servers.md, the page for newcomers, literally:
//!
//! ```text
//!  host1 eth0 --- eth1 | server1 | eth0 --- eth0 | server2 | eth1 --- eth0 host2
//! ```

use crate::machines::{Machines, perform};

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
    // Once the neighbors are known, no packet is lost, and packets up to the MTU of the hosts'
    // links pass.
    let said = machines.run("host2", "ping -c 3 -i 0.1 -M do -s 1472 10.1.0.2");
    assert!(said.contains(" 0% packet loss"), "{said}");
}
