//! Files with invalid proxies of service functions (End.AS, End.AD, End.AM).

use std::net::IpAddr;

use model::dataplane::{Behavior, Proxy, Steer};
use srv6::Kind;

use super::{expect, file, sid};
use crate::parse;

/// Returns the behavior and the proxy of a file that has one.
fn proxy(text: &str) -> (Behavior, Proxy) {
    let file = parse("x", text).unwrap_or_else(|problems| panic!("{problems}"));
    let behavior = file.sids[0].1.behavior.clone();
    let proxy = behavior.proxy().cloned().unwrap_or_else(|| panic!("{behavior:?}"));
    (behavior, proxy)
}

#[test]
fn proxies_and_their_absent_keys() {
    let (behavior, dynamic) =
        proxy(&sid("behavior: End.AD, to: veth2, back: veth3, via: 10.0.0.2"));
    assert_eq!((&*dynamic.to, &*dynamic.back), ("veth2", "veth3"));
    assert_eq!((behavior.kind(), dynamic.via), (Kind::EndAd, Some(IpAddr::from([10, 0, 0, 2]))));
    let (behavior, masked) = proxy(&sid("behavior: End.AM, to: veth2"));
    assert_eq!((&*masked.back, masked.via, behavior.kind().name()), ("veth2", None, "End.AM"));
    let (behavior, _) = proxy(&sid("behavior: End.AS, to: veth2, policy: to-osaka"));
    assert!(matches!(behavior, Behavior::EndAs { .. }), "{behavior:?}");
    assert_eq!(behavior.policy(), Some(&Steer::Named("to-osaka".into())));
    assert!(parse("x", &sid("behavior: End.AD, to: v2, health: {run: \"true\"}")).is_ok());
    // No source is needed without a policy.
    let bare = "locators: [fd00:0:1::/48]\nports: {eth0: {}}\n\
                sids: {\"fd00:0:1::1\": {behavior: End.AD, to: v2}}\n";
    assert!(parse("x", bare).is_ok());
}

#[test]
fn arguments_that_proxies_need_or_do_not_take() {
    expect(&sid("behavior: End.AD"), &[("6:3", "End.AD needs an interface", "add `to:`")]);
    expect(
        &file("sids:\n  fd00:0:1::1: End.AM"),
        &[("6:16", "End.AM needs an interface", "`to:`")],
    );
    expect(
        &sid("behavior: End.AS, to: v2"),
        &[("6:3", "End.AS needs a policy for returning packets", "add `policy:`")],
    );
    expect(
        &sid("behavior: End.AD, to: v2, policy: to-osaka"),
        &[("6:46", "End.AD takes no `policy`", "it takes to, back, via, health")],
    );
    expect(
        &sid("behavior: End.AM, to: v2, next_hop: fd00::1, table: 7"),
        &[("6:46", "End.AM takes no `next_hop`", ""), ("6:65", "End.AM takes no `table`", "")],
    );
    for (behavior, key, at) in [
        ("End", "to: v2", "6:39"),
        ("End.AN.NF", "back: v2", "6:45"),
        ("End", "via: fe80::1", "6:39"),
    ] {
        let key_name = key.split(':').next().unwrap();
        let message = format!("{behavior} takes no `{key_name}`");
        let text = sid(&format!("behavior: {behavior}, {key}")).replace("abc:::", "abc::/112:");
        expect(&text, &[(at, &message, "remove it")]);
    }
    expect(
        &sid("behavior: End.AD, to: v2, flavors: [PSP]"),
        &[("6:56", "End.AD cannot have PSP", "no flavors")],
    );
    expect(
        &sid("behavior: End.AS, to: v2, policy: to-kobe"),
        &[("6:54", "no policy is called `to-kobe`", "")],
    );
}

#[test]
fn interfaces_in_use_elsewhere() {
    expect(
        &sid("behavior: End.AD, to: eth1, back: eth2"),
        &[
            ("6:42", "`eth1` is a port, and leads to a function", "a VLAN's"),
            ("6:54", "`eth2` is a port, and leads to a function", "a VLAN's"),
        ],
    );
    expect(
        &sid("behavior: End.AD, to: a/b"),
        &[("6:42", "`a/b` cannot name an interface", "15 bytes")],
    );
    expect(
        &sid("behavior: End.AD, to: kaido-in"),
        &[("6:42", "`kaido-in` is the data plane's own", "of the function's own")],
    );
    let text = "locators: [fd00:0:1::/48]\nports: {eth0: {exit: x0}}\n\
                sids: {\"fd00:0:1::1\": {behavior: End.AD, to: x0}}\n";
    expect(text, &[("3:46", "`x0` is a port's exit", "of the function's own")]);
}

#[test]
fn invalid_addresses_of_functions() {
    for via in ["'::'", "ff02::1", "::1", "0.0.0.0", "224.0.0.1", "127.0.0.1", "255.255.255.255"] {
        let said = format!("`{}` is not a function's address", via.trim_matches('\''));
        let text = sid(&format!("behavior: End.AD, to: v2, via: {via}"));
        expect(&text, &[("6:51", &said, "remove it")]);
    }
    expect(&sid("behavior: End.AD, to: v2, via: here"), &[("6:51", "`here` is", "")]);
    expect(
        &sid("behavior: End.AM, to: v2, via: 10.0.0.2"),
        &[("6:51", "End.AM sends IPv6, and `10.0.0.2` is an IPv4 address", "fe80::2")],
    );
}

#[test]
fn ways_back_that_two_share() {
    let two = |first: &str, second: &str| {
        file(&format!("sids:\n  fd00:0:1:1::: {{{first}}}\n  fd00:0:1:2::: {{{second}}}"))
    };
    let dynamic = "behavior: End.AD, to: v2, back: v3";
    let masked = "behavior: End.AM, to: v2, back: v3";
    let fixed = "behavior: End.AS, to: v3, policy: to-osaka";
    assert!(parse("x", &two(dynamic, dynamic)).is_ok());
    assert!(parse("x", &two(dynamic, &dynamic.replace("v3", "v4"))).is_ok());
    for (first, second) in [(dynamic, masked), (masked, masked), (masked, fixed), (fixed, dynamic)]
    {
        expect(
            &two(first, second),
            &[("7:3", "by `v3` the packets of fd00:0:1:1:: come back", "its own `back:`")],
        );
    }
}
