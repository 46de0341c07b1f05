//! Programs with many labels, cases and calls compile to code of moderate size.

use super::*;

/// A program with these states, declarations and statements.
fn program(states: &str, declarations: &str, apply: &str) -> String {
    format!(
        "#include <ubpf_model.p4>
        header h_t {{ bit<32> a; bit<32> b; }}
        struct headers {{ h_t h; }}
        struct meta_t {{ bit<32> m; }}
        parser prs(packet_in p, out headers hdr, inout meta_t m, inout standard_metadata std) {{
            {states}
        }}
        control c(inout headers hdr, inout meta_t m, inout standard_metadata std) {{
            {declarations}
            apply {{ {apply} }}
        }}
        control dprs(packet_out b, in headers hdr) {{ apply {{ b.emit(hdr.h); }} }}
        ubpf(prs(), c(), dprs()) main;"
    )
}

const START: &str = "state start { p.extract(hdr.h); transition accept; }";

/// A `switch` with `count` labels.
fn labels(count: usize) -> String {
    let case = |at| format!("{}: {{ hdr.h.b = {at}; }}", at * 7);
    let cases: String = (0..count).map(case).collect();
    program(START, "", &format!("switch (hdr.h.a) {{ {cases} }}"))
}

/// A `select` with `count` cases.
fn cases(count: usize) -> String {
    let case = |at| format!("{}: s{};", at * 7, at % 2);
    let cases: String = (0..count).map(case).collect();
    let states = format!(
        "state start {{ p.extract(hdr.h); transition select(hdr.h.a) {{ {cases} }} }}
        state s0 {{ m.m = 1; transition accept; }}
        state s1 {{ m.m = 2; transition accept; }}"
    );
    program(&states, "", "hdr.h.b = m.m;")
}

/// Actions at `levels` levels, each of which calls the one below twice; the lowest may `exit`.
fn calls(levels: usize) -> String {
    let action = |at| {
        let below = at - 1;
        format!("action a{at}() {{ a{below}(); hdr.h.b = hdr.h.b * 3; a{below}(); }}")
    };
    let last = "action a0() { if (hdr.h.a == 1) { exit; } hdr.h.b = hdr.h.b + 1; }";
    let actions: String = (1..=levels).map(action).collect();
    program(START, &format!("{last} {actions}"), &format!("a{levels}();"))
}

#[test]
fn long_programs_are_compiled() {
    for (name, text, least) in [
        ("4,000 labels", labels(4000), 8000),
        ("2,000 cases", cases(2000), 2000),
        ("2,048 calls", calls(11), 8000),
    ] {
        let checked = p4::check(name, &text, &Nothing);
        let said = checked.diagnostics.render(&checked.sources, false);
        assert!(!checked.diagnostics.has_errors(), "{said}");
        let compiled = compile(&checked.program, &checked.sources).expect(name);
        let count = compiled.object.code.len();
        assert!(count > least && count < 2 * least, "{name}: {count}");
    }
}

#[test]
fn wide_programs_are_refused() {
    let fields: String = (0..1000).map(|at| format!("bit<32> f{at};")).collect();
    let ends = |at| format!("if (hdr.h.a == {at}) {{ hdr.h.f{at} = 1; exit; }}");
    let ends: String = (0..1000).map(ends).collect();
    let text = program(START, "", &ends).replace("bit<32> b;", &fields);
    let checked = p4::check("wide", &text, &Nothing);
    let Err(why) = compile(&checked.program, &checked.sources) else { panic!("it has code") };
    let said = why.render(&checked.sources, false);
    assert!(said.contains("too many paths join here"), "{said}");
}
