//! A program whose calls double at each level is refused before it takes much memory.

use p4_syntax::NoIncludes;
use testkit::allocations::{Counting, peak_of};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Number of levels.
const LEVELS: u32 = 40;
/// Upper limit on the memory, in bytes.
const MAX: i64 = 1 << 30;

/// A program with `LEVELS` actions or functions, each of which calls the one below twice.
fn program(below: &str, level: impl Fn(u32) -> String, call: &str) -> String {
    let all: String = (1..=LEVELS).map(level).collect();
    let (outside, inside) = match below.starts_with("action") {
        true => (String::new(), format!("{below}{all}")),
        false => (format!("{below}{all}"), String::new()),
    };
    format!(
        "#include <ubpf_model.p4>
        struct headers {{}}
        struct meta_t {{ bit<32> x; bit<32> y; }}
        {outside}
        parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {{
            state start {{ transition accept; }}
        }}
        control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {{
            {inside}
            apply {{ {call} }}
        }}
        control dprs(packet_out b, in headers hdr) {{ apply {{}} }}
        ubpf(prs(), c(), dprs()) main;"
    )
}

/// Types of types without fields also double at each level.
#[test]
fn types_without_fields_are_counted() {
    let structs = |at: u32| format!("struct s{at} {{ s{0} a; s{0} b; }}", at - 1);
    let tuples = |at: u32| format!("struct s{at} {{ tuple<s{0}, s{0}> a; }}", at - 1);
    let stacks =
        "header s39_t {} struct s40 { s39_t[256] a; s39_t[256] b; } struct s41 { s40 a; s40 b; }";
    let all = |level: &dyn Fn(u32) -> String| -> String {
        format!("struct s0 {{}} {}", (1..=LEVELS).map(level).collect::<String>())
    };
    let deep: String =
        (42..70).map(|at| format!("struct s{at} {{ s{0} a; s{0} b; }}", at - 1)).collect();
    for (name, types, top) in [
        ("structs", all(&structs), "s40"),
        ("tuples", all(&tuples), "s40"),
        ("stacks", format!("{stacks} {deep}"), "s69"),
    ] {
        let text = program("action a0() {}", |_| String::new(), "")
            .replace("struct headers {}", &format!("{types} struct headers {{}}"))
            .replace("bit<32> y;", &format!("{top} y;"));
        let (checked, peak) = peak_of(|| p4::check(name, &text, &NoIncludes));
        let said = checked.diagnostics.render(&checked.sources, false);
        assert!(said.contains("fields in all") || said.contains("types deep"), "{name}: {said}");
        assert!(peak < MAX, "{name}: {peak} bytes");
    }
}

/// Products of constants are folded, and add no value.
#[test]
fn wide_products_are_counted() {
    let lines = "r = r * 3; ".repeat(20);
    let wide = format!("bit<2048> f0() {{ bit<2048> r = 7; {lines} return r; }}");
    let calls = |at: u32| format!("bit<2048> f{at}() {{ return f{0}() + f{0}(); }}", at - 1);
    let top = format!("meta.x = (bit<32>)f{LEVELS}();");
    let text = program(&wide, calls, &top);
    let checked = p4::check("wide", &text, &NoIncludes);
    let said = checked.diagnostics.render(&checked.sources, false);
    assert!(!checked.diagnostics.has_errors(), "{said}");
    let Err(why) = p4_ebpf::compile(&checked.program, &checked.sources) else {
        panic!("it has code")
    };
    let said = why.render(&checked.sources, false);
    assert!(said.contains("too large when every call is written out"), "{said}");
}

#[test]
fn calls_that_add_no_value_are_counted() {
    let action = |at: u32| format!("action a{at}() {{ a{0}(); a{0}(); }}", at - 1);
    let value =
        |at: u32| format!("bit<32> f{at}(bit<32> v) {{ f{0}(v); return f{0}(v); }}", at - 1);
    let nothing = |at: u32| format!("void f{at}() {{ f{0}(); f{0}(); }}", at - 1);
    let top = |name: &str, arguments: &str| format!("{name}{LEVELS}({arguments});");
    for (name, text) in [
        ("empty actions", program("action a0() {}", action, &top("a", ""))),
        ("constants", program("action a0() { meta.x = 5; }", action, &top("a", ""))),
        ("values", program("bit<32> f0(bit<32> v) { return v; }", value, &top("f", "meta.x"))),
        ("functions", program("void f0() {}", nothing, &top("f", ""))),
    ] {
        let checked = p4::check(name, &text, &NoIncludes);
        let said = checked.diagnostics.render(&checked.sources, false);
        assert!(!checked.diagnostics.has_errors(), "{name}: {said}");
        let (done, peak) = peak_of(|| p4_ebpf::compile(&checked.program, &checked.sources));
        let Err(why) = done else { panic!("{name}: it has code") };
        let said = why.render(&checked.sources, false);
        assert!(said.contains("too large when every call is written out"), "{name}: {said}");
        println!("{name}: {} MiB", peak >> 20);
        assert!(peak < MAX, "{name}: {peak} bytes");
    }
}

/// Two parser states with many ways between them. Their joins have as many operands, which are joins
/// themselves.
#[test]
fn operands_of_wide_joins_are_limited() {
    let ways = |to: &str| -> String { (0..250).map(|n| format!("{n}: {to};")).collect() };
    let state = |name: &str, to: &str| {
        format!(
            "state {name} {{
                p.extract(hdr.v);
                transition select(hdr.v.a) {{ {} default: accept; }}
            }}",
            ways(to)
        )
    };
    let states = [state("s0", "s1"), state("s1", "s0")].concat();
    let text = program("action a0() {}", |_| String::new(), "")
        .replace("struct headers {}", "header v_t { bit<8> a; } struct headers { v_t v; }")
        .replace("state start { transition accept; }", "state start { transition s0; }")
        .replace("transition s0; }", &format!("transition s0; }} {states}"));
    let checked = p4::check("joins", &text, &NoIncludes);
    let said = checked.diagnostics.render(&checked.sources, false);
    assert!(!checked.diagnostics.has_errors(), "{said}");
    let compiled = p4_ebpf::compile(&checked.program, &checked.sources);
    if let Err(why) = compiled {
        panic!("{}", why.render(&checked.sources, false));
    }
}

/// Many wide values that are live across thousands of blocks.
#[test]
fn values_that_are_live_at_once_are_limited() {
    let values = 0..50;
    let fields: String = values.clone().map(|at| format!("bit<2048> f{at}; ")).collect();
    let sums: String = values.clone().map(|at| format!("h.a + {}, ", at + 1)).collect();
    let used = values.map(|at| format!("s.f{at}")).collect::<Vec<_>>().join(" ^ ");
    let functions: String = (1..=9)
        .map(|at| format!("bit<32> f{at}(in bit<32> x) {{ return f{0}(f{0}(x)); }}", at - 1))
        .collect();
    let call =
        format!("v_t h = hdr.v; s_t s = {{ {sums} f9(h.c) }}; hdr.v.a = {used}; hdr.v.c = s.g;");
    let first = "bit<32> f0(in bit<32> x) { if (x > 7) { return x * 3; } return x + 1; }";
    let text = program(&format!("{first}{functions}"), |_| String::new(), &call).replace(
        "struct headers {}",
        &format!(
            "header v_t {{ bit<2048> a; bit<32> c; }} struct s_t {{ {fields} bit<32> g; }}
            struct headers {{ v_t v; }}"
        ),
    );
    let text = text
        .replace("state start {", "state start { p.extract(hdr.v);")
        .replace("in headers hdr) { apply {} }", "in headers hdr) { apply { b.emit(hdr.v); } }");
    expect_refusal(&text, "more than 512 bytes for what it remembers at once");
}

/// An action that is not called, whose parameters have 420 million slots.
#[test]
fn slots_of_all_variables_are_limited() {
    let fields: String = (0..256).map(|at| format!("bit<2048> f{at}; ")).collect();
    let parameters: Vec<String> = (0..200).map(|at| format!("in h_t[256] p{at}")).collect();
    let text =
        program(&format!("action a0({}) {{}}", parameters.join(", ")), |_| String::new(), "")
            .replace(
                "struct headers {}",
                &format!("header h_t {{ {fields} }} struct headers {{}}"),
            );
    expect_refusal(&text, "have too many fields in all");
}

/// A state with many ways back to itself, in a loop over a stack.
#[test]
fn cases_of_loops_are_limited() {
    let ways: String = (1..250).map(|at| format!("{at}: b;")).collect();
    let text = program("action a0() {}", |_| String::new(), "")
        .replace(
            "struct headers {}",
            "header v_t { bit<8> a; } struct headers { v_t[250] v; v_t w; }",
        )
        .replace(
            "state start { transition accept; }",
            &format!(
                "state start {{ p.extract(hdr.v.next); transition b; }}
                state b {{
                    p.advance(8);
                    transition select(p.lookahead<bit<8>>()) {{ 0: start; {ways} default: accept; }}
                }}"
            ),
        );
    expect_refusal(&text, "8192 cases when its loops are written out");
}

/// Asserts that a program is valid, and refused by the compiler for a reason.
fn expect_refusal(text: &str, reason: &str) {
    let checked = p4::check("limits", text, &NoIncludes);
    let said = checked.diagnostics.render(&checked.sources, false);
    assert!(!checked.diagnostics.has_errors(), "{said}");
    let Err(why) = p4_ebpf::compile(&checked.program, &checked.sources) else {
        panic!("it has code")
    };
    let why = why.render(&checked.sources, false);
    assert!(why.contains(reason), "{why}");
}
