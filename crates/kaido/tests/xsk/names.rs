//! The selection of a client by its name.

use netlink::Namespace;
use testkit::Said;

use super::{Running, assert_empty, kaido, run, stats};

#[test]
fn without_clients_there_is_nothing_to_show() {
    let kaido = kaido();
    assert_eq!(kaido.ok(&["xsk", "ls"]).trim_end(), "NAME  PROCESS  EXECUTABLE  TENANTS");
    assert_eq!(kaido.json(&["xsk", "ls"]), serde_json::json!([]));
    for command in [
        &["xsk", "stats"][..],
        &["xsk", "top"],
        &["xsk", "attach", "blue", "eth9"],
        &["xsk", "detach", "eth1"],
    ] {
        let missing = "no running client: `kaido xsk run` starts one";
        kaido.run(command).failed(2, &[missing]);
    }
    for name in ["a", "../a"] {
        let missing = format!("no running client `{name}`; running are: none");
        kaido.run(&["xsk", "stats", name]).failed(2, &[&missing]);
    }
    assert!(!kaido.run_directory().join("xsk").exists());
}

#[test]
fn clients_are_selected_by_name() {
    let kaido = kaido();
    let first = Running::start(&kaido, "first", &[]);
    let same = run(&kaido, &["--name", "first"], &["true"]);
    same.failed(1, &["another client is running as `first`", "another `--name`"]);
    run(&kaido, &["--name", "a/b"], &["true"]).failed(2, &["`a/b` cannot name a client"]);
    // The first one is not affected.
    assert_eq!(stats(&kaido, "first")["process"], first.client.as_raw());
    let second = Running::start(&kaido, "second", &[]);
    let said = kaido.json(&["xsk", "ls"]);
    for (at, running, name) in [(0, &first, "first"), (1, &second, "second")] {
        let client = &said[at];
        assert_eq!(
            (&client["name"], &client["process"]),
            (&name.into(), &running.client.as_raw().into())
        );
        assert_eq!(client["executable"], "/bin/sleep", "{said}");
        assert_eq!(client["tenants"], serde_json::json!(["blue", "red"]));
    }
    let several = "several clients are running, name one: first, second";
    kaido.run(&["xsk", "stats"]).failed(2, &[several]);
    kaido.run(&["xsk", "detach", "eth1"]).failed(2, &[several]);
    kaido.ok(&["xsk", "detach", "eth1", "--name", "second"]);
    let ports = |name: &str| stats(&kaido, name)["programs"][0]["ports"].as_array().map(Vec::len);
    assert_eq!((ports("first"), ports("second")), (Some(1), Some(0)));
    drop(second);
    // The only one.
    assert!(kaido.ok(&["xsk", "stats"]).contains("blue"));
    drop(first);
    kaido.run(&["xsk", "stats"]).failed(2, &["no running client"]);
    for name in ["first", "second"] {
        let said = run(&kaido, &["--name", name], &["true"]);
        assert_eq!(said.code, Some(0), "{said}");
    }
    assert_empty(&kaido);
}

#[test]
fn mistakes_in_names_of_ports_and_sockets_are_reported() {
    let kaido = kaido();
    let said = run(&kaido, &[], &["true"]);
    assert!(said.stderr.contains("tenants.yaml: port eth3 of red does not exist"), "{said}");
    let _running = Running::start(&kaido, "first", &[]);
    let socket = kaido.run_directory().join("xsk/first/control.sock");
    let address = format!("unix:{}", socket.display());
    let table = ["p4", "table", "ls", "--address", &address];
    kaido.run(&table).failed(2, &["control.sock is not an address of P4Runtime"]);
}

/// Sockets have the name of their interface, which the file does not mention.
#[test]
fn root_a_port_with_an_alternative_name_is_refused() {
    let (kaido, here) = (kaido(), Namespace::unnamed().unwrap());
    for line in ["link add wan type bridge", "link property add dev wan altname eth3"] {
        Said::of_words(&here, &format!("ip {line}")).ok();
    }
    let said = here.run(|| run(&kaido, &[], &["true"])).unwrap();
    said.failed(
        2,
        &["tenants.yaml: port eth3 of red is an alternative name of `wan`", "write `wan`"],
    );
    assert_empty(&kaido);
    Said::of_words(&here, "ip link property del dev wan altname eth3").ok();
    Said::of_words(&here, "ip link property add dev wan altname eth9").ok();
    let running = here.run(|| Running::start(&kaido, "first", &[])).unwrap();
    let said = kaido.run(&["xsk", "attach", "blue", "eth9"]);
    said.failed(2, &["`eth9` is an alternative name of `wan`: write `wan`"]);
    drop(running);
}
