//! Cross traffic in a lab that is up.

use crate::{direction, kaido, soon};

const LINE: &str =
    "name: line\nrouting: [static]\nnodes: {h: {}, x: {router: virtual}}\nlinks: [h-x]\n";

/// Many times a million packets a second, more than any machine can forward.
#[test]
fn root_a_lab_with_too_much_cross_traffic_still_obeys_commands() {
    let kaido = kaido();
    let lab = kaido.lab_up(LINE);
    let from = ["lab", "traffic", "h-x", "--from", "x"];
    let traffic = |arguments: &[&str]| kaido.ok(&[&from, arguments].concat());
    for pattern in ["pattern=constant", "pattern=poisson", "pattern=on-off on=5ms off=5ms"] {
        let words: Vec<&str> = pattern.split(' ').collect();
        for _ in 0..16 {
            traffic(&[&["rate=800mbit", "size=100b", "for=1h"], &words[..]].concat());
        }
    }
    let cross = || direction(&kaido.json(&["lab", "links"]), "h-x", "x")["cross"].clone();
    soon("what there is no time for is counted", || cross()["overdue"].as_u64() > Some(1_000_000));
    assert!(cross()["sent"].as_u64() > Some(0));
    kaido.ok(&["lab", "link", "h-x", "set", "loss=1%"]);
    let metrics = kaido.ok(&["lab", "metrics"]);
    assert!(metrics.contains("cause=\"overdue\""), "{metrics}");
    assert!(traffic(&["--stop"]).contains("cross traffic has ended"));
    // The counters no longer change.
    let before = cross();
    assert_eq!(before, cross());
    assert!(traffic(&["--stop"]).contains("carries no cross traffic"));
    kaido.run(&[&from[..], &["--stop", "rate=1mbit"]].concat()).failed(2, &["--stop"]);
    kaido.run(&from).failed(2, &["KEY=VALUE"]);
    lab.down();
}
