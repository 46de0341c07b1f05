//! Routing protocols other than OSPF: each converges for both families, and reroutes around a link
//! that is down.

use std::time::Duration;

use testkit::{Kaido, Lab, until};

use crate::kaido;
use crate::topologies::{addresses, resolved};

/// Several times RIP's update interval.
const RECOVERY: Duration = Duration::from_secs(30);

/// A triangle of routers with two hosts.
///
/// ```text
///   h1 -- r1 ---- r2 -- h2
///           \    /
///             r3
/// ```
fn triangle(head: &str, first_link: &str) -> String {
    format!(
        "name: triangle\n{head}\nnodes:\n  h1: {{}}\n  h2: {{}}\n  r1: {{router: frr}}\n  \
         r2: {{router: frr}}\n  r3: {{router: frr}}\nlinks:\n  - h1-r1\n  - r2-h2\n  \
         - r1-r2{first_link}\n  - r1-r3\n  - r3-r2\n"
    )
}

/// The device over which a router sends to an address; empty if there is temporarily no route.
fn way(lab: &Lab<'_>, from: &str, to: &str) -> String {
    let route = lab.run(from, &["ip", "route", "get", to]).stdout;
    route.split_once(" dev ").map_or(String::new(), |(_, rest)| {
        rest.split_whitespace().next().unwrap_or_default().to_owned()
    })
}

#[track_caller]
fn assert_ways(lab: &Lab<'_>, from: &str, to: &[String], device: &str) {
    for address in to {
        let is = || (way(lab, from, address) == device).then_some(());
        until(RECOVERY, is, || format!("{address}: {:#?}", lab.routes(from)));
    }
}

/// Brings a lab up, sets a link down and up again. `protocols`: the names in `ip route` for IPv4
/// and IPv6.
fn goes_around(kaido: &Kaido, head: &str, protocols: [&str; 2]) {
    let text = triangle(head, "");
    let topology = resolved(&text);
    let [h1, h2] = ["h1", "h2"].map(|host| addresses(&topology, host));
    let lab = kaido.lab_up(&text);
    lab.ping("h1", &h2.each_ref().map(String::as_str));
    assert_ways(&lab, "r1", &h2, "r2");
    let locator = topology.node("r3").unwrap().locator.unwrap().to_string();
    let routes = lab.routes("r1");
    for (prefix, protocol) in [("10.0.2.0/24", protocols[0]), (&*locator, protocols[1])] {
        let of = |route: &&String| route.starts_with(&format!("{prefix} "));
        let route = routes.iter().find(of).unwrap_or_else(|| panic!("{prefix}: {routes:#?}"));
        assert!(route.contains(&format!(" proto {protocol} ")), "{route}");
    }
    lab.link("r1-r2", &["down"]);
    assert_ways(&lab, "r1", &h2, "r3");
    // The reverse path: each router converges independently.
    assert_ways(&lab, "r2", &h1, "r3");
    lab.ping("h1", &h2.each_ref().map(String::as_str));
    lab.link("r1-r2", &["up"]);
    assert_ways(&lab, "r1", &h2, "r2");
}

#[test]
fn root_rip_and_ripng_go_around_a_cut_link() {
    goes_around(&kaido(), "routing: [rip, ripng]", ["rip", "ripng"]);
}

#[test]
fn root_isis_goes_around_a_cut_link() {
    // The smallest MTU limits the size of LSPs.
    goes_around(&kaido(), "mtu: 1280\nrouting: [isis]", ["isis", "isis"]);
}

#[test]
fn root_bgp_goes_around_a_cut_link() {
    goes_around(&kaido(), "routing: [bgp]", ["bgp", "bgp"]);
}

#[test]
fn root_each_family_has_a_protocol_of_its_own() {
    let kaido = kaido();
    let lab = kaido.lab_up(&triangle("routing: [rip, static]\nrip: {update: 31s}", ""));
    let routes = lab.routes("r1");
    let proto = |prefix: &str, protocol: &str| {
        let found = routes.iter().find(|route| route.starts_with(prefix));
        let found = found.unwrap_or_else(|| panic!("{prefix}: {routes:#?}"));
        assert!(found.contains(protocol), "{found}");
    };
    proto("10.0.2.0/24 ", "proto rip");
    // The lab's own protocol number, 75.
    proto("fd02:0:0:2::/64 ", "proto 75");
    // FRR shows these, since they differ from its defaults. They have the RFC's proportions.
    let config = lab.run("r1", &["vtysh", "-c", "show running-config"]).ok();
    assert!(config.contains("timers basic 31 186 124"), "{config}");
}

/// With BFD a failure without carrier loss is detected, though the protocol's timers would need ten
/// minutes.
fn bfd_sees(head: &str) {
    let kaido = kaido();
    let text = triangle(head, ": {engine: true}");
    let h2 = addresses(&resolved(&text), "h2");
    let lab = kaido.lab_up(&text);
    assert_ways(&lab, "r1", &h2, "r2");
    let up = || {
        let said = lab.run("r1", &["vtysh", "-c", "show bfd peers"]).stdout;
        // Both neighbors, both families.
        let up = said.matches("Status: up").count();
        (up == said.matches("peer ").count() && up >= 2).then_some(())
    };
    until(RECOVERY, up, || lab.run("r1", &["vtysh", "-c", "show bfd peers"]).stdout);
    lab.link("r1-r2", &["down", "--silent"]);
    assert_ways(&lab, "r1", &h2, "r3");
}

#[test]
fn root_bfd_notifies_bgp_of_a_silent_cut() {
    bfd_sees("routing: [bgp]\nbgp: {keepalive: 200s, hold: 600s}");
}

#[test]
fn root_bfd_notifies_ospf_of_a_silent_cut() {
    bfd_sees("routing: [ospf, ospf6]\nospf: {hello: 1s, dead: 600s, bfd: true}");
}

#[test]
fn root_bfd_notifies_isis_of_a_silent_cut() {
    bfd_sees("routing: [isis]\nisis: {hello: 6s, hold: 600s, bfd: true}");
}

#[test]
fn root_an_autonomous_system_of_several_routers_is_passed() {
    let kaido = kaido();
    let text = "\
name: systems
routing: [bgp]
nodes:
  h1: {}
  h2: {}
  e1: {router: frr, as: 65001}
  i1: {router: frr, as: 65002}
  i2: {router: frr, as: 65002}
  i3: {router: frr, as: 65002}
  e2: {router: frr}
links: [h1-e1, e1-i1, i1-i2, i2-i3, i3-e2, e2-h2]
";
    let topology = resolved(text);
    let lab = kaido.lab_up(text);
    lab.ping("h1", &addresses(&topology, "h2").each_ref().map(String::as_str));
    // The automatic system of the fifth router.
    let bgp = lab.run("e1", &["vtysh", "-c", "show bgp ipv4 unicast 10.0.6.0/24"]).ok();
    assert!(bgp.contains("65002 4200000005"), "{bgp}");
    // The router in the middle receives both sides' routes, each once.
    assert_eq!(way(&lab, "i2", "10.0.6.2"), "i3");
    assert_eq!(way(&lab, "i2", "10.0.1.1"), "i1");
}

#[test]
fn root_a_daemon_that_is_not_installed_is_named() {
    let kaido = kaido();
    let file = kaido.file("lab.yaml", &triangle("routing: [isis]", ""));
    // The rest of FRR is installed.
    let hide = "directory=/usr/lib/frr; [ -d $directory ] || directory=/usr/libexec/frr
        here=\"${KAIDO_RUN%/*}/frr\"; cp -r $directory \"$here\"; rm \"$here/isisd\"
        mount --bind \"$here\" $directory";
    let said = kaido.script(&format!("{hide}\nexec \"$K\" lab up {file}"));
    said.failed(1, &["isisd", "is missing", "apt-get install frr"]);
}
