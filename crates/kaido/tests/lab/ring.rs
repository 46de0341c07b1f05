//! Life cycle of a lab without daemons.

use serde_json::Value;
use testkit::Machine;

use crate::topologies::{addresses, resolved};
use crate::{file_in_labs, kaido};

#[test]
fn root_every_host_reaches_everything() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    let file = file_in_labs("ring.yaml");
    let topology = resolved(&std::fs::read_to_string(&file).unwrap());
    let lab = kaido.lab_up_file(&file, &[]);
    assert_eq!(lab.name(), "ring");
    for host in topology.nodes.iter().filter(|node| node.is_host()) {
        for router in topology.nodes.iter().filter(|node| node.is_router()) {
            let loopbacks =
                [router.loopback4.unwrap().to_string(), router.loopback6.unwrap().to_string()];
            lab.ping(&host.name, &loopbacks.each_ref().map(String::as_str));
        }
    }
    let far = addresses(&topology, "h2");
    lab.ping("h1", &far.each_ref().map(String::as_str));
    // Commands run on the node: they see its interfaces, in /sys too, and no others.
    let seen = lab.exec("r1", "ls /sys/class/net");
    assert_eq!(seen.split_whitespace().collect::<Vec<_>>(), ["h1", "lo", "r2", "r6", "sr-local"]);
    assert_eq!(lab.run("r1", &["sh", "-c", "exit 7"]).code, Some(7));
    lab.run("r1", &["no-such-program"]).failed(127, &["cannot run no-such-program"]);
    lab.run("r9", &["true"]).failed(2, &["no node `r9`", "h1, h2, r1, r2"]);
    let again = kaido.run(&["lab", "up", &file]);
    again.failed(2, &["the lab `ring` is ready", "kaido lab down ring", "--name"]);
    lab.down();
    before.assert_restored(&kaido);
}

#[test]
fn root_every_command_speaks_json() {
    let kaido = kaido();
    let file = file_in_labs("ring.yaml");
    assert_eq!(kaido.json(&["lab", "check", &file])["name"], "ring");
    assert_eq!(kaido.json(&["lab", "ls"]), Value::Array(Vec::new()));
    let up = kaido.json(&["lab", "up", &file, "--name", "mine"]);
    assert_eq!((&up["lab"], &up["nodes"]), (&"mine".into(), &8.into()));
    let list = kaido.json(&["lab", "ls"]);
    assert_eq!(list[0]["name"], "mine");
    assert_eq!(list[0]["phase"], "ready");
    assert_eq!(list[0]["nodes"], 8);
    assert!(list[0]["file"].as_str().unwrap().ends_with("labs/ring.yaml"), "{list}");
    let graph = kaido.json(&["lab", "graph"]);
    for named in [&["--lab", "mine"][..], &["mine"]] {
        assert_eq!(graph, kaido.json(&[&["lab", "graph"], named].concat()));
    }
    assert_eq!(graph["nodes"].as_array().unwrap().len(), 8);
    assert_eq!(graph["nodes"], kaido.json(&["lab", "graph", &file])["nodes"]);
    let changed = kaido.json(&["lab", "link", "r2-r1", "down"]);
    assert_eq!(changed["changed"], serde_json::json!(["r1:r2", "r2:r1"]));
    assert_eq!(kaido.json(&["lab", "gc"]), Value::Array(Vec::new()));
    let said = kaido.run(&["--json", "lab", "exec", "r9", "--", "true"]);
    assert_eq!(said.code, Some(2), "{said}");
    let error: Value = serde_json::from_str(&said.stderr).unwrap();
    assert!(error["error"].as_str().unwrap().contains("no node `r9`"), "{said}");
    assert_eq!(kaido.json(&["lab", "down", "mine"])["lab"], "mine");
}

#[test]
fn root_two_labs_of_one_file_do_not_see_each_other() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    let file =
        kaido.file("ring.yaml", &std::fs::read_to_string(file_in_labs("ring.yaml")).unwrap());
    let one = kaido.lab_up_file(&file, &["--name", "one"]);
    let two = kaido.lab_up_file(&file, &["--name", "two"]);
    assert_eq!(kaido.labs(), ["one", "two"]);
    kaido.run(&["lab", "exec", "h1", "--", "true"]).failed(2, &["--lab", "one, two"]);
    // Changes to one lab do not affect the other.
    one.link("h1-r1", &["down"]);
    let ping = ["ping", "-c", "1", "-W", "1", "10.255.0.4"];
    assert_ne!(one.run("h1", &ping).code, Some(0));
    two.ping("h1", &["10.255.0.4", "fd01::4"]);
    // Taking a lab down needs no file, and leaves the other.
    std::fs::remove_file(&file).unwrap();
    let unknown = kaido.run(&["lab", "down", "three"]);
    unknown.failed(2, &["no lab `three`", "one, two"]);
    one.down();
    two.ping("h1", &["10.255.0.4", "fd01::4"]);
    assert_eq!(kaido.labs(), ["two"]);
    two.down();
    before.assert_restored(&kaido);
}

/// All nodes of a LAN in each line grow with the square of their number.
#[test]
fn a_graph_names_some_of_many_neighbors() {
    let kaido = kaido();
    let names: Vec<String> = (1..=40).map(|number| format!("h{number}")).collect();
    let nodes: String = names.iter().map(|name| format!("  {name}: {{}}\n")).collect();
    let lan = format!("links:\n  - lan: {{nodes: [{}]}}\n", names.join(", "));
    let file = kaido.file("lan.yaml", &format!("name: lan\nnodes:\n{nodes}{lan}"));
    let drawn = kaido.ok(&["lab", "graph", &file]);
    assert_eq!(drawn.matches("h17, and 23 more  10.").count(), 16, "{drawn}");
    assert_eq!(drawn.matches("h16, and 23 more  10.").count(), 24, "{drawn}");
}

#[test]
fn root_a_graph_shows_all_nodes_and_links() {
    let kaido = kaido();
    let text = kaido.ok(&["lab", "graph", &file_in_labs("ring.yaml")]);
    for part in ["h1", "r6", "10.255.0.6", "locator fd00:0:6::/48", "cost 10"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn root_a_cut_link_is_cut_for_both_and_mended_as_it_was() {
    let kaido = kaido();
    let lab = kaido.lab_up_file(&file_in_labs("ring.yaml"), &[]);
    let nodes = ["h1", "h2", "r1", "r2", "r3", "r4", "r5", "r6"];
    let routes = || nodes.map(|node| lab.routes(node));
    let before = routes();
    for link in ["r1-r2", "h1-r1"] {
        lab.link(link, &["down"]);
        assert_ne!(routes(), before, "{link}");
        lab.link(link, &["up"]);
        assert_eq!(routes(), before, "{link}");
    }
    // With two links down, setting one up does not depend on the other.
    for (link, change) in [("r1-r2", "down"), ("r6-r1", "down"), ("r1-r2", "up")] {
        lab.link(link, &[change]);
    }
    lab.ping("h1", &["10.255.0.2", "fd01::2"]);
    lab.link("r6-r1", &["up"]);
    assert_eq!(routes(), before);
    lab.ping("h1", &["10.255.0.4", "fd01::4"]);
    let unknown = kaido.run(&["lab", "link", "r1-r4", "down"]);
    unknown.failed(2, &["no link `r1-r4`", "r1-r2"]);
}

#[test]
fn root_a_capture_is_of_the_interface_that_was_named() {
    let kaido = kaido();
    let lab = kaido.lab_up_file(&file_in_labs("ring.yaml"), &[]);
    let unknown = kaido.run(&["lab", "capture", "r1:eth0"]);
    unknown.failed(2, &["node r1 has no interface `eth0`", "h1, r2, r6"]);
    kaido.run(&["lab", "capture", "r1"]).failed(2, &["`r1` names no interface", "r1:r2"]);
    kaido.run(&["lab", "capture", "r9:r2"]).failed(2, &["no node `r9`"]);
    let mut capture = kaido.start(&["lab", "capture", "r1:h1", "--", "-c", "1", "-l", "icmp"]);
    // A packet may be sent before tcpdump is ready: repeat until one is captured.
    let caught = || {
        lab.ping("h1", &["10.255.0.1"]);
        capture.try_wait().unwrap()
    };
    let status = testkit::until(std::time::Duration::from_secs(20), caught, || "no packet".into());
    assert!(status.success());
    let said = capture.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&said.stdout);
    assert!(text.contains("10.0.1.1 > 10.255.0.1: ICMP echo request"), "{text}");
}
