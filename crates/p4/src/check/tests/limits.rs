//! Exponential growth and excessive depth.

use super::*;

/// Exponential growth is rejected before it exhausts memory.
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
    let externs = doubled("extern E<A, B> { } typedef bit<8> t0;", &|level| {
        format!("typedef E<t{0}, t{0}> t{level};", level - 1)
    });
    refuses(&check(&format!("{PRELUDE}{externs}")), "more than 65536 fields");
    let controls = doubled("control c0(inout bit<8> x) { apply { } }", &|level| {
        let inner = level - 1;
        let apply = "apply { a.apply(x); b.apply(x); }";
        format!("control c{level}(inout bit<8> x) {{ c{inner}() a; c{inner}() b; {apply} }}")
    });
    let last = "control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
        apply { c39.apply(hdr.ip.ttl); } }";
    refuses(&check(&format!("{PRELUDE}{controls}{last}{REST}{MAIN}")), "more than 10000 instances");
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
    let externs = deep("extern E<T> { } typedef bit<8> t0;", &|level| {
        format!("typedef E<t{}> t{level};\n", level - 1)
    });
    refuses(&externs, "more than 64 types deep");
    let arguments = deep("struct s<T> { bit<8> a; } typedef bit<8> t0;", &|level| {
        format!("typedef s<t{}> t{level};\n", level - 1)
    });
    refuses(&arguments, "more than 64 types deep");
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
    refuses(&control("", &format!("for (bit<8> v in {{ {list} 0 }}) {{ }}")), "at most 256 values");
    refuses(
        &control("Register<bit<8>, bit<32>>(0xffffffff) r;", ""),
        "more than 16777216 elements",
    );
    let inner = "control inner(inout bit<8> v)(bit<8> d) { apply { v = v + d; } }
        control outer(inout bit<8> v)(bit<8> d) { inner(100 / d) i; apply { i.apply(v); } }
        control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
            outer(0) o; apply { o.apply(hdr.ip.ttl); } }";
    refuses(
        &check(&format!("{PRELUDE}{inner}{REST}{MAIN}")),
        "this is not a compile-time known value",
    );
    let twice = "@name(\".t\") table a { actions = { NoAction; } } @name(\".t\") table b { actions = { NoAction; } }";
    refuses(&control(twice, ""), "the control plane knows two tables as `t`");
}
