//! Labs whose routers run FRR.

use std::time::Duration;

use serde_json::Value;
use testkit::{Lab, Machine, until};

use crate::kaido;
use crate::topologies::{FRR, addresses, end_x, resolved};

const HOSTS: [&str; 3] = ["h1", "h2", "h3"];
const ROUTERS: [&str; 3] = ["r1", "r2", "r3"];
/// Several times OSPF's dead interval.
const RECOVERY: Duration = Duration::from_secs(30);

/// Pings between all hosts; the first packets must arrive.
#[track_caller]
pub(crate) fn assert_full_mesh(lab: &Lab<'_>) {
    let topology = resolved(FRR);
    for (from, to) in HOSTS.iter().flat_map(|from| HOSTS.map(|to| (*from, to))) {
        if from != to {
            lab.ping(from, &addresses(&topology, to).each_ref().map(String::as_str));
        }
    }
}

fn vtysh(lab: &Lab<'_>, node: &str, command: &str) -> String {
    lab.run(node, &["vtysh", "-c", command]).ok()
}

fn vtysh_json(lab: &Lab<'_>, node: &str, command: &str) -> Value {
    serde_json::from_str(&vtysh(lab, node, command)).unwrap()
}

/// Asserts that the routes return to `before`.
fn assert_routes_return(lab: &Lab<'_>, before: &[Vec<String>; 3], after: &str) {
    let now = || ROUTERS.map(|router| lab.routes(router));
    let missing = || {
        let now = now();
        let only = |one: &[Vec<String>; 3], other: &[Vec<String>; 3]| {
            let pairs = one.iter().zip(other);
            let lines = pairs.flat_map(|(one, other)| one.iter().filter(|r| !other.contains(r)));
            lines.cloned().collect::<Vec<_>>()
        };
        format!("after {after} missing {:#?}, new {:#?}", only(before, &now), only(&now, before))
    };
    until(RECOVERY, || (now() == *before).then_some(()), missing);
}

#[test]
fn root_ready_means_converged() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    for _ in 0..3 {
        let lab = kaido.lab_up(FRR);
        assert_full_mesh(&lab);
        lab.down();
    }
    before.assert_restored(&kaido);
}

#[test]
fn root_frr_runs_as_the_file_says() {
    let kaido = kaido();
    let topology = resolved(FRR);
    let lab = kaido.lab_up(FRR);
    let routes = vtysh(&lab, "r1", "show ipv6 route");
    for other in ["r2", "r3"] {
        let locator = topology.node(other).unwrap().locator.unwrap();
        assert!(routes.contains(&format!("O>* {locator} [110/20]")), "{locator}: {routes}");
    }
    for end_x in [end_x(&topology, "r1", "r2"), end_x(&topology, "r1", "r2_2")] {
        assert!(routes.contains(&format!("{end_x}/128")), "{end_x}: {routes}");
    }
    // One link has a rate, which does not affect the costs; the timers are the lab's.
    let ospf = &vtysh_json(&lab, "r1", "show ip ospf interface json")["interfaces"];
    let ospf6 = vtysh_json(&lab, "r1", "show ipv6 ospf6 interface json");
    for interface in ["h1", "r2", "r2_2", "lan0"] {
        let ipv4 = &ospf[interface];
        assert_eq!((&ipv4["cost"], &ipv4["timerMsecs"]), (&10.into(), &1000.into()), "{ipv4}");
        assert_eq!(ipv4["timerDeadSecs"], 4, "{ipv4}");
        let ipv6 = &ospf6[interface];
        assert_eq!(ipv6["cost"], 10, "{ipv6}");
        assert_eq!(ipv6["timerIntervalsConfigHello"], 1, "{ipv6}");
        let network = if interface == "lan0" { "BROADCAST" } else { "POINTOPOINT" };
        assert_eq!(ipv4["networkType"], network, "{ipv4}");
        // OSPFv3 only reports it if it differs from the device's type.
        let network6 = ipv6["operatingAsType"].as_str().or(ipv6["type"].as_str());
        assert_eq!(network6, Some(network), "{ipv6}");
    }
    // The router's own lines are in effect in addition to the lab's, for both families.
    let config = vtysh(&lab, "r1", "show running-config");
    for line in ["ip route 192.0.2.0/24 blackhole", "ipv6 route 2001:db8::/32 blackhole"] {
        assert!(config.contains(line), "{line}: {config}");
    }
    assert!(lab.exec("r1", "ip route").contains("blackhole 192.0.2.0/24"));
    assert!(!vtysh(&lab, "r2", "show running-config").contains("ip route 192.0.2.0/24"));
}

#[test]
fn root_timers_and_costs_can_be_given() {
    let kaido = kaido();
    let lab = kaido.lab_up(
        "
name: given
routing: [ospf, ospf6]
ospf: {hello: 2s, dead: 7s}
nodes:
  r1: {router: frr}
  r2: {router: frr}
links: [r1-r2: {cost: 33, rate: 10mbit}]
",
    );
    let ipv4 = &vtysh_json(&lab, "r1", "show ip ospf interface json")["interfaces"]["r2"];
    assert_eq!((&ipv4["cost"], &ipv4["timerMsecs"]), (&33.into(), &2000.into()), "{ipv4}");
    assert_eq!(ipv4["timerDeadSecs"], 7, "{ipv4}");
    let ipv6 = &vtysh_json(&lab, "r1", "show ipv6 ospf6 interface json")["r2"];
    assert_eq!((&ipv6["cost"], &ipv6["timerIntervalsConfigHello"]), (&33.into(), &2.into()));
    assert_eq!(ipv6["timerIntervalsConfigDead"], 7, "{ipv6}");
}

#[test]
fn root_ospf_goes_around_a_cut_link_and_comes_back() {
    let kaido = kaido();
    let topology = resolved(FRR);
    let lab = kaido.lab_up(FRR);
    let before = ROUTERS.map(|router| lab.routes(router));
    let [h1, h2] = ["h1", "h2"].map(|host| addresses(&topology, host));
    let goes_over = |router: &str, destination: &str, device: &str| {
        // There may temporarily be no route.
        let route = lab.run(router, &["ip", "route", "get", destination]).stdout;
        route.contains(&format!(" dev {device} ")).then_some(())
    };
    // Without the parallel links only the LAN remains.
    for link in ["r1-r2", "r1-r2_2"] {
        lab.link(link, &["down"]);
    }
    // Both directions: each router converges independently.
    for (router, destinations) in [("r1", &h2), ("r2", &h1)] {
        for destination in destinations {
            let routes = || format!("{:#?}", lab.routes(router));
            until(RECOVERY, || goes_over(router, destination, "lan0"), routes);
        }
    }
    lab.ping("h1", &h2.each_ref().map(String::as_str));
    for link in ["r1-r2", "r1-r2_2"] {
        lab.link(link, &["up"]);
    }
    assert_routes_return(&lab, &before, "the parallel links");
    // The static routes and the SIDs, including End.X, are in the tables again.
    let link = format!("{} ", end_x(&topology, "r1", "r2_2"));
    assert!(lab.routes("r1").iter().any(|route| route.starts_with(&link)), "{link}");

    // Without the LAN, r3 is isolated.
    lab.link("lan0", &["down"]);
    let unreachable = ["ping", "-c", "1", "-W", "1", "10.255.0.3"];
    assert_ne!(lab.run("h1", &unreachable).code, Some(0));
    lab.link("lan0", &["up"]);
    assert_routes_return(&lab, &before, "the LAN");
    assert_full_mesh(&lab);
}

#[test]
fn root_a_line_that_frr_refuses_is_named_and_nothing_is_left() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    let wrong = FRR.replace("ip route 192.0.2.0/24", "ip root 192.0.2.0/24");
    assert_ne!(wrong, FRR);
    let file = kaido.file("lab.yaml", &wrong);
    let said = kaido.run(&["lab", "up", &file]);
    said.failed(2, &["FRR on r1 rejects", "Unknown command", "ip root 192.0.2.0/24 blackhole"]);
    before.assert_restored(&kaido);
    // An invalid line may start like a valid command.
    let wrong = FRR.replace("ip route 192.0.2.0/24", "ip route 192.0.2.0/99");
    let file = kaido.file("lab.yaml", &wrong);
    kaido.run(&["lab", "up", &file]).failed(2, &["FRR on r1 rejects", "192.0.2.0/99"]);
    before.assert_restored(&kaido);
}
