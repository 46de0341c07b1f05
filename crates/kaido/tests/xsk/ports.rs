//! Interfaces that are attached and detached while a client runs.

use super::{Running, kaido, stats};

#[test]
fn interfaces_are_attached_and_detached() {
    let kaido = kaido();
    let _running = Running::start(&kaido, "default", &[]);
    let ports = |tenant: usize| {
        let said = stats(&kaido, "default");
        let ports = said["programs"][tenant]["ports"].as_array().expect("a list").clone();
        let port = |port: &serde_json::Value| {
            let number = port["number"].as_u64().expect("a number");
            (port["interface"].as_str().expect("a name").to_owned(), number)
        };
        ports.iter().map(port).collect::<Vec<_>>()
    };
    let port = |name: &str, number| (name.to_owned(), number);
    let said = kaido.json(&["xsk", "attach", "blue", "eth8"]);
    assert_eq!((&said["port"], &said["sockets"]), (&2.into(), &0.into()), "{said}");
    let said = kaido.ok(&["xsk", "attach", "red", "eth9", "--port", "255"]);
    assert_eq!(said, "eth9 is port 255 of tenant red; the client has not opened it yet\n");
    assert_eq!(ports(0), [port("eth1", 1), port("eth8", 2)]);
    assert_eq!(ports(1), [port("eth2", 4), port("eth3", 5), port("eth9", 255)]);
    for (arguments, why) in [
        (&["attach", "green", "eth7"][..], "no tenant `green` (known: blue, red)"),
        (&["attach", "green", "eth2"], "no tenant `green` (known: blue, red)"),
        (&["attach", "blue", "eth2"], "`eth2` belongs to tenant `red`: detach it first"),
        (&["attach", "blue", "eth1"], "`eth1` belongs to tenant `blue`"),
        (&["attach", "blue", "eth7", "--port", "2"], "`eth8` is port 2 of tenant `blue`"),
        (&["attach", "blue", "eth7", "--port", "256"], "256 is not in 0..256"),
        (&["attach", "blue", "a/b"], "`a/b` cannot name an interface"),
        (&["attach", "blue", "an-interface-of-20"], "cannot name an interface"),
        (&["detach", "eth7"], "no program is attached to `eth7`"),
    ] {
        kaido.run(&[&["xsk"], arguments].concat()).failed(2, &[why]);
    }
    assert_eq!((ports(0).len(), ports(1).len()), (2, 3), "nothing has changed");
    let said = kaido.json(&["xsk", "detach", "eth2"]);
    assert_eq!((&said["tenant"], &said["interface"]), (&"red".into(), &"eth2".into()));
    kaido.run(&["xsk", "detach", "eth2"]).failed(2, &["no program is attached to `eth2`"]);
    // The other tenant can have it.
    kaido.ok(&["xsk", "attach", "blue", "eth2"]);
    assert_eq!(ports(0), [port("eth1", 1), port("eth8", 2), port("eth2", 3)]);
}
