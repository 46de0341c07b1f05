//! Counters, meters and digests.

use super::{accepts, control, refuses};

const BOTH: &str = "PSA_CounterType_t.PACKETS_AND_BYTES";

fn direct(more: &str, apply: &str) -> crate::Checked {
    control(
        &format!(
            "DirectCounter<bit<64>>({BOTH}) n;
            DirectMeter(PSA_MeterType_t.BYTES) m;
            action use() {{ n.count(); PSA_MeterColor_t k = m.execute(); }}
            action plain() {{ }}
            table t {{
                actions = {{ use; plain; }}
                default_action = use();
                psa_direct_counter = n;
                psa_direct_meter = m;
            }}
            {more}"
        ),
        apply,
    )
}

#[test]
fn counters_and_meters_are_used() {
    accepts(&control(
        &format!("Counter<bit<32>, bit<8>>(n_counters = 4, type = {BOTH}) n;"),
        "n.count(hdr.ip.ttl);",
    ));
    accepts(&control(
        "Meter<bit<8>>(4, PSA_MeterType_t.PACKETS) m; PSA_MeterColor_t k = m.execute(3);",
        "k = m.execute(hdr.ip.ttl, k); if (k == PSA_MeterColor_t.RED) mark_to_drop(); m.execute(0);",
    ));
    accepts(&control(
        "Digest<meta_t>() d; Digest<tuple<bit<8>, bit<500>>>() e;",
        "d.pack(meta); d.pack({ 1, true, -1 }); e.pack({ hdr.ip.ttl, 0 });",
    ));
    accepts(&direct(
        "action calls() { use(); } table u { actions = { plain; } }",
        "t.apply(); u.apply();",
    ));
}

#[test]
fn direct_externs_are_used_only_by_actions_of_their_table() {
    for (more, apply, why) in [
        ("", "t.apply(); n.count();", "`n` belongs to a table: it is used in that table's actions"),
        ("PSA_MeterColor_t k = m.execute();", "t.apply();", "`m` belongs to a table"),
        ("", "t.apply(); use();", "this action is run by its table only"),
        (
            "action calls() { use(); }",
            "t.apply(); calls();",
            "this action is run by its table only",
        ),
        (
            "table u { actions = { plain; use; } }",
            "t.apply(); u.apply();",
            "`u` has no `n`, which its action `use` uses",
        ),
        (
            "action calls() { plain(); use(); } table u { actions = { calls; } }",
            "t.apply(); u.apply();",
            "`u` has no `n`, which its action `calls` uses",
        ),
        (
            "table u { actions = { plain; } psa_direct_counter = n; }",
            "t.apply(); u.apply();",
            "this belongs to the table `t` already",
        ),
        (
            "table u { actions = { plain; } psa_direct_counter = m; }",
            "t.apply(); u.apply();",
            "this is not a `DirectCounter`",
        ),
        (
            "table u { actions = { plain; } psa_direct_meter = 3; }",
            "t.apply(); u.apply();",
            "this is not a `DirectMeter`",
        ),
        (
            "table u { actions = { plain; } psa_direct_meter = hdr; }",
            "t.apply(); u.apply();",
            "expected the name of a `DirectMeter`",
        ),
        (
            "table u { actions = { plain; } psa_direct_meters = m; }",
            "t.apply(); u.apply();",
            "it has `psa_direct_meter`",
        ),
        (
            "DirectMeter(PSA_MeterType_t.BYTES) other;",
            "t.apply();",
            "`psa_direct_meter = other;` in a table says which",
        ),
        (
            "table u { actions = { plain; } psa_direct_meter = missing; }",
            "t.apply(); u.apply();",
            "`missing` is not declared",
        ),
    ] {
        refuses(&direct(more, apply), why);
    }
}

#[test]
fn a_missing_include_is_reported() {
    let text = format!("Counter<bit<8>, bit<8>>(1, {BOTH}) n; {}", super::MAIN);
    refuses(&super::check(&text), "`#include <kaido.p4>` at the beginning declares it");
}

/// A direct object of another control is not visible, and it is not allowed outside a control.
#[test]
fn direct_ones_stand_in_the_control_of_their_table() {
    let text = |outside: &str, inside: &str| {
        super::check(&format!(
            "{}
            {outside}
            control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {{
                {inside}
                apply {{ }}
            }}
            {}{}",
            super::PRELUDE,
            super::REST,
            super::MAIN
        ))
    };
    let made = format!("DirectCounter<bit<8>>({BOTH}) n;");
    refuses(&text(&made, ""), "this belongs in the control of its table");
    refuses(&text("", &made), "`n` belongs to no table");
    let table = "table t { actions = { NoAction; } psa_direct_counter = n; }";
    accepts(&text("", &format!("{made} {table}")));
    refuses(&text("", &format!("{table} {made}")), "`n` is not declared");
}

#[test]
fn types_and_sizes_of_cells_are_checked() {
    for (locals, apply, why) in [
        (
            "Counter<bit<65>, bit<8>>(4, PSA_CounterType_t.BYTES) n;",
            "",
            "expected bit<1> to bit<64>",
        ),
        (
            "Counter<int<8>, bit<8>>(4, PSA_CounterType_t.BYTES) n;",
            "",
            "a counter cannot be of type `int<8>`",
        ),
        ("Counter<bit<8>, meta_t>(4, PSA_CounterType_t.BYTES) n;", "", "an index must be bit<…>"),
        ("Counter<bit<8>, int<8>>(4, PSA_CounterType_t.BYTES) n;", "", "an index must be bit<…>"),
        ("Meter<bool>(4, PSA_MeterType_t.BYTES) n;", "", "an index must be bit<…>, not `bool`"),
        ("Counter<bit<8>, bit<8>>(4) n;", "", "`type` has no value"),
        ("Counter<bit<8>, bit<8>>(4, PSA_MeterType_t.BYTES) n;", "", "not `PSA_CounterType_t`"),
        ("Counter<bit<8>, bit<8>>(0, PSA_CounterType_t.BYTES) n;", "", "this has no elements"),
        ("Register<bit<8>, bit<8>>(0) n;", "", "this has no elements"),
        ("Meter<bit<8>>(0x2000000, PSA_MeterType_t.BYTES) n;", "", "more than 16777216 elements"),
        (
            "Counter<bit<8>, bit<8>>(4, PSA_CounterType_t.BYTES) n;",
            "n.count();",
            "`index` has no value",
        ),
        ("Counter<bit<8>, bit<8>>(4, PSA_CounterType_t.BYTES) n;", "n.add(1);", "it has `count`"),
        (
            "Meter<bit<8>>(4, PSA_MeterType_t.BYTES) m;",
            "m.execute(1, 2);",
            "not `PSA_MeterColor_t`",
        ),
        ("Digest<ip_t>() d;", "", "a digest cannot be of type `ip_t`"),
        ("Digest<Color>() d;", "", "a digest cannot be of type `Color`"),
        ("Digest<meta_t>() d;", "d.pack(hdr.ip);", "not `meta_t`"),
    ] {
        refuses(&control(locals, apply), why);
    }
}
