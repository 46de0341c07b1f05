//! What programs mean, and what is said of those that mean nothing.

mod cells;
mod meant;

use crate::Checked;
use crate::interpret::{Error, Machine};
use crate::ir::{BlockBody, Program, Value};
use crate::test_programs::Nothing;

/// What every program here begins with.
const PRELUDE: &str = "
#include <kaido.p4>
header eth_t { bit<48> dst; bit<48> src; bit<16> type; }
header ip_t { bit<8> ttl; bit<8> proto; bit<32> src; bit<32> dst; }
header opt_t { bit<8> len; varbit<320> data; }
header_union l3_t { ip_t ip; opt_t opt; }
struct headers { eth_t eth; ip_t ip; eth_t[3] tags; l3_t l3; opt_t opt; }
struct meta_t { bit<16> port; bool ok; int<8> s; }
enum bit<16> Ether { IPV4 = 0x800, IPV6 = 0x86dd }
enum Colour { Red, Green }
";

/// What every program here ends with.
const REST: &str = "
parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.eth); transition accept; }
}
control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr.eth); } }
";

const MAIN: &str = "ubpf(prs(), c(), dprs()) main;";

fn check(text: &str) -> Checked {
    crate::check("test.p4", text, &Nothing)
}

fn said(checked: &Checked) -> String {
    checked.diagnostics.render(&checked.sources, false)
}

/// A control of these locals and statements, in a whole program.
fn control(locals: &str, apply: &str) -> Checked {
    check(&format!(
        "{PRELUDE}
control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {{
    {locals}
    apply {{ {apply} }}
}}
{REST}{MAIN}"
    ))
}

/// A parser of these states, in a whole program.
fn parser(locals: &str, states: &str) -> Checked {
    check(&format!(
        "{PRELUDE}
parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {{
    {locals}
    {states}
}}
control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {{ apply {{ }} }}
control dprs(packet_out b, in headers hdr) {{ apply {{ b.emit(hdr); }} }}
{MAIN}"
    ))
}

#[track_caller]
fn accepts(checked: &Checked) {
    assert_eq!(said(checked), "");
    assert!(checked.program.main.is_some());
}

#[track_caller]
fn refuses(checked: &Checked, why: &str) {
    let said = said(checked);
    assert!(checked.diagnostics.has_errors() && said.contains(why), "wanted: {why}\n{said}");
}

#[test]
fn statements_are_accepted() {
    for text in [
        "hdr.eth.dst = 1; meta.port = hdr.eth.type + 1; meta.s = -1; meta.s = (int<8>)hdr.ip.ttl;",
        "bit<8> x; x = hdr.eth.dst[7:0]; hdr.eth.dst[15:8] = x; x = x |+| 3; x = x ++ 4w0 == 0 ? 8w1 : 2;",
        "if (hdr.eth.type == Ether.IPV4) { exit; } else if (!hdr.ip.isValid()) return;",
        "hdr.ip.setValid(); hdr.ip = { 1, 2, 3, 4 }; hdr.ip = { 1, ... }; hdr.ip = { ttl = 1, ... }; hdr.ip = {#};",
        "hdr.tags.push_front(1); hdr.tags.pop_front(2); hdr.tags[1] = hdr.eth; hdr.tags[meta.port].src = 1;",
        "meta_t copy = meta; copy = { 1, true, 2 }; meta = copy; if (copy == meta) { }",
        "Colour k = Colour.Red; if (k != Colour.Green) { k = Colour.Green; }",
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
fn what_is_wrong_is_told() {
    for (locals, apply, why) in [
        ("", "hdr.eth.dst = hdr.ip.src;", "this is `bit<32>`, not `bit<48>`"),
        ("", "hdr.eth.dts = 1;", "it has `dst`"),
        ("", "nothing = 1;", "`nothing` is not declared"),
        ("bit<8> value;", "valeu = 1;", "`value` is"),
        ("", "meta.port = 70000;", "70000 is no `bit<16>`"),
        ("", "if (hdr.ip.ttl) { }", "this is `bit<8>`, not `bool`"),
        ("", "hdr.ip.ttl = hdr.ip.ttl + hdr.ip.src;", "not `bit<8>`"),
        ("", "hdr.ip.ttl[8:0] = 1;", "there are no such bits"),
        ("", "hdr.tags[3] = hdr.eth;", "the stack has no such element"),
        ("", "hdr.tags.next = hdr.eth;", "belongs in a parser's states"),
        ("", "1 = hdr.ip.ttl;", "this is no variable"),
        ("", "break;", "belongs in a loop"),
        ("", "const bit<8> a = hdr.ip.ttl;", "known when the program is compiled"),
        ("", "bit<8> a = 1 / 0;", "divides by zero"),
        ("", "int a = 1;", "a variable is no `int`"),
        ("", "tuple<int> a;", "a variable is no"),
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
        ("", "hdr.ip.ttl = Colour.Red;", "this is `Colour`"),
        ("", "meta.ok = Colour.Blue == Colour.Red;", "has no `Blue`"),
        ("", "meta.ok = error.Odd == error.NoError;", "`error` has no `Odd`"),
        ("", "static_assert(1 > 2, \"so it is\");", "this does not hold: so it is"),
        ("", "switch (hdr.ip.ttl) { 1: { } 1: { } }", "there twice"),
        ("", "switch (hdr.ip.ttl) { default: { } 1: { } }", "the last case"),
        ("", "hdr.ip.ttl = (bit<8>)hdr.eth;", "cannot be cast"),
        ("", "hdr.ip.ttl = (bit<8>)meta.s; int<4> x = (int<4>)hdr.ip.ttl;", "in two casts"),
        ("", "return 1;", "nothing is returned from here"),
        ("", "bit<8> v = hdr.ip.ttl << meta.s;", "a shift by a signed number"),
        ("action a(bit<8> x) { x = 1; }", "", "cannot be changed"),
        ("action a(bit<8> x, in bit<8> y) { }", "", "stands too late"),
        ("action a() { a(); }", "", "no recursion"),
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
            "no action of the table",
        ),
        (
            "table t { key = { hdr.ip.src: exact; } actions = { NoAction; } const entries = { _: NoAction(); } }",
            "",
            "does not fit the key",
        ),
        (
            "table t { key = { hdr.ip.src: lpm; } actions = { NoAction; } const entries = { 1 &&& 5: NoAction(); } }",
            "",
            "no prefix",
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
        ("Register<bit<8>, bit<32>>(4) r;", "r.raed(1);", "it has `read`"),
        ("Register<bit<8>>(4) r;", "", "generic over 2 types"),
        ("headers(3) h;", "", "has no constructor"),
        ("c() again;", "", "no recursion"),
        ("", "tuple<bit<8>, bool> t = { 1, true }; t[0] = 2;", "only changed as a whole"),
        ("", "bool b = (bool)2;", "2 is no `bool`"),
        (
            "table t {
                key = { hdr.ip.ttl: ternary; }
                actions = { NoAction; }
                const entries = { priority = 1: 1: NoAction(); }
            }",
            "",
            "constant entries have no priorities",
        ),
        ("table t { actions = { NoAction; } size = 1; size = 2; }", "", "`size` is there twice"),
        ("table t { actions = { NoAction; NoAction; } }", "", "`NoAction` is there twice"),
        ("table t { actions = { NoAction; } entries = { 1: NoAction(); } }", "", "without a key"),
        (
            "action a(inout bit<8> x, bit<8> y) { x = y; }
            table t { actions = { a(hdr.ip.ttl); } default_action = a(hdr.ip.proto, 1); }",
            "",
            "binds something else",
        ),
        ("", "bit<8> b = ...; b = b + ...;", "which type's default"),
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
            "priority is no number",
        ),
    ] {
        let checked = control(locals, apply);
        let said = said(&checked);
        assert!(said.contains(why), "{locals} {apply}\nwanted: {why}\n{said}");
        assert!(said.contains("test.p4:"), "{said}");
    }
}

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
    assert!(said(&checked).contains("no way leads to the state `lonely`"), "{}", said(&checked));
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
        ("state start { transition select(hdr) { _: accept; } }", "nothing to select by"),
        ("state start { exit; transition accept; }", "belongs in a control"),
        (
            "state start { p.extract(hdr.tags.last); transition accept; }",
            "`last` of a stack is only read",
        ),
        ("state start { bit<8> x = p.lookahead(); transition accept; }", "what to look for"),
    ] {
        refuses(&parser("", states), why);
    }
}

#[test]
fn parts_are_made_of_parts() {
    let text = "
        struct pair<T> { T a; T b; }
        bit<8> twice(in bit<8> x) { return x + x; }
        bit<8> twice(in bit<8> x, in bit<8> y) { if (x == y) { return x; } else { return y; } }
        parser inner(packet_in p, out eth_t eth)(bit<16> wanted) {
            state start { p.extract(eth); verify(eth.type == wanted, error.NoMatch); transition accept; }
        }
        parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
            inner(16w3) sub;
            state start { sub.apply(p, hdr.eth); transition accept; }
        }
        control part(inout bit<8> v)(bit<8> by) { apply { v = v + by; } }
        control plain(inout bit<8> v) { apply { v = twice(v); return; } }
        control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
            part(1) one; part(by = 2) two; pair<bit<8>> p;
            apply {
                one.apply(hdr.ip.ttl); two.apply(v = hdr.ip.ttl); plain.apply(hdr.ip.ttl);
                p = { 1, twice(2, y = 3) }; hdr.ip.ttl = p.a;
            }
        }
        control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); b.emit(hdr.tags[0]); } }";
    // Names are for all arguments or for none.
    refuses(&check(&format!("{PRELUDE}{text}{MAIN}")), "either all arguments have names");
    let checked = check(&format!("{PRELUDE}{text}{MAIN}").replace("y = 3", "3"));
    accepts(&checked);
    let Program { blocks, instances, functions, .. } = &checked.program;
    let named = |name: &str| blocks.iter().find(|block| &*block.declared.name == name).unwrap();
    assert_eq!(named("c").instances.len(), 3);
    assert_eq!(named("part").constructor.len(), 1);
    assert_eq!((functions.len(), instances.len()), (2, 7));
    assert!(matches!(named("inner").body, BlockBody::Parser { .. }));
}

#[test]
fn programs_are_made_for_their_model() {
    let with = |main: &str, control: &str| check(&format!("{PRELUDE}{control}{REST}{main}"));
    let good = "control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) { apply { } }";
    accepts(&with(MAIN, good));
    refuses(&with("", good), "the program has no `main`");
    refuses(&with("ubpf(prs(), c()) main;", good), "`ubpf` takes 3 parts");
    refuses(&with("ubpf(prs(), dprs(), c()) main;", good), "`dprs` is no `pipeline`");
    refuses(&with("ubpf(c(), c(), dprs()) main;", good), "`c` is not a parser");
    refuses(&with("ubpf(prs(), c, dprs()) main;", good), "`c()` makes one");
    let other = with("V1Switch(prs(), c(), dprs()) main;", good);
    refuses(&other, "`V1Switch` is not declared");
    refuses(&other, "this model's package is `ubpf(parse(), pipeline(), deparser()) main;`");
    refuses(&with("ubpf(prs(), c(), dprs()) Main;", good), "expected `main`");
    let own = "control part(inout headers h); package own(part p);";
    let good = format!("{good} control o(inout headers h) {{ apply {{ }} }}");
    refuses(&with(&format!("{own} own(o()) main;"), &good), "`own` is no package of this model");
    let other = "struct more { } control c(inout headers hdr, inout more meta, inout standard_metadata std) { apply { } }";
    refuses(&with(MAIN, other), "this is inout `more`, not inout `meta_t`");
    let wrong_way =
        "control c(in headers hdr, inout meta_t meta, inout standard_metadata std) { apply { } }";
    refuses(&with(MAIN, wrong_way), "this is in `headers`, not inout `headers`");
}

/// A type means what it means where it is declared.
#[test]
fn generic_types_see_their_own_names() {
    let text = "const int N = 8; struct g<T> { bit<N> a; T b; }
        control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
            const int N = 16; g<bit<8>> v = { 1, 2 };
            apply { hdr.ip.ttl = v.a; }
        }";
    accepts(&check(&format!("{PRELUDE}{text}{REST}{MAIN}")));
}

/// What doubles at each level is refused before it fills the memory.
#[test]
fn programs_have_an_end() {
    let doubled = |first: &str, next: &dyn Fn(usize) -> String| {
        (1..40).fold(first.to_owned(), |text, level| text + &next(level))
    };
    let structs = doubled("struct s0 { bit<8> a; }", &|level| {
        format!("struct s{level} {{ s{0} a; s{0} b; }}", level - 1)
    });
    refuses(&check(&format!("{PRELUDE}{structs}")), "more than 65536 fields");
    let tuples = doubled("typedef bit<8> t0;", &|level| {
        format!("typedef tuple<t{0}, t{0}> t{level};", level - 1)
    });
    refuses(&check(&format!("{PRELUDE}{tuples}")), "more than 65536 fields");
    let controls = doubled("control c0(inout bit<8> x) { apply { } }", &|level| {
        let inner = level - 1;
        let apply = "apply { a.apply(x); b.apply(x); }";
        format!("control c{level}(inout bit<8> x) {{ c{inner}() a; c{inner}() b; {apply} }}")
    });
    let last = "control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
        apply { c39.apply(hdr.ip.ttl); } }";
    refuses(&check(&format!("{PRELUDE}{controls}{last}{REST}{MAIN}")), "more than 10000 parts");
    let deep = |first: &str, next: &dyn Fn(usize) -> String| {
        check(&format!(
            "{PRELUDE}{}",
            (1..200).fold(first.to_owned(), |text, level| text + &next(level))
        ))
    };
    let structs = deep("struct s0 { bit<8> a; }", &|level| {
        format!("struct s{level} {{ s{} a; }}\n", level - 1)
    });
    refuses(&structs, "more than 64 types deep");
    let tuples =
        deep("typedef bit<8> t0;", &|level| format!("typedef tuple<t{}> t{level};\n", level - 1));
    refuses(&tuples, "more than 64 types deep");
    let functions = deep("bit<8> f0(in bit<8> x) { return x; }", &|level| {
        format!("bit<8> f{level}(in bit<8> x) {{ return f{}(x); }}\n", level - 1)
    });
    refuses(&functions, "calls go more than 64 deep");
    let controls = deep("control c0(inout bit<8> x) { apply { } }", &|level| {
        format!("control c{level}(inout bit<8> x) {{ apply {{ c{}.apply(x); }} }}\n", level - 1)
    });
    refuses(&controls, "calls go more than 64 deep");
    refuses(
        &check(&format!("{PRELUDE}struct g<T> {{ g<T> x; }} typedef g<bit<8>> t;")),
        "no recursion",
    );
    let list = "0, ".repeat(300);
    refuses(&control("", &format!("for (bit<8> v in {{ {list} 0 }}) {{ }}")), "256 values at most");
    refuses(
        &control("Register<bit<8>, bit<32>>(0xffffffff) r;", ""),
        "more than 16777216 elements",
    );
    let inner = "control inner(inout bit<8> v)(bit<8> d) { apply { v = v + d; } }
        control outer(inout bit<8> v)(bit<8> d) { inner(100 / d) i; apply { i.apply(v); } }
        control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
            outer(0) o; apply { o.apply(hdr.ip.ttl); } }";
    refuses(&check(&format!("{PRELUDE}{inner}{REST}{MAIN}")), "this has no value when");
    let twice = "@name(\".t\") table a { actions = { NoAction; } } @name(\".t\") table b { actions = { NoAction; } }";
    refuses(&control(twice, ""), "the control plane knows two tables as `t`");
}

#[test]
fn declarations_are_looked_at() {
    for (text, why) in [
        ("header h { int x; }", "no field of a header"),
        ("header h { bit<8> x; bit<8> x; }", "there twice"),
        ("header_union u { meta_t m; }", "a union is made of headers"),
        ("struct s { s inner; }", "no recursion"),
        ("enum E { A = 1 }", "not represented"),
        ("enum bit<2> E { A = 4 }", "4 is no `bit<2>`"),
        ("enum bit<2> E { A }", "has no value"),
        ("enum E { A, A }", "there twice"),
        ("error { NoError }", "declared twice"),
        ("bit<8> x = 1;", "a variable belongs"),
        ("type headers t;", "no type of its own"),
        ("typedef bit<8> octet; typedef octet octet;", "declared twice"),
        ("bit<8> f(in bit<8> x) { if (x == 1) { return 1; } }", "not every way"),
        ("bit<8> f(in bit<8> x) { return f(x); }", "no recursion"),
        ("T f<T>(in T x) { return x; }", "does not support"),
        ("meta_t[4] f() { return 1; }", "only headers can be stacked"),
        ("bit<8> f(in int x) { return 1; }", "a parameter is no `int`"),
        ("int f() { return 1; }", "a function returns no `int`"),
        ("const bit<8> x = 300;", "300 is no `bit<8>`"),
        ("struct g<T> { T x; } const g x = 1;", "generic over 1 types"),
        ("control x<T>(in T y) { apply { } }", "does not support"),
    ] {
        let checked = check(&format!("{PRELUDE}{text}"));
        let said = said(&checked);
        assert!(said.contains(why), "{text}\nwanted: {why}\n{said}");
    }
}

#[test]
fn variables_without_a_value_are_told() {
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

/// A program of everything, and what becomes of it when its words are changed.
mod any_program {
    use proptest::prelude::*;

    use super::*;

    const WHOLE: &str = include_str!("../../tests/programs/whole.p4");

    #[test]
    fn is_accepted_as_it_is() {
        accepts(&check(WHOLE));
    }

    /// The words of the program, some of them in the place of others.
    fn changed() -> impl Strategy<Value = String> {
        let words: Vec<&str> = WHOLE.split_inclusive([' ', '.', '(', '<', ';', ',']).collect();
        let change = (0..words.len(), 0..words.len());
        prop::collection::vec(change, 1..6).prop_map(move |changes| {
            let mut words = words.clone();
            for (at, from) in changes {
                words[at] = words[from];
            }
            words.concat()
        })
    }

    proptest! {
        #[test]
        fn is_understood_or_refused(text in changed()) {
            let checked = check(&text);
            prop_assert!(checked.diagnostics.has_errors() || checked.program.main.is_some());
            if !checked.diagnostics.has_errors() {
                let mut machine = Machine::new(&checked.program).unwrap();
                let packet: Vec<u8> = (0..64).collect();
                let outcome = machine.run(1, &packet);
                prop_assert!(matches!(outcome, Ok(_) | Err(Error::Steps(_))), "{:?}", outcome);
            }
            said(&checked);
        }
    }
}
