//! The mobile user plane: tunnels of GTP-U, and policies for their sessions.

use model::dataplane::{Behavior, Steer, Table};
use srv6::{GtpTunnel, PduSession, SessionArgs};

use super::{expect, file, sid, tenant};
use crate::parse;

/// Returns a file with the SID of a prefix.
fn prefix(prefix: &str, map: &str) -> String {
    file(&format!("sids:\n  \"{prefix}\": {{{map}}}"))
}

#[test]
fn tunnels() {
    let behavior = |text: &str| {
        let file = parse("x", text).unwrap_or_else(|problems| panic!("{problems}"));
        file.sids[0].1.behavior.clone()
    };
    let plain = GtpTunnel { table: None, pdu_session: None };
    assert_eq!(
        behavior(&prefix("fd00:0:1::/56", "behavior: End.M.GTP4.E")),
        Behavior::EndMGtp4E { tunnel: plain.clone(), source_args: 64 }
    );
    let tunnel =
        GtpTunnel { table: Some(Table::Number(100)), pdu_session: Some(PduSession::Downlink) };
    let text = "behavior: End.M.GTP4.E, table: 100, pdu_session: downlink, source_args: 48";
    assert_eq!(
        behavior(&prefix("fd00:0:1::/56", text)),
        Behavior::EndMGtp4E { tunnel, source_args: 48 }
    );
    assert_eq!(
        behavior(&prefix("fd00:0:1::/88", "behavior: End.M.GTP6.E")),
        Behavior::EndMGtp6E { tunnel: plain }
    );
    let leaves = "`fd00:0:1::/64` leaves 64 bits, and the argument has 72";
    let text = prefix("fd00:0:1::/64", "behavior: End.M.GTP4.E");
    expect(&text, &[("6:3", leaves, "/56 or less")]);
    expect(
        &sid("behavior: End.M.GTP6.E"),
        &[("6:3", "leaves 0 bits, and the argument has 40", "/88 or less")],
    );
    for position in ["4", "97", "70000"] {
        let map = format!("behavior: End.M.GTP4.E, source_args: {position}");
        let message = format!("{position} is not the position of an argument");
        expect(&prefix("fd00:0:1::/56", &map), &[("6:58", &message, "8 to 96")]);
    }
    expect(
        &prefix("fd00:0:1::/56", "behavior: End.M.GTP4.E, pdu_session: sideways"),
        &[("6:58", "`sideways` is not known here", "use downlink, uplink")],
    );
    expect(
        &sid("behavior: End, pdu_session: uplink"),
        &[("6:35", "End takes no `pdu_session`", "remove it")],
    );
    expect(
        &prefix("fd00:0:1::/64", "behavior: End.M.GTP6.E, source_args: 64"),
        &[("6:45", "End.M.GTP6.E takes no `source_args`", "pdu_session")],
    );
}

#[test]
fn policies_of_sessions() {
    let policy = |text: &str| {
        let file = parse("x", text).unwrap_or_else(|problems| panic!("{problems}"));
        match file.sids[0].1.behavior.policy() {
            Some(Steer::Own(policy)) => policy.session,
            other => panic!("{other:?}"),
        }
    };
    let d = "behavior: End.M.GTP6.D, policy: {segments: [fd00:0:2::1], args: 64}";
    assert_eq!(policy(&sid(d)), Some(SessionArgs { segment: Some(64), source: 64 }));
    let di = "behavior: End.M.GTP6.D.Di, policy: [fd00:0:2::1, \"::\"]";
    assert_eq!(policy(&sid(di)), Some(SessionArgs { segment: None, source: 64 }));
    let without = "End.M.GTP6.D with a policy without the position of the session";
    let help = "add `args:`";
    expect(&sid("behavior: End.M.GTP6.D, policy: [fd00:0:2::1]"), &[("6:44", without, help)]);
    expect(&sid("behavior: End.M.GTP6.D"), &[("6:3", "End.M.GTP6.D needs a policy", "policy:")]);
    expect(
        &sid("behavior: End.M.GTP6.D, policy: {segments: [fd00:0:2::1, \"::\"], args: 64}"),
        &[("6:44", "End.M.GTP6.D with `::` as last segment", "End.M.GTP6.D.Di")],
    );
    expect(
        &sid("behavior: End.M.GTP6.D.Di, policy: {segments: [fd00:0:2::1], args: 64}"),
        &[("6:47", "the last segment of End.M.GTP6.D.Di", "write `::`")],
    );
    for args in ["0", "89"] {
        let map =
            format!("behavior: End.M.GTP6.D, policy: {{segments: [fd00:0:2::1], args: {args}}}");
        let message = format!("{args} is not the position of an argument");
        expect(&sid(&map), &[("6:84", &message, "8 to 88")]);
    }
    // Only where packets have GTP-U.
    let plain = "a policy for payloads of GTP-U";
    let list = "{segments: [fd00:0:2::1], args: 64}";
    expect(
        &sid(&format!("behavior: End.B6.Encaps, policy: {list}")),
        &[("6:45", plain, "tenant's `routes`")],
    );
    expect(&tenant(&format!("frames: {list}")), &[("5:18", plain, "tenant's `routes`")]);
    expect(
        &sid("behavior: End.B6.Encaps, policy: [fd00:0:2::1, \"::\"]"),
        &[("6:45", plain, "tenant's `routes`")],
    );
    // `::` is the packet's own destination at the end alone.
    let own = "`::` is not a segment";
    expect(
        &sid("behavior: End.M.GTP6.D.Di, policy: [\"::\", fd00:0:2::1, \"::\"]"),
        &[("6:56", own, "another node")],
    );
}

#[test]
fn routes_of_sessions() {
    let route = |prefix: &str, policy: &str| tenant(&format!("routes: {{\"{prefix}\": {policy}}}"));
    let list = |args: u32| format!("{{segments: [fd00:0:2::1], args: {args}}}");
    for (prefix, args) in [("10.0.0.0/8", 56), ("fd00:5::/32", 88)] {
        assert!(parse("x", &route(prefix, &list(args))).is_ok(), "{prefix}");
    }
    let own = "[fd00:0:2::1, \"::\"]";
    let domain = |text: String| format!("{text}\nsources: [fd00::/32]\n");
    assert!(parse("x", &domain(route("fd00:5::/32", own))).is_ok());
    // A tenant chooses the last segment then.
    let reach = "the tenant chooses the last segment, and may not reach SIDs by it";
    expect(&route("fd00:5::/32", own), &[("5:27", reach, "`sources:`")]);
    let without = "{segments: [fd00:0:2::1], source_args: 64}";
    let message = "a policy without the position of the session";
    expect(&route("fd00:5::/32", without), &[("5:27", message, "`args: 64`")]);
    // The prefix of `source` is this node's.
    for (args, is_good) in [(8, false), (47, false), (48, true)] {
        let policy = format!("{{segments: [fd00:0:2::1], args: 56, source_args: {args}}}");
        let text = domain(route("10.0.0.0/8", &policy));
        match is_good {
            true => assert!(parse("x", &text).is_ok()),
            false => {
                expect(&text, &[("5:27", "overwrites bits of this node's prefix", "48 or more")])
            }
        }
    }
    let lists = "{args: 64, lists: [{segments: [fd00:0:2::1, \"::\"]}, {segments: [fd00:0:3::1]}]}";
    let mixed = "some lists end with `::`, the packet's own destination, and others do not";
    expect(&domain(route("fd00:5::/32", lists)), &[("5:53", mixed, "or none")]);
    let message = "an IPv4 route to a policy without room for IPv4 destination and session";
    for policy in [list(57), "{segments: [fd00:0:2::1], source_args: 64}".to_owned()] {
        expect(&route("10.0.0.0/8", &policy), &[("5:27", message, "8 to 56")]);
    }
    expect(
        &route("10.0.0.0/8", own),
        &[("5:27", "an IPv4 route with `::` as last segment", "remove the last")],
    );
}
