//! Programs whose calls and joins would need more stack than the compiler's thread has.

use std::thread;

use p4::Checked;
use p4::interpret::Machine;
use p4_syntax::NoIncludes;

/// Stack of the thread that compiles in `kaido`, in bytes.
const LARGE: usize = 16 << 20;
/// A small part of it.
const SMALL: usize = 1 << 20;

/// A program with functions, and a control with actions and a body.
fn program(functions: &str, actions: &str, apply: &str) -> String {
    format!(
        "#include <ubpf_model.p4>
        header v_t {{ bit<8> a; bit<8> b; bit<8> c; }}
        struct headers {{ v_t v; }}
        struct meta_t {{ bit<8> x; }}
        {functions}
        parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {{
            state start {{ p.extract(hdr.v); transition accept; }}
        }}
        control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {{
            Register<bit<8>, bit<32>>(1) r;
            {actions}
            apply {{ {apply} }}
        }}
        control dprs(packet_out b, in headers hdr) {{ apply {{}} }}
        ubpf(prs(), c(), dprs()) main;"
    )
}

/// Checks a program, and runs a part with it on a stack of a size.
fn on_stack<T: Send + 'static>(
    size: usize,
    text: String,
    part: impl FnOnce(Checked) -> T + Send + 'static,
) -> T {
    let check = move || {
        let checked = p4::check("stack", &text, &NoIncludes);
        let said = checked.diagnostics.render(&checked.sources, false);
        assert!(!checked.diagnostics.has_errors(), "{said}");
        part(checked)
    };
    let thread = thread::Builder::new().stack_size(size).spawn(check);
    thread.expect("a thread").join().expect("the part ends")
}

/// Compiles a program. Returns the reason of a refusal.
fn compiled(stack: usize, text: String) -> Result<(), String> {
    on_stack(stack, text, |checked| {
        let compiled = p4_ebpf::compile(&checked.program, &checked.sources);
        compiled.map(drop).map_err(|why| why.render(&checked.sources, false))
    })
}

/// Interprets a program with a packet. Returns the reason of a refusal.
fn interpreted(stack: usize, text: String) -> Result<(), String> {
    on_stack(stack, text, |checked| {
        let mut machine = Machine::new(&checked.program).expect("a program of the model");
        machine.run(1, &[7, 8, 9]).map(drop).map_err(|why| why.to_string())
    })
}

/// The edge of the second `if` is threaded, and `k` is used below thousands of joins.
#[test]
fn joins_below_a_threaded_edge_take_no_stack() {
    let action = |at: u32| format!("action a{at}() {{ a{0}(); a{0}(); a{0}(); }}", at - 1);
    let actions: String = (1..=7).map(action).collect();
    let apply = "
        bit<8> k = hdr.v.b;
        if (hdr.v.a == 1) { k = 1; }
        if (k == 1) { meta.x = 2; }
        a7();
        r.write(0, k);
        mark_to_drop();";
    let first = "action a0() { if (hdr.v.c == 1) { } }";
    let done = compiled(SMALL, program("", &format!("{first}{actions}"), apply));
    assert_eq!(done, Ok(()));
}

/// 500 operators within each other, 25 calls deep: as the first operand, as an argument and as a condition.
fn towers() -> [String; 4] {
    let tower = |first: &str, level: &dyn Fn(u32) -> String, top: &str| {
        let functions: String = (1..=25).map(level).collect();
        program(&format!("{first}{functions}"), "", top)
    };
    let id = "bit<8> f0(in bit<8> x) { return x; }";
    let is = "bool f0(in bit<8> x) { return x == 3; }";
    let sum = "+ x".repeat(490);
    let or = "|| x == 1".repeat(240);
    let not = "!".repeat(80);
    [
        tower(
            id,
            &|at| format!("bit<8> f{at}(in bit<8> x) {{ return f{}(x) {sum}; }}", at - 1),
            "meta.x = f25(meta.x);",
        ),
        tower(
            is,
            &|at| format!("bool f{at}(in bit<8> x) {{ return f{}(x) {or}; }}", at - 1),
            "if (f25(meta.x)) { meta.x = 1; }",
        ),
        tower(
            is,
            &|at| format!("bool f{at}(in bit<8> x) {{ return {not}f{}(x); }}", at - 1),
            "if (f25(meta.x)) { meta.x = 1; }",
        ),
        tower(
            id,
            &|at| {
                let choice = "x == 1 ? x : ".repeat(60);
                format!("bit<8> f{at}(in bit<8> x) {{ return {choice} f{}(x); }}", at - 1)
            },
            "meta.x = f25(meta.x);",
        ),
    ]
}

#[test]
fn calls_within_high_expressions_are_limited() {
    for text in towers() {
        let said = interpreted(LARGE, text.clone()).expect_err("it is too deep");
        assert!(said.contains("operators are within each other"), "{said}");
        let said = compiled(LARGE, text).expect_err("it is too deep");
        assert!(said.contains("operators are within each other"), "{said}");
        assert!(said.contains("stack:"), "{said}");
    }
}

/// Calls as deep as the checker permits, with a few operators each, and an expression as high as the
/// parser permits.
#[test]
fn deep_calls_and_high_expressions_have_code() {
    let level = |at: u32| {
        format!(
            "bit<8> f{at}(in bit<8> x) {{ if (x > 3) {{ return f{}(x + 1) - x; }} return x; }}",
            at - 1
        )
    };
    let functions: String = (1..=60).map(level).collect();
    let first = "bit<8> f0(in bit<8> x) { return x; }";
    let sum = "+ hdr.v.b".repeat(490);
    let apply =
        format!("meta.x = f60(hdr.v.a) + hdr.v.a; hdr.v.c = hdr.v.a {sum}; r.write(0, meta.x);");
    let text = program(&format!("{first}{functions}"), "", &apply);
    assert_eq!(interpreted(LARGE, text.clone()), Ok(()));
    assert_eq!(compiled(LARGE, text), Ok(()));
}
