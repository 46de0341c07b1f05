//! Errors of users and nodes: they are reported, and change nothing.

use std::time::Duration;

use serde_json::json;
use testkit::{Said, pause, until};

use crate::network::{Network, TIMEOUT, kaido};
use crate::topologies::{BRANCHES, SHORT};

/// All state that an addition could change.
fn look(network: &Network<'_>) -> (serde_json::Value, [Vec<String>; 2], Vec<u64>) {
    let names = network.kaido.json(&["app", "ls"]);
    let names = names.as_array().unwrap().iter().map(|app| app["name"].clone()).collect();
    let reserved = network
        .nodes()
        .iter()
        .flat_map(|node| node["interfaces"].as_array().unwrap().clone())
        .map(|interface| interface["reserved_bps"].as_u64().unwrap())
        .collect();
    (names, [network.steering("h3"), network.passing("h3")], reserved)
}

#[test]
fn root_applications_come_are_shown_and_go() {
    let kaido = kaido();
    let network = Network::up(&kaido, BRANCHES);
    let before = look(&network);

    let add = ["app", "add", "big", "--from", "h3", "--to", "h2", "--demand", "30mbit"];
    let dry = kaido.json(&[&add[..], &["--dry-run"]].concat());
    assert_eq!(dry["state"], "admitted");
    assert_eq!(dry["path"], json!(crate::topologies::LONG));
    assert!(!dry["ipv4_segments"].as_array().unwrap().is_empty());
    assert_eq!(look(&network), before);
    kaido.run(&["app", "show", "big"]).failed(2, &["no application `big`", "bulk"]);

    let watch = kaido.start(&["--json", "app", "watch"]);
    let connected = || {
        let files = std::fs::read_dir(format!("/proc/{}/fd", watch.id())).ok()?;
        let mut targets = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
        targets.any(|target| target.to_string_lossy().starts_with("socket:")).then_some(())
    };
    until(TIMEOUT, connected, || "no connection".into());
    // There is no event for the controller's receipt of it.
    pause(Duration::from_millis(500));
    let added = kaido.json(&add);
    assert_eq!((&added["path"], &added["state"]), (&dry["path"], &json!("admitted")));
    let steered = || (network.steering("h3").len() >= 4).then_some(());
    until(TIMEOUT, steered, || format!("{:?}", network.steering("h3")));
    network.until_app("big", TIMEOUT, |_| {
        network.why("big")["decision"]["installed_at_ns"].as_u64() != Some(0)
    });

    let names = |list: &serde_json::Value| -> Vec<String> {
        let list = list.as_array().unwrap();
        list.iter().map(|app| app["name"].as_str().unwrap().into()).collect()
    };
    assert_eq!(names(&kaido.json(&["app", "ls"])), ["big", "bulk"]);
    let text = kaido.ok(&["app", "ls"]);
    assert!(text.contains("big") && text.contains("30mbit"), "{text}");
    let text = kaido.ok(&["app", "show", "big"]);
    assert!(text.contains("admitted") && text.contains("h3 r1 r2 r4 r5 h2"), "{text}");
    let text = kaido.ok(&["app", "why", "big"]);
    for word in [
        "rejected: demand 30mbit exceeds free bandwidth",
        "chosen",
        "installed",
        "SIDs for IPv6: fd00",
    ] {
        assert!(text.contains(word), "`{word}` is not in {text}");
    }

    let removed = kaido.json(&["app", "rm", "big"]);
    assert_eq!(removed, json!({ "removed": "big" }));
    let as_before = || (look(&network) == before).then_some(());
    until(TIMEOUT, as_before, || format!("{before:?}\n{:?}", look(&network)));
    kaido.run(&["app", "rm", "big"]).failed(2, &["no application `big`"]);

    let pid = nix::unistd::Pid::from_raw(watch.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    let said = Said::from_output("app watch".into(), watch.wait_with_output().unwrap());
    let seen = testkit::value_of(&["app", "watch"], said.ok().as_bytes());
    assert_eq!((&seen["application"], &seen["cause"]), (&json!("big"), &json!("new")));
    assert_eq!(seen["after"], dry["path"]);
}

#[test]
fn root_an_invalid_application_is_refused_and_changes_nothing() {
    let kaido = kaido();
    let network = Network::up(&kaido, BRANCHES);
    let before = look(&network);
    let refused = |arguments: &[&str], words: &[&str]| {
        for dry in [&[][..], &["--dry-run"]] {
            kaido.run(&[&["app", "add"], arguments, dry].concat()).failed(2, words);
        }
        assert_eq!(look(&network), before, "{arguments:?}");
    };
    let to_h2 = ["--from", "h3", "--to", "h2", "--demand", "1mbit"];
    refused(&[&["bulk"], &to_h2[..]].concat(), &["application `bulk` already exists"]);
    refused(&[&["Bulk!"], &to_h2[..]].concat(), &["not an application name"]);
    refused(
        &["x", "--from", "h9", "--to", "h2", "--demand", "1mbit"],
        &["no node `h9`", "h1", "r5"],
    );
    refused(
        &["x", "--from", "h3", "--to", "h9", "--demand", "1mbit"],
        &["no node `h9`", "h1", "r5"],
    );
    refused(&["x", "--from", "h3", "--to", "h3", "--demand", "1mbit"], &["sends to itself"]);
    refused(
        &["x", "--from", "h3", "--to", "h2", "--demand", "61mbit"],
        &["demand 61mbit exceeds the largest link", "60mbit"],
    );
    refused(&["x", "--from", "h3", "--to", "h2"], &["needs a demand"]);
    refused(&[&["x", "--ports", "5201"], &to_h2[..]].concat(), &["ports need a protocol"]);
    refused(
        &["x", "--from", "h3", "--to", "10.0.0.1/8", "--demand", "1mbit"],
        &["write 10.0.0.0/8"],
    );
    refused(
        &["x", "--from", "h3", "--to", "203.0.113.0/24", "--demand", "1mbit"],
        &["no node has an address in 203.0.113.0/24"],
    );
    refused(&["x", "--from", "h3", "--to", "h2", "--demand", "much"], &["much"]);
    assert_eq!(network.show("bulk")["path"], json!(SHORT));
}

#[test]
fn root_without_a_controller_commands_say_so() {
    let kaido = kaido();
    let socket = kaido.directory().join("none.sock");
    let socket = socket.to_str().unwrap();
    let add = ["app", "add", "x", "--from", "a", "--to", "b", "--demand", "1mbit"];
    for command in [
        &["app", "ls"][..],
        &["app", "show", "x"],
        &["app", "why", "x"],
        &["app", "rm", "x"],
        &["app", "watch"],
        &["network"],
        &add,
    ] {
        let said = kaido.run(&[command, &["--controller", socket]].concat());
        said.failed(1, &["no controller answers on", socket, "is it running?"]);
    }
    // A socket without a listener.
    drop(serve::listen(std::path::Path::new(socket)).unwrap());
    kaido.run(&["app", "ls", "--controller", socket]).failed(1, &["no controller answers on"]);
}

#[test]
fn root_daemons_refuse_bad_configurations() {
    let kaido = kaido();
    for daemon in ["controller", "node"] {
        let missing = kaido.directory().join("missing.json");
        let run = |config: &str| kaido.run(&[daemon, "--config", config]);
        run(missing.to_str().unwrap()).failed(2, &["cannot read", "missing.json"]);
        run(&kaido.file("garbage.json", "{\n  garbage"))
            .failed(2, &["garbage.json", "line 2 column 3"]);
        run(&kaido.file("unknown.json", "{\n  \"sokket\": \"x\"\n}"))
            .failed(2, &["unknown.json", "unknown field `sokket`", "line 2 column 10"]);
        run(&kaido.file("empty.json", "")).failed(2, &["empty.json", "line 1 column 0"]);
    }
}

#[test]
fn root_a_node_names_the_interface_that_it_has_not() {
    let kaido = kaido();
    let network = Network::up(&kaido, BRANCHES);
    let text = std::fs::read_to_string(network.path("nodes/r3/node.json")).unwrap();
    let mut config: serde_json::Value = serde_json::from_str(&text).unwrap();
    config["announcement"]["interfaces"][0]["name"] = json!("eth77");
    let file = kaido.file("node.json", &config.to_string());
    // A network namespace can have only one node.
    network
        .run("r3", &[env!("CARGO_BIN_EXE_kaido"), "node", "--config", &file])
        .failed(1, &["already runs in this network namespace"]);
    network.kill("r3");
    let said = network.run("r3", &[env!("CARGO_BIN_EXE_kaido"), "node", "--config", &file]);
    said.failed(1, &["node r3", "`eth77`", "does not have"]);
}
