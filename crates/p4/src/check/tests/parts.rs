//! Declarations and the parts of programs.

use super::*;
use crate::ir::{BlockBody, Program};

#[test]
fn declarations_are_looked_at() {
    for (text, why) in [
        ("header h { int x; }", "cannot be the type of a header's field"),
        ("header h { bit<8> x; bit<8> x; }", "duplicate field `x`"),
        ("header_union u { meta_t m; }", "a union is made of headers"),
        ("struct s { s inner; }", "no recursion"),
        ("enum E { A = 1 }", "not represented"),
        ("enum bit<2> E { A = 4 }", "4 does not fit `bit<2>`"),
        ("enum bit<2> E { A }", "has no value"),
        ("enum E { A, A }", "duplicate member `A`"),
        ("error { NoError }", "declared twice"),
        ("bit<8> x = 1;", "a variable belongs"),
        ("type headers t;", "a new type cannot be based on"),
        ("typedef bit<8> octet; typedef octet octet;", "declared twice"),
        ("bit<8> f(in bit<8> x) { if (x == 1) { return 1; } }", "not every way"),
        ("bit<8> f(in bit<8> x) { return f(x); }", "no recursion"),
        ("T f<T>(in T x) { return x; }", "does not support"),
        ("meta_t[4] f() { return 1; }", "only headers can be stacked"),
        ("bit<8> f(in int x) { return 1; }", "a parameter cannot be of type `int`"),
        ("int f() { return 1; }", "a function cannot return `int`"),
        ("const bit<8> x = 300;", "300 does not fit `bit<8>`"),
        ("struct g<T> { T x; } const g x = 1;", "generic over 1 types"),
        ("control x<T>(in T y) { apply { } }", "does not support"),
    ] {
        let checked = check(&format!("{PRELUDE}{text}"));
        let said = said(&checked);
        assert!(said.contains(why), "{text}\nwanted: {why}\n{said}");
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
    // Either all arguments are named, or none.
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
    refuses(&with("ubpf(prs(), dprs(), c()) main;", good), "`dprs` does not match `pipeline`");
    refuses(&with("ubpf(c(), c(), dprs()) main;", good), "`c` is not a parser");
    refuses(&with("ubpf(prs(), c, dprs()) main;", good), "`c()` makes one");
    let other = with("V1Switch(prs(), c(), dprs()) main;", good);
    refuses(&other, "`V1Switch` is not declared");
    refuses(&other, "this model's package is `ubpf(parse(), pipeline(), deparser()) main;`");
    refuses(&with("ubpf(prs(), c(), dprs()) Main;", good), "expected `main`");
    let own = "control part(inout headers h); package own(part p);";
    let good = format!("{good} control o(inout headers h) {{ apply {{ }} }}");
    refuses(&with(&format!("{own} own(o()) main;"), &good), "`own` is not a package of this model");
    let other = "struct more { } control c(inout headers hdr, inout more meta, inout standard_metadata std) { apply { } }";
    refuses(&with(MAIN, other), "this is inout `more`, not inout `meta_t`");
    let wrong_way =
        "control c(in headers hdr, inout meta_t meta, inout standard_metadata std) { apply { } }";
    refuses(&with(MAIN, wrong_way), "this is in `headers`, not inout `headers`");
}

/// A type is resolved in the scope of its declaration.
#[test]
fn generic_types_see_their_own_names() {
    let text = "const int N = 8; struct g<T> { bit<N> a; T b; }
        control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
            const int N = 16; g<bit<8>> v = { 1, 2 };
            apply { hdr.ip.ttl = v.a; }
        }";
    accepts(&check(&format!("{PRELUDE}{text}{REST}{MAIN}")));
}
