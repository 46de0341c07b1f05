mod hints;

use crate::NoIncludes as Nothing;
use crate::ast::{
    DeclarationKind, Direction, Expression, ExpressionKind, Program, PropertyValue, StatementKind,
    Transition, TypeKind, Unary,
};
use crate::{Parsed, parse};

/// Returns the diagnostics of a program: line, column, message and label.
fn said(parsed: &Parsed) -> Vec<String> {
    let each = parsed.diagnostics.iter().map(|one| {
        let at = parsed.sources.locate(one.span).unwrap();
        format!("{}:{}: {} [{}]", at.line, at.column, one.message, one.label)
    });
    each.collect()
}

#[track_caller]
fn program(text: &str) -> Program {
    let parsed = parse("test.p4", text, &Nothing);
    assert_eq!(said(&parsed), [""; 0], "{text}");
    parsed.program
}

#[track_caller]
fn says(text: &str, wanted: &[&str]) -> Program {
    let parsed = parse("test.p4", text, &Nothing);
    assert_eq!(said(&parsed), wanted, "{text}");
    parsed.program
}

/// Formats an expression with all its parentheses.
fn shown(value: &Expression) -> String {
    match &value.kind {
        ExpressionKind::Integer(integer) => integer.value.to_string(),
        ExpressionKind::Name(name) => name.to_string(),
        ExpressionKind::Member(of, name) => format!("{}.{}", shown(of), name.text),
        ExpressionKind::Index(of, index) => format!("{}[{}]", shown(of), shown(index)),
        ExpressionKind::Slice(of, high, low) => {
            format!("{}[{}:{}]", shown(of), shown(high), shown(low))
        }
        ExpressionKind::Binary(operator, left, right) => {
            format!("({} {operator:?} {})", shown(left), shown(right))
        }
        ExpressionKind::Unary(operator, of) => format!("({operator:?} {})", shown(of)),
        ExpressionKind::Cast(_, of) => format!("(as {})", shown(of)),
        ExpressionKind::Choose(a, b, c) => format!("({} ? {} : {})", shown(a), shown(b), shown(c)),
        ExpressionKind::Call(of, types, arguments) => {
            let values = arguments.iter().map(|one| one.value.as_ref().map_or("_".into(), shown));
            let generic =
                if types.is_empty() { String::new() } else { format!("<{}>", types.len()) };
            format!("{}{generic}({})", shown(of), values.collect::<Vec<_>>().join(", "))
        }
        other => format!("{other:?}"),
    }
}

#[track_caller]
fn expression(text: &str) -> String {
    let program = program(&format!("typedef bit<8> byte_t; const int X = {text};"));
    match &program.declarations[1].kind {
        DeclarationKind::Constant(_, value) => shown(value),
        other => panic!("{other:?}"),
    }
}

#[test]
fn operators_bind_as_the_specification_says() {
    for (text, wanted) in [
        ("a + b * c", "(a Add (b Multiply c))"),
        ("a - b - c", "((a Subtract b) Subtract c)"),
        ("a & b == c", "((a And b) Equal c)"),
        ("a | b ^ c & d", "(a Or (b Xor (c And d)))"),
        ("a << b + c >> d", "((a ShiftLeft (b Add c)) ShiftRight d)"),
        ("a || b && !c", "(a LogicalOr (b LogicalAnd (Not c)))"),
        ("a ++ b |+| c", "((a Concatenate b) AddSaturating c)"),
        ("a < b == c > d", "((a Less b) Equal (c Greater d))"),
        ("a ? b : c ? d : e", "(a ? b : (c ? d : e))"),
        ("-a.b[3:0][1]", "(Minus a.b[3:0][1])"),
        ("(a + b) * c", "((a Add b) Multiply c)"),
    ] {
        assert_eq!(expression(text), wanted, "{text}");
    }
}

#[test]
fn casts_and_type_arguments_are_distinguished_from_values() {
    for (text, wanted) in [
        ("(bit<8>) a + b", "((as a) Add b)"),
        ("(byte_t) -1", "(as (Minus 1))"),
        ("(a) - 1", "(a Subtract 1)"),
        ("(unknown) a", "(as a)"),
        ("(bit<(1 + 2)>) ~a", "(as (Complement a))"),
        ("a < b", "(a Less b)"),
        ("a < b && c > d", "((a Less b) LogicalAnd (c Greater d))"),
        ("f<bit<8>, byte_t>(a)", "f<2>(a)"),
        ("f<g<bit<8>>>(_)", "f<1>(_)"),
        ("a.f<byte_t>(b).c", "a.f<1>(b).c"),
        ("a >> 3", "(a ShiftRight 3)"),
        ("f(x = 1, y = _)", "f(1, _)"),
    ] {
        assert_eq!(expression(text), wanted, "{text}");
    }
    let program = program("const tuple<bit<8>> X = {1, 2,};");
    let DeclarationKind::Constant(of, value) = &program.declarations[0].kind else { panic!() };
    assert!(matches!(&of.kind, TypeKind::Tuple(types) if types.len() == 1));
    assert!(matches!(&value.kind, ExpressionKind::List(values) if values.len() == 2));
}

#[test]
fn values_in_braces_are_read() {
    let is = |text: &str, wanted: fn(&ExpressionKind) -> bool| {
        let program = program(&format!("const S X = {text};"));
        let DeclarationKind::Constant(_, value) = &program.declarations[0].kind else { panic!() };
        assert!(wanted(&value.kind), "{value:?}");
    };
    is("{}", |kind| matches!(kind, ExpressionKind::List(values) if values.is_empty()));
    is("{#}", |kind| *kind == ExpressionKind::Invalid);
    is("{a = 1, b = 2}", |kind| matches!(kind, ExpressionKind::Struct(f, false) if f.len() == 2));
    is("{a = 1, ...}", |kind| matches!(kind, ExpressionKind::Struct(f, true) if f.len() == 1));
    is("error.NoError", |kind| matches!(kind, ExpressionKind::ErrorMember(_)));
    is(".top", |kind| matches!(kind, ExpressionKind::TopName(_)));
    is("\"text\"", |kind| matches!(kind, ExpressionKind::String(text) if &**text == "text"));
    is("-true", |kind| matches!(kind, ExpressionKind::Unary(Unary::Minus, _)));
}

#[test]
fn types_are_declared() {
    let program = program(
        "typedef bit<48> mac_t; type bit<9> port_t; enum E { A, B, } enum bit<8> F { C = 1, D = 2 }
         error { Odd } match_kind { fuzzy }
         @name(\"h\") header h { @x bit<8> a; varbit<(8 * 4)> b; int<4> c; }
         header_union u { h one; } struct s<T> { T t; h[4] stack; bool b; } ;
         extern E2; extern Reg<T, S> { Reg(bit<32> size); T read(in S index); void w<V>(V v = 3); }
         extern void f<T>(out T t, inout bit<8> b); extern bit<8> g();
         parser p_t<H>(packet_in p, out H h); control c_t(); package top<H>(p_t<H> p, c_t c);",
    );
    let names: Vec<&str> = program.declarations.iter().map(|one| &*one.name.text).collect();
    let wanted = "mac_t port_t E F error match_kind h u s E2 Reg f g p_t c_t top";
    assert_eq!(names.join(" "), wanted);
    let DeclarationKind::Header(fields) = &program.declarations[6].kind else { panic!() };
    assert_eq!((fields.len(), &*program.declarations[6].annotations[0].body[0]), (3, "\"h\""));
    let DeclarationKind::ExternObject(methods) = &program.declarations[10].kind else { panic!() };
    assert!(methods[0].returns.is_none() && methods[1].returns.is_some());
    let DeclarationKind::ExternFunction(_, parameters) = &program.declarations[11].kind else {
        panic!()
    };
    assert_eq!(parameters[0].direction, Direction::Out);
}

const PARSER: &str = include_str!("../../../p4/tests/programs/parser.p4");

#[test]
fn parsers_are_read() {
    let program = program(PARSER);
    let DeclarationKind::Parser(parser) = &program.declarations[0].kind else { panic!() };
    assert_eq!((parser.locals.len(), parser.states.len(), parser.constructor.len()), (4, 3, 1));
    let Some(Transition::Select { values, cases, .. }) = &parser.states[0].transition else {
        panic!()
    };
    let sets: Vec<usize> = cases.iter().map(|(sets, _)| sets.len()).collect();
    assert_eq!((values.len(), sets), (2, vec![2, 2, 1, 1, 1]));
    assert_eq!(parser.states[2].transition, None);
}

const CONTROL: &str = include_str!("../../../p4/tests/programs/control.p4");

#[test]
fn controls_are_read() {
    let program = program(CONTROL);
    let DeclarationKind::Control(control) = &program.declarations[0].kind else { panic!() };
    assert_eq!((control.locals.len(), control.apply.statements.len()), (5, 12));
    let DeclarationKind::Table(table) = &control.locals[4].kind else { panic!() };
    let constants: Vec<bool> = table.properties.iter().map(|one| one.constant).collect();
    assert_eq!(constants, [false, false, true, true, false, false]);
    let PropertyValue::Entries(entries) = &table.properties[2].value else { panic!() };
    assert!(entries[1].constant && entries[1].priority.is_some() && entries[0].keys.len() == 2);
    let kinds = &control.apply.statements;
    assert!(matches!(&kinds[1].kind, StatementKind::Switch(_, cases) if cases.len() == 3));
    assert!(matches!(kinds[5].kind, StatementKind::Assign(..)));
    assert!(matches!(kinds[7].kind, StatementKind::ForIn(..)));
    assert!(matches!(kinds[11].kind, StatementKind::Call(_)));
    assert!(matches!(program.declarations[3].kind, DeclarationKind::Instance(..)));
}

#[test]
fn the_model_is_there() {
    let program = program("#include <core.p4>\n#include <ubpf_model.p4>\nbit<8> f() { return 1; }");
    let names: Vec<&str> = program.declarations.iter().map(|one| &*one.name.text).collect();
    for name in ["packet_in", "NoAction", "Register", "standard_metadata", "ubpf", "f"] {
        assert_eq!(names.iter().filter(|found| **found == name).count(), 1, "{name}");
    }
}

#[test]
fn many_mistakes_are_reported_in_one_run() {
    let program = says(
        "header h {\n  bit<8> a\n  bit<8> b;\n  bit<8> header;\n  bit<4> c;\n}\n\
         control c() { apply { x = ; y + 1; f(1; z = 2; } }\n\
         control d() { action a() { } }\n\
         bit<8> v;\n\
         const bit<8> w = 8w256;\n\
         parser p() { state start { transition select(a) { 1 accept; 2: reject; } } }\n\
         const bit<8> last = 1;",
        &[
            "2:10: `;` is missing [expected `;` after this]",
            "4:10: `header` is a reserved word, not a name [expected a field's name]",
            "7:27: `;` was not expected here [expected an expression]",
            "7:29: this value is not used [expected an assignment or a call]",
            "7:39: `;` was not expected here [expected `)`]",
            "8:9: `d` has no `apply` []",
            "9:8: a variable belongs into a parser, a control or an action []",
            "10:18: `8w256` needs 9 bits []",
            "11:53: `accept` was not expected here [expected `:`]",
        ],
    );
    let last = program.declarations.last().map(|one| one.name.text.to_string());
    assert_eq!(last.as_deref(), Some("last"));
}

#[test]
fn a_truncated_program_is_reported() {
    says("control c() {", &["1:13: this `{` has no `}` [opened here]"]);
    says("const bit<8", &["1:11: `>` is missing [expected `>` after this]"]);
    says("}", &["1:1: `}` was not expected here [expected a declaration]"]);
    says("@x(1", &["1:5: the program ends here [expected `)`]"]);
    says("@", &["1:2: the program ends here [expected an annotation's name]"]);
}

#[test]
fn endless_nesting_is_refused() {
    for (text, times) in [("(", 5000), ("-", 5000), ("f<", 3000), ("a<bit<(", 2000), ("{", 5000)] {
        let parsed = parse("test.p4", &format!("const int X = {};", text.repeat(times)), &Nothing);
        assert!(parsed.diagnostics.has_errors(), "{text}");
    }
    let blocks = format!("control c() {{ apply {} }}", "{".repeat(5000));
    assert!(said(&parse("test.p4", &blocks, &Nothing))[0].contains("nested more than"));
    let stacks = format!("typedef int{} t;", "[1]".repeat(30_000));
    assert!(said(&parse("test.p4", &stacks, &Nothing))[0].contains("nested more than"));
    let index = format!("control c() {{ apply {{ a{} = 1; }} }}", "[1]".repeat(200_000));
    assert!(parse("test.p4", &index, &Nothing).diagnostics.has_errors());
    let long = format!("const int X = a{};", " + a".repeat(5000));
    assert!(said(&parse("test.p4", &long, &Nothing))[0].contains("more than 500 operators"));
    // Parentheses divide the operators, but the total height is bounded too.
    let both =
        format!("const int X = {}a{};", "(".repeat(80), " + a + a + a + a + a + a)".repeat(80));
    assert_eq!(said(&parse("test.p4", &both, &Nothing)), [""; 0]);
    let both =
        format!("const int X = {}a{};", "(".repeat(80), (" + a".repeat(400) + ")").repeat(80));
    assert!(said(&parse("test.p4", &both, &Nothing))[0].contains("more than 500 operators"));
    // The number of siblings is unlimited.
    let wide = format!("const T X = {{ {} }};", "a.b.c + d.e[f.g:0], ".repeat(5000));
    assert_eq!(said(&parse("test.p4", &wide, &Nothing)), [""; 0]);
    let calls = format!("const int X = f{};", "()".repeat(5000));
    assert!(said(&parse("test.p4", &calls, &Nothing))[0].contains("more than 500 operators"));
}

#[test]
fn parsing_twice_takes_no_exponential_time() {
    // Parsed as a stack type before a value, and as a value.
    let indices = format!("const int X = {}0{};", "(a[".repeat(40), "])".repeat(40));
    assert_eq!(said(&parse("test.p4", &indices, &Nothing)), [""; 0]);
    // Parsed as a type with arguments before a value, and as a call.
    let calls = format!("const int X = {}0{};", "(a<bit<(".repeat(30), ")>>(0))".repeat(30));
    assert_eq!(said(&parse("test.p4", &calls, &Nothing)), [""; 0]);
}

/// Arbitrary input neither makes the front end panic nor hangs it.
mod any_text {
    use proptest::prelude::*;

    use super::*;

    /// Tokens in arbitrary order.
    fn pieces() -> impl Strategy<Value = String> {
        let words: Vec<String> =
            format!("{PARSER} {CONTROL} #define #if #endif \\ \" /* */ \n < > 8w é")
                .split(' ')
                .map(str::to_owned)
                .collect();
        prop::collection::vec(prop::sample::select(words), 0..60).prop_map(|some| some.join(" "))
    }

    /// A program without some of its characters.
    fn cut() -> impl Strategy<Value = String> {
        let whole = format!("{PARSER}\n{CONTROL}");
        prop::collection::vec(0..whole.len(), 1..8).prop_map(move |gone| {
            let kept = whole.char_indices().filter(|(at, _)| !gone.contains(at));
            kept.map(|(_, c)| c).collect()
        })
    }

    proptest! {
        #[test]
        fn is_read_or_refused(text in prop_oneof![pieces(), cut(), any::<String>()]) {
            let parsed = parse("test.p4", &text, &Nothing);
            let _ = parsed.diagnostics.render(&parsed.sources, false);
        }
    }
}
