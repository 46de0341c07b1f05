//! Statements and expressions.

use super::*;

#[test]
fn statements_are_accepted() {
    for text in [
        "hdr.eth.dst = 1; meta.port = hdr.eth.type + 1; meta.s = -1; meta.s = (int<8>)hdr.ip.ttl;",
        "bit<8> x; x = hdr.eth.dst[7:0]; hdr.eth.dst[15:8] = x; x = x |+| 3; x = x ++ 4w0 == 0 ? 8w1 : 2;",
        "if (hdr.eth.type == Ether.IPV4) { exit; } else if (!hdr.ip.isValid()) return;",
        "hdr.ip.setValid(); hdr.ip = { 1, 2, 3, 4 }; hdr.ip = { 1, ... }; hdr.ip = { ttl = 1, ... }; hdr.ip = {#};",
        "hdr.tags.push_front(1); hdr.tags.pop_front(2); hdr.tags[1] = hdr.eth; hdr.tags[meta.port].src = 1;",
        "meta_t copy = meta; copy = { 1, true, 2 }; meta = copy; if (copy == meta) { }",
        "Color k = Color.Red; if (k != Color.Green) { k = Color.Green; }",
        "switch (hdr.ip.proto) { 6: 17: { exit; } default: { } }",
        "for (bit<8> i = 0; i < 4; i = i + 1) { if (i == 2) break; } for (bit<8> j in 0 .. 3) { continue; }",
        "bit<32> r; hash(r, HashAlgorithm.lookup3, { hdr.ip.src, hdr.ip.dst }); truncate(64); mark_to_drop();",
        "bit<8> w = 1; w += 2; w <<= 1; w = (bit<8>)(bit<4>)w; bool b = (bool)w[0:0]; w = (bit<8>)(bit<1>)b;",
        "static_assert(hdr.eth.minSizeInBits() == 112, \"ethernet\"); hdr.eth.type = Ether.IPV6;",
        "hdr.l3.ip.setValid(); if (hdr.l3.isValid()) { hdr.ip = hdr.l3.ip; }",
        "std.output_action = ubpf_action.REDIRECT; std.output_port = 2; std.clone = true;",
        "tuple<bit<8>, bool> t = { 1, true }; if (t[1]) { hdr.ip.ttl = t[0]; }",
        "const bit<128> big = 128w1 << 100; bit<128> v = big; v = v + (128w1 << 90);",
    ] {
        accepts(&control("", text));
    }
}

#[test]
fn invalid_statements_are_refused() {
    tells(&[
        ("", "hdr.eth.dst = hdr.ip.src;", "this is `bit<32>`, not `bit<48>`"),
        ("", "hdr.eth.dts = 1;", "it has `dst`"),
        ("", "nothing = 1;", "`nothing` is not declared"),
        ("bit<8> value;", "valeu = 1;", "`value` is"),
        ("", "meta.port = 70000;", "70000 does not fit `bit<16>`"),
        ("", "if (hdr.ip.ttl) { }", "this is `bit<8>`, not `bool`"),
        ("", "hdr.ip.ttl = hdr.ip.ttl + hdr.ip.src;", "not `bit<8>`"),
        ("", "hdr.ip.ttl[8:0] = 1;", "this slice is out of range"),
        ("", "hdr.tags[3] = hdr.eth;", "the stack has no such element"),
        ("", "hdr.tags.next = hdr.eth;", "belongs in a parser's states"),
        ("", "1 = hdr.ip.ttl;", "this is not a variable"),
        ("", "break;", "belongs in a loop"),
        ("", "const bit<8> a = hdr.ip.ttl;", "known when the program is compiled"),
        ("", "bit<8> a = 1 / 0;", "divides by zero"),
        ("", "int a = 1;", "a variable cannot be of type `int`"),
        ("", "tuple<int> a;", "a variable cannot be of type"),
        ("", "if ((int)hdr.ip.ttl + 1 > 255) { }", "known beforehand"),
        ("", "bit<8> a; bit<8> a;", "`a` is declared twice"),
        ("", "bit<(0 - 1)> a;", "a width of -1"),
        ("", "bit<3000> a;", "expected 0 to 2048"),
        ("", "hdr.ip = { 1, 2 };", "has 4 fields"),
        ("", "hdr.ip = { ttl = 1 };", "`proto` has no value here"),
        ("", "hdr.ip = { ttl = 1, tll = 2, ... };", "has no `tll`"),
        ("", "verify(true, error.NoError);", "belongs in a parser's states"),
        ("", "bit<32> r; hash(r, HashAlgorithm.lookup3);", "no value"),
        ("", "bit<16> r; hash(r, HashAlgorithm.lookup3, 8w1);", "not `bit<32>`"),
        ("", "mark_to_drop(1);", "too many arguments"),
        ("", "hdr.ip.ttl = Color.Red;", "this is `Color`"),
        ("", "meta.ok = Color.Blue == Color.Red;", "has no `Blue`"),
        ("", "meta.ok = error.Odd == error.NoError;", "`error` has no `Odd`"),
        ("", "static_assert(1 > 2, \"so it is\");", "this does not hold: so it is"),
        ("", "switch (hdr.ip.ttl) { 1: { } 1: { } }", "duplicate value"),
        ("", "switch (hdr.ip.ttl) { default: { } 1: { } }", "the last case"),
        ("", "hdr.ip.ttl = (bit<8>)hdr.eth;", "cannot be cast"),
        ("", "hdr.ip.ttl = (bit<8>)meta.s; int<4> x = (int<4>)hdr.ip.ttl;", "in two casts"),
        ("", "return 1;", "nothing is returned from here"),
        ("", "bit<8> v = hdr.ip.ttl << meta.s;", "a shift by a signed number"),
        ("", "bit<8> v = hdr.ip.ttl << (3 - 5);", "shifts by less than zero"),
        ("", "hdr.ip.ttl >>= -1;", "shifts by less than zero"),
        ("action a(bit<8> x) { x = 1; }", "", "cannot be changed"),
        ("action a(bit<8> x, in bit<8> y) { }", "", "stands too late"),
        ("action a() { a(); }", "", "no recursion"),
        ("Register<bit<8>, bit<32>>(4) r;", "r.raed(1);", "it has `read`"),
        ("Register<bit<8>>(4) r;", "", "generic over 2 types"),
        ("headers(3) h;", "", "has no constructor"),
        ("c() again;", "", "no recursion"),
        ("", "tuple<bit<8>, bool> t = { 1, true }; t[0] = 2;", "only changed as a whole"),
        ("", "bool b = (bool)2;", "2 cannot be a `bool`"),
        ("", "bit<8> b = ...; b = b + ...;", "the type of this default"),
    ]);
}

/// Arguments are evaluated and copied out in source order.
#[test]
fn an_order_that_matters_is_that_of_the_declaration() {
    const LOCALS: &str = "Register<bit<8>, bit<32>>(4) r;
        action a(in bit<8> x, in bit<8> y) { } action b(inout bit<8> x, inout bit<8> y) { }";
    let apply = [
        ("a(y = r.read(1), x = hdr.ip.ttl);", "parameters"),
        ("b(y = hdr.ip.ttl, x = hdr.ip.ttl);", "parameters"),
        ("hdr.ip = { proto = r.read(1), ttl = hdr.ip.ttl, ... };", "fields"),
    ];
    for (text, order) in apply {
        refuses(&control(LOCALS, text), &format!("which is not that of the {order}"));
    }
    for text in [
        "a(y = hdr.ip.ttl + 1, x = hdr.ip.ttl); a(y = r.read(1), x = 3);",
        "a(x = r.read(1), y = r.read(2)); hdr.ip = { ttl = r.read(1), proto = 1, ... };",
        "bit<8> v = 1; b(y = hdr.ip.ttl, x = v);",
    ] {
        accepts(&control(LOCALS, text));
    }
}

#[test]
fn a_port_without_effect_causes_a_warning() {
    for (apply, port) in
        [("std.output_port = 3;", "output_port"), ("std.clone_port = 3;", "clone_port")]
    {
        let checked = control("", apply);
        let wanted = format!("`{port}` has no effect");
        assert!(said(&checked).contains(&wanted), "{apply}\n{}", said(&checked));
        assert!(!checked.diagnostics.has_errors());
    }
    accepts(&control(
        "action via(bit<32> port) { std.output_port = port; }
         table t { key = { hdr.ip.src: exact; } actions = { via; } }",
        "t.apply(); std.output_action = ubpf_action.REDIRECT; std.clone = true; std.clone_port = 1;",
    ));
}

#[test]
fn variables_without_a_value_cause_a_warning() {
    for (apply, name) in [
        ("bit<8> x; hdr.ip.ttl = x;", "x"),
        ("bit<8> x; if (meta.ok) { x = 1; } hdr.ip.ttl = x;", "x"),
        ("bool b; if (b) { }", "b"),
        ("bit<8> x; switch (hdr.ip.ttl) { 1: { x = 1; } default: { } } hdr.ip.ttl = x + 1;", "x"),
        ("bit<8> x; for (bit<8> i = 0; i < 3; i = i + 1) { x = i; } hdr.ip.ttl = x;", "x"),
    ] {
        let checked = control("", apply);
        let wanted = format!("`{name}` may have no value here");
        assert!(said(&checked).contains(&wanted), "{apply}\n{}", said(&checked));
        assert!(!checked.diagnostics.has_errors());
    }
    for apply in [
        "bit<8> x; x = 1; hdr.ip.ttl = x;",
        "bit<8> x; if (meta.ok) { x = 1; } else { return; } hdr.ip.ttl = x;",
        "bit<8> x; x[3:0] = 1; hdr.ip.ttl = x;",
        "bit<32> r; hash(r, HashAlgorithm.lookup3, { hdr.ip.src }); hdr.ip.src = r;",
        "bit<8> x; switch (hdr.ip.ttl) { 1: { x = 1; } default: { x = 2; } } hdr.ip.ttl = x;",
        "ip_t h; hdr.ip = h; meta_t m; meta = m;",
    ] {
        accepts(&control("", apply));
    }
    let action = "action a(out bit<8> x, out bit<8> y) { y = x; }";
    assert!(
        said(&control(action, "a(hdr.ip.ttl, hdr.ip.proto);")).contains("`x` may have no value")
    );
}
