use super::{MAIN, PRELUDE, REST, check, refuses};

/// Names of other models, and what is nearly right.
#[test]
fn what_may_be_meant_is_told() {
    for (locals, apply, why) in [
        ("", "bit<32> u; if (vm_info(\"net.utilisation\", u)) { }", "`#include <vm.p4>` at the"),
        ("", "drop();", "`mark_to_drop();` drops a packet"),
        ("", "mark_to_pas();", "`mark_to_pass` is"),
        ("", "mark_to_drop(std);", "expected none, not 1"),
        ("", "clone3(1);", "`clone = true` and `clone_port`"),
        ("", "log_msg(\"x\");", "a program prints nothing"),
        ("", "bool x = True;", "write `true`"),
        ("", "hdr.ip.ttl = null;", "numbers begin with 0"),
        ("", "uint8_t x = 1;", "write `bit<8>`"),
        ("", "int x = 1;", "say how many bits it has"),
        ("", "bit[8] x = 1;", "`bit<8>` has eight bits"),
        ("", "if (hdr.ip.ttl) { }", "compare it: `… != 0`"),
        ("", "meta.ok = !hdr.ip.ttl;", "`… == 0` compares"),
        ("", "if (hdr.ip.isValid) { }", "write `isValid()`"),
        ("", "headers.ip.ttl = 1;", "is a type, and has no values"),
        ("", "p.extract(hdr.eth);", "hand it over as a parameter"),
        (
            "action a() { t.apply(); } table t { actions = { a; } }",
            "",
            "known from its declaration on",
        ),
        ("counter(64, CounterType.packets) x;", "", "`Counter` of `#include <kaido.p4>`"),
        (
            "table t { actions = { NoAction; } default_actoin = NoAction(); }",
            "",
            "it has `default_action`",
        ),
    ] {
        // The model's own `Counter` is nearly `counter`.
        let (prelude, extra) = (PRELUDE.replace("kaido.p4", "ubpf_model.p4"), locals);
        let header = "inout headers hdr, inout meta_t meta, inout standard_metadata std";
        let control = format!("control c({header}) {{ {extra} apply {{ {apply} }} }}");
        refuses(&check(&format!("{prelude}{REST}{control}{MAIN}")), why);
    }
    let without = PRELUDE.replace("#include <kaido.p4>", "");
    for why in [
        "`packet_in` is not declared",
        "`ubpf` is not declared",
        "`#include <ubpf_model.p4>` at the beginning declares it",
    ] {
        refuses(&check(&format!("{without}{REST}{MAIN}")), why);
    }
    for (from, to, why) in [
        ("p.extract(hdr.eth)", "p.extract(hdr.eth, 1, 2)", "write `extract(header)`"),
        ("p.extract(hdr.eth)", "p.lookahead(1)", "write `lookahead<TYPE>()`"),
        ("b.emit(hdr.eth)", "b.emit(hdr.eth, hdr.ip)", "write `emit(header)`"),
        ("b.emit(hdr.eth)", "b.emt(hdr.eth)", "it has `emit`"),
    ] {
        refuses(&check(&format!("{PRELUDE}{}{MAIN}", REST.replace(from, to))), why);
    }
    let twice =
        "bit<8> f(in bit<8> a) { return a; } bit<8> f(in bit<8> a, in bit<8> b) { return a; }";
    let used = "const bit<8> X = f(1, 2, 3);";
    refuses(&check(&format!("{PRELUDE}{twice}{used}")), "it takes in `a`; or in `a`, in `b`");
}
