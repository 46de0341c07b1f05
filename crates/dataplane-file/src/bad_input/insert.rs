//! Insertion of SRHs.

use model::dataplane::Steer;
use srv6::Form;

use super::{HEAD, expect, sid, tenant};
use crate::parse;

/// Permits insertion in a file.
fn permitted(text: &str) -> String {
    format!("{text}\ninsert: true\n")
}

const LIST: &str = "{segments: [fd00:0:2::1], form: H.Insert}";

#[test]
fn insertion_has_to_be_permitted() {
    let message = "H.Insert changes packets of others on their way";
    let route = tenant(&format!("routes: {{\"fd00:5::/32\": {LIST}}}"));
    expect(&route, &[("5:74", message, "H.Encaps")]);
    let file = parse("x", &permitted(&route)).unwrap_or_else(|problems| panic!("{problems}"));
    let Steer::Own(policy) = &file.tenants.values().next().unwrap().routes[0].1 else {
        panic!("{:?}", file.tenants)
    };
    assert_eq!((policy.form, policy.lists.len()), (Form::Insert, 1));
}

#[test]
fn insertion_is_for_ipv6_packets() {
    let insert = "a policy of form H.Insert";
    let help = "IPv6 routes";
    for (text, place) in [
        (tenant(&format!("routes: {{10.0.0.0/8: {LIST}}}")), "5:27"),
        (tenant(&format!("frames: {LIST}")), "5:18"),
        (sid(&format!("behavior: End.B6.Encaps, policy: {LIST}")), "6:45"),
    ] {
        expect(&permitted(&text), &[(place, insert, help)]);
    }
    let kernels = "End.B6.Insert is for routes of the kernel";
    let text = permitted(&sid(&format!("behavior: End.B6.Insert, policy: {LIST}")));
    expect(&text, &[("6:30", kernels, "End.B6.Encaps")]);
    let text =
        sid("behavior: End.M.GTP6.D, policy: {segments: [fd00:0:2::1], args: 64, form: H.Insert}");
    expect(&permitted(&text), &[("6:94", "H.Insert for payloads of GTP-U", "H.Encaps.Red")]);
}

#[test]
fn inserted_lists_have_room_for_the_destination() {
    let list = |count: usize| {
        let all: Vec<String> = (2..count + 2).map(|n| format!("fd00:0:{n}::1")).collect();
        let head = HEAD.split_once("policies").unwrap().0;
        permitted(&format!(
            "{head}policies: {{p: {{segments: [{}], form: H.Insert}}}}",
            all.join(", ")
        ))
    };
    assert!(parse("x", &list(9)).is_ok());
    assert!(parse("x", &list(10)).unwrap_err().to_string().contains("room for 9"));
}
