//! Executes the commands of docs/firewall.md literally:
//!
//! ```text
//!  client eth0 --- eth0 | firewall | eth1 --- eth0 server
//! ```

use crate::machines::{Machines, perform};

const PAGE: &str = include_str!("../../../../docs/firewall.md");

#[test]
fn root_the_page_for_firewalls_works_as_it_is_written() {
    let links =
        [(("client", "eth0"), ("firewall", "eth0")), (("firewall", "eth1"), ("server", "eth0"))];
    let mut machines = Machines::new(&["firewall"], &["client", "server"], &links);
    // All but the last two commands: at that point the rules are active.
    let (page, end) = PAGE.split_once("## Remove the function").unwrap();
    assert!(perform(page, &mut machines) > 35);
    let firewall = &machines.servers["firewall"];
    let shown = firewall.kaido.ok(&["function", "ls"]);
    let header = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let printed = header(shown.lines().next().unwrap());
    assert!(PAGE.lines().any(|line| header(line) == printed), "{printed}");
    let function = &firewall.kaido.json(&["function", "ls"])[0];
    assert!(function["in"].as_u64() > function["out"].as_u64(), "{function}");
    assert!(function["out"].as_u64() >= Some(10), "{function}");
    let rules = machines.run("firewall", "nft list chain inet fw client");
    assert!(rules.contains("counter packets 1 "), "{rules}");
    assert_eq!(perform(end, &mut machines), 2);
    machines.run("client", "ping -c 1 -W 1 10.9.0.1 && exit 1 || true");
}
