//! Hints for words and operators of other languages, and for unclosed braces.

use super::said;
use crate::NoIncludes as Nothing;
use crate::parse;

/// Checks the only error of a program, its position and its hint.
#[track_caller]
fn helps(text: &str, at: &str, wanted: &str) {
    let parsed = parse("test.p4", text, &Nothing);
    let [one] = &parsed.diagnostics.iter().collect::<Vec<_>>()[..] else {
        panic!("{text}: {:?}", said(&parsed));
    };
    let place = parsed.sources.locate(one.span).unwrap();
    let related = one.related.iter().map(|(span, _)| parsed.sources.locate(*span).unwrap().line);
    let lines: String = related.map(|line| format!(" {line}")).collect();
    let (line, column) = (place.line, place.column);
    assert_eq!(format!("{line}:{column}{lines}"), at, "{text}");
    let all = format!("{} [{}] {}", one.message, one.label, one.help.as_deref().unwrap_or(""));
    assert!(all.contains(wanted), "{text}\nwanted: {wanted}\n{all}");
}

#[test]
fn a_brace_without_its_end_is_shown() {
    let open = "this `{` has no `}`";
    for (text, at) in [
        // Position of the open brace, and the line before which its closing brace is missing.
        ("header h {\n  bit<8> a;\nstruct s { }", "1:10 3"),
        ("control c() {\n  action a() {\n  table t { }\n  apply { }\n}", "2:14 3"),
        ("parser p() {\n  state start {\n  state next { }\n}\nstruct s { }", "2:15 3"),
        ("control c() {\n  table t {\n  apply { }\n}", "2:11 3"),
        ("control c() {\n  apply {\n    x();\n}\n", "2:9 4"),
        // Located by indentation.
        ("control c() {\n  apply {\n    if (x) {\n      y();\n  }\n}\nstruct s { }", "3:12 7"),
        ("control c() {\n  apply {\n    if (x) {\n      y();\n  }\n}\n", "3:12 6"),
        // Lines without indentation.
        ("control c() {\napply {\nif (x) {\ny();\n}\n}\nstruct s { }", "1:13 7"),
    ] {
        helps(text, at, open);
    }
    // A missing opening brace does not stop the parser if the lines after it are indented.
    for (text, at) in [
        ("header h\n  bit<8> a;\n  bit<8> b;\n}\nstruct s { }", "1:8"),
        ("control c() {\n  action a()\n    x();\n    y();\n  }\n  apply { }\n}", "2:12"),
        (
            "control c() {\n  table t {\n    key =\n      a: exact;\n    }\n  }\n  apply { }\n}",
            "3:9",
        ),
        ("parser p() {\n  state start\n    transition accept;\n  }\n}", "2:13"),
    ] {
        helps(text, at, "`{` is missing [expected `{` after this]");
    }
    let within = "control c() {\n  apply {\n    action a() { }\n    x();\n  }\n}";
    helps(within, "3:5", "declared beside `apply`");
    helps("control c() {\n    struct s { }\n    apply { }\n}", "2:5", "declared at the top");
}

#[test]
fn syntax_of_other_languages_gets_a_hint() {
    for (statement, at, wanted) in [
        ("if (x = 1) { }", 7, "`==` compares"),
        ("if (x => 1) { }", 7, "`>=` is greater or equal"),
        ("x = y => 1;", 7, "`>=` is greater or equal"),
        ("if (x =< 1) { }", 7, "`<=` is less or equal"),
        ("if (x <> 1) { }", 8, "`!=` compares"),
        ("x->y = 1;", 3, "a dot selects a field"),
        ("x++;", 4, "`x += 1` adds one"),
        ("++x;", 1, "`x += 1` adds one"),
        ("x--;", 4, "`x -= 1` takes one away"),
        ("for (x = 0; x < 3; x++) { }", 23, "`x += 1` adds one"),
        ("for (x = 0; x < 3; ++x) { }", 20, "`x += 1` adds one"),
        ("if (x == 1) hdr.h[0].a++;", 25, "`x += 1` adds one"),
        ("if (x and y) { }", 7, "write `&&`"),
        ("if (x or y) { }", 7, "write `||`"),
        ("if (not x) { }", 9, "write `!`"),
        ("if (x) { } elif (y) { }", 21, "write `else if`"),
        ("while (x) { }", 11, "a loop has an end"),
        ("switch (x) { case 1: { } }", 19, "no word in front"),
        ("x = 10.0.0.1;", 8, "0x0a000001"),
        ("x = 00:11:22:33:44:55;", 7, "0x020000000001"),
        ("bits<8> x = 1;", 1, "write `bit<8>`"),
        ("uint<16> x = 1;", 1, "write `bit<16>`"),
        ("int8<8> x = 1;", 1, "write `int<8>`"),
        ("bit(8) x = 1;", 1, "a type has its width"),
        ("bit 8 x = 1;", 1, "a type has its width"),
        ("x;", 1, "`x.apply();` applies a table"),
        ("f()", 3, "expected `;` after this"),
    ] {
        let text = format!("control c() {{ apply {{\n{statement}\n}} }}");
        helps(&text, &format!("2:{at}"), wanted);
    }
    for (text, at, wanted) in [
        ("headr h { bit<8> a; }", "1:1", "`header` is one"),
        ("header_type h { bit<8> a; }", "1:1", "write `header NAME"),
        ("contol c(in bit<8> a) { action x() { } apply { } }", "1:1", "`control` is one"),
        ("control c() { aply { } }", "1:15", "`apply` is one"),
        ("control c() { tabel t { } apply { } }", "1:15", "`table` is one"),
        ("contol c<T>(in T a)(bit<8> b) { apply { } }", "1:1", "`control` is one"),
        ("headr h<T> { T a; }", "1:1", "`header` is one"),
        ("function bit<8> f() { return 1; }", "1:10", "write `TYPE NAME"),
        ("def f(in bit<8> a) { return 1; }", "1:1", "write `TYPE NAME"),
        ("control c() { { x(); } }", "1:15", "write `apply { … }`"),
        ("control c() { if (x) { } }", "1:15", "write `apply { … }`"),
        ("parser p() { stat start { } }", "1:14", "`state` is one"),
        ("parser p() { state start { accept; } }", "1:28", "write `transition accept;`"),
        ("parser p() { state start { select(a) { } } }", "1:28", "write `transition select"),
        ("header h { bits<8> a; }", "1:12", "write `bit<8>`"),
        ("header h { bit<8> a-b; }", "1:20", "names have letters"),
        ("header h { bit<8> table; }", "1:19", "call it `table_`"),
        ("header h { bit<8> a }", "1:19", "expected `;` after this"),
        ("import <ubpf_model.p4>;", "1:19", "#include <ubpf_model.p4>"),
    ] {
        helps(text, at, wanted);
    }
}
