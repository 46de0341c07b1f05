//! Parsers and their states.

use super::*;

#[test]
fn parsers_have_states() {
    accepts(&parser(
        "bit<8> left = 0; value_set<bit<16>>(4) tags;",
        "state rest { p.extract(hdr.opt, (bit<32>)left * 8); transition accept; }
        state start {
            p.extract(hdr.eth); left = p.lookahead<bit<8>>();
            verify(left > 2, error.HeaderTooShort);
            transition select(hdr.eth.type, left) {
                (Ether.IPV4, 1 .. 3): ip; (0x8100 &&& 0xff00, _): tag; (tags, 4): rest; default: accept;
            }
        }
        state tag { p.extract(hdr.tags.next); transition select(hdr.tags.last.type, hdr.tags.lastIndex) {
            (0x8100, 0): tag; (_, _): ip; } }
        state ip { p.advance(8); p.extract<eth_t>(_); p.extract(hdr.l3.ip); transition rest; }",
    ));
    let checked =
        parser("", "state start { transition accept; } state lonely { transition accept; }");
    assert!(said(&checked).contains("unreachable state `lonely`"), "{}", said(&checked));
    assert!(!checked.diagnostics.has_errors());
    let checked = parser("", "state start { p.extract(hdr.eth); }");
    assert!(said(&checked).contains("`start` ends without a transition"), "{}", said(&checked));
    assert!(!checked.diagnostics.has_errors());
    for (states, why) in [
        ("state begin { transition accept; }", "no state `start`"),
        ("state start { transition tsart; }", "there is `start`"),
        (
            "state start { transition a; } state a { transition accept; } state a { }",
            "state `a` already",
        ),
        ("state start { p.extract(hdr); transition accept; }", "only a header is extracted"),
        ("state start { p.extract(hdr.opt); transition accept; }", "varbit field"),
        ("state start { p.extract(hdr.eth, 3); transition accept; }", "no varbit field"),
        ("state start { p.emit(hdr.eth); transition accept; }", "it has `extract`"),
        (
            "state start { transition select(hdr.eth.type) { 1.. 2: accept; (1, 2): accept; } }",
            "1 values are compared",
        ),
        ("state start { transition select(hdr) { _: accept; } }", "cannot select on"),
        ("state start { exit; transition accept; }", "belongs in a control"),
        (
            "state start { p.extract(hdr.tags.last); transition accept; }",
            "`last` of a stack is only read",
        ),
        (
            "state start { bit<8> x = p.lookahead(); transition accept; }",
            "which header to look for",
        ),
    ] {
        refuses(&parser("", states), why);
    }
}
