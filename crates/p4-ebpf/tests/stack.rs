//! Programs whose calls and joins would need more stack than the compiler's thread has.

use std::thread;

use p4_syntax::NoIncludes;

/// Stack of the thread that compiles, in bytes; that of `kaido` has eight times as much.
const STACK: usize = 1 << 20;

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

/// Compiles a program on a small stack. Returns the reason of a refusal.
fn compiled(text: String) -> Result<(), String> {
    let compile = move || {
        let checked = p4::check("stack", &text, &NoIncludes);
        let said = checked.diagnostics.render(&checked.sources, false);
        assert!(!checked.diagnostics.has_errors(), "{said}");
        let compiled = p4_ebpf::compile(&checked.program, &checked.sources);
        compiled.map(drop).map_err(|why| why.render(&checked.sources, false))
    };
    let thread = thread::Builder::new().stack_size(STACK).spawn(compile);
    thread.expect("a thread").join().expect("the compiler ends")
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
    let done = compiled(program("", &format!("{first}{actions}"), apply));
    assert_eq!(done, Ok(()));
}
