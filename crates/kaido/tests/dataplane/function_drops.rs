//! Drops of a service function's packets are counted by netfilter hook.

use serde_json::{Value, json};

use crate::functions::{FILE, expect, function_net, nft};
use crate::net::{Net, ip};

/// Returns the drop counts of the function's packets.
pub(crate) fn drops(net: &Net) -> Value {
    let shown = net.show();
    let sids = shown["sids"].as_array().unwrap();
    sids.iter().find(|sid| sid["action"] == "End.AN.NF").unwrap()["dropped"].clone()
}

#[test]
fn root_drops_are_counted_by_hook() {
    let mut net = function_net();
    net.start(&[]);
    net.apply(FILE);
    // Rules select packets by length, so that each ping matches one rule; three packets each.
    nft(
        &net,
        "table inet drops {
             chain pre { type filter hook prerouting priority raw; meta length 1100-1199 drop; }
             chain forward { type filter hook forward priority filter;
                 meta length 1200-1299 drop
                 ip length 1000-1099 ip protocol icmp reject; }
             chain post { type filter hook postrouting priority filter; meta length 1300-1399 drop; }
         }",
    );
    expect(&net, "10.9.0.1", true);
    let none = json!({ "prerouting": 0, "forward": 0, "postrouting": 0, "no_hook": 0 });
    assert_eq!(drops(&net), none);
    for address in ["10.9.0.1", "fd00:9::1"] {
        for size in [1110, 1210, 1310] {
            expect(&net, &format!("-s {size} {address}"), false);
        }
    }
    let by_rules = json!({ "prerouting": 6, "forward": 6, "postrouting": 6, "no_hook": 0 });
    assert_eq!(drops(&net), by_rules);
    expect(&net, "-s 1010 10.9.0.1", false);
    assert_eq!(drops(&net)["forward"], 9);
    // Drops by the kernel itself are not counted for a hook.
    let functions = 77 << 24;
    ip(&net.node, &[&format!("route add unreachable 10.9.0.0/24 table {functions}")]);
    expect(&net, "10.9.0.1", false);
    assert_eq!(drops(&net)["no_hook"], 3);
    assert_eq!(drops(&net)["forward"], 9);
}
