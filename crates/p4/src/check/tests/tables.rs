//! Tables, their keys, actions and entries.

use super::*;
use crate::ir::Value;

#[test]
fn tables_have_keys_actions_and_entries() {
    let checked = control(
        "Register<bit<32>, bit<32>>(16) count;
        action drop() { mark_to_drop(); }
        action forward(bit<32> port) { std.output_port = port; std.output_action = ubpf_action.REDIRECT; }
        action add(in bit<8> by, bit<8> more) { hdr.ip.ttl = hdr.ip.ttl + by + more; }
        table routes {
            key = { hdr.ip.dst: lpm; hdr.ip.isValid(): exact; hdr.eth.type: ternary @name(\"type\"); }
            actions = { forward; @defaultonly drop; add(2); }
            const default_action = drop();
            entries = {
                (0x0a000000 &&& 0xff000000, true, _): forward(1);
                (_, true, Ether.IPV4 &&& 0xff00): add(3);
            }
            size = 100;
        }",
        "if (routes.apply().hit) { count.write(1, count.read(1) + 1); }
        switch (routes.apply().action_run) { drop: { exit; } forward: add: { } default: { } }",
    );
    accepts(&checked);
    let table = &checked.program.tables[0];
    let names: Vec<_> = table.keys.iter().map(|key| &*key.name).collect();
    assert_eq!(names, ["hdr.ip.dst", "hdr.ip.$valid$", "type"]);
    assert_eq!((table.size, table.actions.len(), table.default_action.0), (100, 3, 1));
    assert!(table.default_is_constant && !table.entries_are_constant);
    let arguments: Vec<_> = table.entries.iter().map(|entry| entry.action.clone()).collect();
    assert_eq!(
        arguments,
        [(0, vec![Value::Integer(1.into())]), (2, vec![Value::Integer(3.into())])]
    );
    assert!(table.entries[0].priority > table.entries[1].priority);
}

#[test]
fn invalid_tables_are_refused() {
    tells(&[
        (
            "table t { key = { hdr.ip.src: exact; } actions = { none; } }",
            "",
            "`none` is not declared",
        ),
        ("table t { key = { hdr.ip.src: fuzzy; } actions = { NoAction; } }", "", "has no `fuzzy`"),
        ("table t { key = { hdr.ip.src + 1: exact; } actions = { NoAction; } }", "", "has no name"),
        (
            "table t { key = { hdr.ip.src: lpm; hdr.ip.dst: lpm; } actions = { NoAction; } }",
            "",
            "only one part",
        ),
        ("table t { actions = { NoAction; } size = 0; }", "", "expected 1 to"),
        (
            "table t { actions = { NoAction; } implementation = 3; }",
            "",
            "the property `implementation`",
        ),
        (
            "action a(bit<8> x) { } table t { actions = { a; } default_action = a; }",
            "",
            "`x` has no value",
        ),
        (
            "action a() { } table t { actions = { NoAction; } default_action = a; }",
            "",
            "not an action of the table",
        ),
        (
            "table t { key = { hdr.ip.src: exact; } actions = { NoAction; } const entries = { _: NoAction(); } }",
            "",
            "does not fit the key",
        ),
        (
            "table t { key = { hdr.ip.src: lpm; } actions = { NoAction; } const entries = { 1 &&& 5: NoAction(); } }",
            "",
            "not a prefix",
        ),
        (
            "table t { key = { hdr.ip.src: range; } actions = { NoAction; } const entries = { 5 .. 1: NoAction(); } }",
            "",
            "nothing is in this range",
        ),
        (
            "table t { key = { hdr.ip.src: exact; } actions = { NoAction; } }",
            "bool b = t.apply();",
            "ask for `.hit`",
        ),
        (
            "table t { actions = { NoAction; } } action a() { t.apply(); }",
            "",
            "applied in `apply`, not here",
        ),
        (
            "table t {
                key = { hdr.ip.ttl: ternary; }
                actions = { NoAction; }
                const entries = { priority = 1: 1: NoAction(); }
            }",
            "",
            "constant entries have no priorities",
        ),
        (
            "table t { actions = { NoAction; } size = 1; size = 2; }",
            "",
            "duplicate property `size`",
        ),
        ("table t { actions = { NoAction; NoAction; } }", "", "duplicate action `NoAction`"),
        ("table t { actions = { NoAction; } entries = { 1: NoAction(); } }", "", "without a key"),
        (
            "action a(inout bit<8> x, bit<8> y) { x = y; }
            table t { actions = { a(hdr.ip.ttl); } default_action = a(hdr.ip.proto, 1); }",
            "",
            "binds something else",
        ),
        (
            "table t {
                key = { hdr.ip.ttl: ternary; }
                actions = { NoAction; }
                entries = { 1: NoAction(); priority = 3: 2: NoAction(); }
            }",
            "",
            "this entry has no priority",
        ),
        (
            "table t {
                key = { hdr.ip.ttl: ternary; }
                actions = { NoAction; }
                entries = { priority = 0: 1: NoAction(); 2: NoAction(); }
            }",
            "",
            "priority is out of range",
        ),
    ]);
}
