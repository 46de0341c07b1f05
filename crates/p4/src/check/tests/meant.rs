use p4_syntax::NoIncludes;

use super::{MAIN, PRELUDE, REST, check, refuses, said};

/// Names of other models, and misspelled names.
#[test]
fn misspelled_names_get_a_hint() {
    for (locals, apply, why) in [
        ("", "bit<32> u; if (vm_info(\"net.utilisation\", u)) { }", "`#include <vm.p4>` at the"),
        ("", "drop();", "`mark_to_drop();` drops a packet"),
        ("", "mark_to_pas();", "`mark_to_pass` is"),
        ("", "mark_to_drop(std);", "1 given, expected none"),
        ("", "std.egress_spec = 1;", "`output_action = ubpf_action.REDIRECT`"),
        ("", "meta.port = std.ingress_port;", "`input_port` of"),
        ("", "std.output_action = REDIRECT;", "`output_action = ubpf_action.REDIRECT`"),
        ("", "random(meta.port, 1, 2);", "no random numbers"),
        ("table t { actions = { NoAction; } meters = m; }", "", "it has `psa_direct_meter`"),
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
        // The model's `Counter` is too similar to `counter`.
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

/// Names that are declared, but not visible where they are used.
#[test]
fn names_declared_in_another_scope_get_a_hint() {
    let parts = "inout headers hdr, inout meta_t meta, inout standard_metadata std";
    let control = |name: &str, locals: &str, apply: &str| {
        format!("control {name}({parts}) {{ {locals} apply {{ {apply} }} }}")
    };
    let other = control("other", "bit<8> count; action hop() { } table hops { }", "");
    let parser = REST.replace(", inout meta_t meta,", ",");
    let uses = parser.replace("p.extract(hdr.eth);", "meta.ok = true;");
    let (below, parameter) = ("known from its declaration on", "hand it over as a parameter");
    for (text, wanted, wrong) in [
        // Only the later control declares it, so moving the declaration does not help.
        (format!("{uses}{}", control("c", "", "")), parameter, below),
        (format!("{REST}{other}{}", control("c", "", "count = 1;")), parameter, below),
        (format!("{REST}{}{other}", control("c", "", "count = 1;")), parameter, below),
        // Actions and tables cannot be passed as arguments.
        (format!("{REST}{other}{}", control("c", "", "hop();")), "belongs to `other`", parameter),
        (
            format!("{REST}{}{other}", control("c", "", "hops.apply();")),
            "belongs to `other`",
            below,
        ),
        // A later declaration in the same control takes precedence over similar names.
        (
            format!("{REST}{other}{}", control("c", "action a() { hop(); } action hop() { }", "")),
            below,
            "`other`",
        ),
        (
            format!(
                "{REST}{}",
                control("c", "action hop1() { } action a() { hop2(); } action hop2() { }", "")
            ),
            below,
            "`hop1` is",
        ),
        (
            format!("{REST}{}const bit<8> ODD = 1;", control("c", "", "bit<8> x = ODD;")),
            below,
            "help: it",
        ),
        // A similar name is visible.
        (
            format!("{REST}{other}{}", control("c", "action hopp() { }", "hop();")),
            "`hopp` is",
            "`other`",
        ),
        (
            format!("{REST}{other}{}", control("c", "bit<8> counts;", "count = 1;")),
            "`counts` is",
            parameter,
        ),
    ] {
        let checked = check(&format!("{PRELUDE}{text}{MAIN}"));
        refuses(&checked, wanted);
        let said = super::said(&checked);
        assert!(!said.contains(wrong), "{text}\nnot wanted: {wrong}\n{said}");
    }
}

/// Errors for which a hint would be wrong.
#[test]
fn unrelated_errors_get_no_hint() {
    let in_apply = |statement: &str| format!("control c() {{ apply {{\n{statement}\n}} }}");
    for (text, wrong) in [
        (in_apply("boolean<8> x = 1;"), "boo<"),
        (in_apply("standard_metadata_t<8> x = 1;"), "sta<"),
        ("header h { boolean<8> a; }".to_owned(), "boo<"),
        ("parser p() { value_set<>(4) s; state start { } }".to_owned(), "compares"),
        (in_apply("bit<> x = 1;"), "compares"),
        (in_apply("hdr.h.a = x ++ ;"), "adds one"),
        (in_apply("bit<16> y = x ++ ;"), "adds one"),
        (in_apply("y = ++ x;"), "adds one"),
        (in_apply("y = (bit<8>) x ++ ;"), "adds one"),
        (in_apply("f(x ++ );"), "adds one"),
        (in_apply("if (x ++ ) { }"), "adds one"),
        ("bit<16> f() { return x ++ ; }".to_owned(), "adds one"),
        ("Header first<Header>(in Header a);".to_owned(), "is one"),
        ("Parser first(in bit<8> a);".to_owned(), "is one"),
        // The first word of a nested statement.
        (in_apply("if (x) { fn(); } else = 1;"), "TYPE NAME"),
    ] {
        let checked = check(&text);
        let all = said(&checked);
        assert!(checked.diagnostics.has_errors() && !all.contains(wrong), "{text}\n{all}");
    }
    // A function may return its type parameter, regardless of the parameter's name.
    parses("Header first<Header>(in Header a) { return a; }");
    parses("Header first(in bit<8> a) { return a; } struct Header { }");
}

#[track_caller]
fn parses(text: &str) {
    let parsed = p4_syntax::parse("test.p4", text, &NoIncludes);
    assert_eq!(parsed.diagnostics.render(&parsed.sources, false), "", "{text}");
}

/// A search for each of many errors takes time in proportion to the square of the program.
#[test]
fn similar_names_are_searched_for_the_first_errors() {
    let known: String = (0..300).map(|n| format!("const bit<32> value{n} = 0;\n")).collect();
    let wrong: String = (0..300).map(|n| format!("const bit<32> a{n} = valux{n};\n")).collect();
    let checked = check(&format!("{PRELUDE}{known}{wrong}"));
    let helps = checked.diagnostics.iter().filter(|one| one.help.is_some()).count();
    assert!((100..=110).contains(&helps), "{helps}");
}
