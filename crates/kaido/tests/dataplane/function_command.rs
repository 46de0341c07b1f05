//! `kaido function`.

use crate::functions::{expect, function_net};
use crate::net::Net;

const FILE: &str = "\
# no functions
locators: [\"fd00:1::/48\"]
ports: { l: {}, r: {} }
sids: { \"fd00:1::7\": End }
";
const SID: &str = "fd00:1::f:0:0/112";

#[test]
fn root_a_function_is_added_listed_and_removed() {
    let mut net = function_net();
    net.start(&[]);
    let add = ["function", "add", "fd00:1::f:0:0", "--arg-bits", "16"];
    net.kaido.run(&add).failed(2, &["no file is applied", "kaido dataplane apply"]);
    net.apply(FILE);
    let list = |net: &Net| net.kaido.json(&["function", "ls"]);
    assert_eq!(list(&net).as_array().unwrap().len(), 0);
    let said = net.kaido.json(&add);
    assert!(said["summary"].as_str().unwrap().contains("1 added"), "{said}");
    // The first packets pass.
    expect(&net, "10.9.0.1", true);
    let function = &list(&net)[0];
    assert_eq!((&function["sid"], &function["action"]), (&SID.into(), &"End.AN.NF".into()));
    assert_eq!((&function["in"], &function["out"]), (&3.into(), &3.into()));
    // Repeating the command changes nothing; a return path for answers is a change.
    assert_eq!(net.kaido.json(&add)["changes"].as_array().unwrap().len(), 0);
    let answers = ["function", "add", SID, "--answers", "fd00:3::d4"];
    assert_eq!(net.kaido.json(&answers)["changes"].as_array().unwrap().len(), 1);
    assert!(list(&net)[0]["action"].as_str().unwrap().contains("fd00:3::d4"));
    for (arguments, words) in [
        (&["add", "fd00:7::/112"][..], &["kaido: `fd00:7::/112` is in no locator: "][..]),
        (&["add", "fd00:1::1/112"], &["bits set after its prefix"]),
        (&["add", "fd00:1::/64"], &["leaves 64 bits"]),
        (&["add", "ten"], &["`ten` is not a SID"]),
        (&["add", SID, "--arg-bits", "8"], &["leaves 16 bits", "--arg-bits is 8"]),
        (&["add", "fd00:1::2", "--behavior", "End.NF"], &["End.NF"]),
        (&["add", "fd00:1::7"], &["the SID `fd00:1::7/128` is there, and no function"]),
        (&["rm", "fd00:1::7"], &["no function `fd00:1::7/128`"]),
        (&["rm", "fd00:1::2"], &["no function `fd00:1::2/128`", "kaido function ls"]),
        (&["trace", "fd00:1::2"], &["no function `fd00:1::2`", "kaido function ls"]),
        (&["trace", "ten"], &["`ten` is not a SID"]),
    ] {
        net.kaido.run(&[&["function"], arguments].concat()).failed(2, words);
    }
    assert_eq!(list(&net).as_array().unwrap().len(), 1);
    // Like any applied state, the function outlives the daemon.
    net.kill();
    net.start(&[]);
    expect(&net, "10.9.0.1", true);
    net.kaido.ok(&["function", "rm", SID]);
    assert_eq!(list(&net).as_array().unwrap().len(), 0);
    expect(&net, "10.9.0.1", false);
    // Applying a file replaces everything.
    net.kaido.ok(&add);
    net.apply(FILE);
    assert_eq!(list(&net).as_array().unwrap().len(), 0);
}
