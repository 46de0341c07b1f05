use std::collections::BTreeMap;

use super::*;

struct Files(BTreeMap<&'static str, &'static str>);

impl Includes for Files {
    fn read(&self, name: &str, _: &str, system: bool) -> Result<(String, String), String> {
        let name = if system { format!("<{name}>") } else { name.to_owned() };
        let text = self.0.get(name.as_str()).ok_or("no such file")?;
        Ok((name, (*text).to_owned()))
    }
}

/// Returns the preprocessed text, with a space between tokens, and the diagnostics.
fn run(text: &str, files: &[(&'static str, &'static str)]) -> (String, Vec<String>) {
    let (mut sources, mut problems) = (Sources::default(), Diagnostics::default());
    let files = Files(files.iter().copied().collect());
    let tokens = preprocess("main.p4", text, &files, &mut sources, &mut problems);
    assert_eq!(tokens.last().map(|last| last.kind), Some(Kind::End));
    let texts: Vec<&str> = tokens[..tokens.len() - 1].iter().map(|token| &*token.text).collect();
    let place = |span| sources.locate(span).map_or(0, |at| at.line);
    let said = problems.iter().map(|one| format!("{}: {}", place(one.span), one.message));
    (texts.join(" "), said.collect())
}

#[track_caller]
fn gives(text: &str, wanted: &str) {
    assert_eq!(run(text, &[]), (wanted.to_owned(), Vec::new()), "{text}");
}

#[track_caller]
fn says(text: &str, wanted: &str) {
    let said = run(text, &[]).1;
    assert!(said.iter().any(|one| one == wanted), "{text}: {said:#?}");
}

#[test]
fn macros_are_replaced() {
    gives("#define A 1\nA B A", "1 B 1");
    gives("#define A(x, y) x + y\nA(1, 2) A (3,(4, 5)) A", "1 + 2 3 + ( 4 , 5 ) A");
    gives("#define A (x)\nA", "( x )");
    gives("#define A(x) [x]\n#define B A\nB(1) A(\n2\n)", "[ 1 ] [ 2 ]");
    gives("#define A\n#define F() z\nA F() A", "z");
    gives("#define A 1\n#undef A\nA", "A");
    gives("#define F(x, ...) x(__VA_ARGS__)\nF(a, b, c) F(d)", "a ( b , c ) d ( )");
    gives("a __LINE__\n__LINE__ __FILE__", "a 1 2 \"main.p4\"");
}

#[test]
fn the_models_files_are_there_in_quotes_too() {
    let all = run("#include \"vm.p4\"", &[]);
    assert!(all.0.contains("vm_info") && all.1.is_empty(), "{all:?}");
    // A file of the program takes precedence.
    let own = run("#include \"vm.p4\"", &[("vm.p4", "own")]);
    assert_eq!(own, ("own".to_owned(), Vec::new()));
    says("#include <v1model.p4>", "1: cannot include v1model.p4: no such file");
}

#[test]
fn no_macro_is_replaced_within_itself() {
    gives("#define A A B\nA", "A B");
    gives("#define A B\n#define B A\nA B", "A B");
    // The standard's example of rescanning (C17, 6.10.3.4).
    gives("#define f(a) a*g\n#define g(a) f(a)\nf(2)(9)", "2 * 9 * g");
    gives("#define F(x) x F\nF(F)(1)", "F F ( 1 )");
}

#[test]
fn tokens_are_quoted_and_joined() {
    gives("#define S(x) #x\nS(a  + \"b\\n\")", "\"a + \\\"b\\\\n\\\"\"");
    gives("#define J(x, y) x##y\nJ(a, 1) J(8w, 3) J(, b)", "a1 8w3 b");
    gives("#define J(x) x ## _t\n#define A 1\nJ(A)", "A_t");
    says("#define J(x) x##;\nJ(+)", "2: `+` and `;` make no token");
}

#[test]
fn conditions_choose() {
    gives("#if 1 + 1 == 2 && !defined(X)\na\n#else\nb\n#endif\nc", "a c");
    gives("#define X 3\n#if X > 3\na\n#elif X >> 1 == 1\nb\n#elif 1\nc\n#else\nd\n#endif", "b");
    gives("#ifdef X\na\n#if 1\nb\n#endif\n#else\nc\n#endif", "c");
    gives("#ifndef X\n#define X\na\n#endif\n#ifndef X\nb\n#endif", "a");
    gives("#define X\n#if defined X || 1 / 0\na\n#endif", "a");
    gives("#if 0 && 1 / 0 || (1 ? 2 : 1 % 0) == 2\na\n#endif", "a");
    gives("#if 1 || 99999999999999999999 > 1 / (1 / 0)\na\n#endif", "a");
    gives("#if 0 ? 1 : 0 ? 2 : 3 == 3\na\n#endif", "a");
    gives("#if 0\n#include \"none\"\n#error no\n#nonsense\n'\n#endif\na", "a");
    gives("#if UNKNOWN ? 0 : (2 | 4) == 6\na\n#endif", "a");
    gives("#define F(x) (x << 2)\n#if F(1) == 4\na\n#endif", "a");
}

#[test]
fn files_are_included() {
    let files = [("<mine.p4>", "core"), ("a.p4", "#define A 1\n#include <mine.p4>\nA")];
    assert_eq!(run("#include \"a.p4\"\nA b", &files), ("core 1 1 b".into(), vec![]));
    assert_eq!(run("#define N <mine.p4>\n#include N", &files), ("core".into(), vec![]));
    let guarded = [("g.p4", "#ifndef G\n#define G\n#include \"g.p4\"\ng\n#endif")];
    assert_eq!(run("#include \"g.p4\"\n#include \"g.p4\"", &guarded), ("g".into(), vec![]));
    let said = run("#include \"none.p4\"\nb", &[]);
    let wanted = "1: cannot include none.p4: no such file";
    assert_eq!(said, ("b".into(), vec![wanted.to_owned()]));
    let said = run("#include \"self.p4\"", &[("self.p4", "#include \"self.p4\"")]).1;
    assert_eq!(said, ["1: files include each other more than 64 deep"]);
}

#[test]
fn invalid_directives_are_reported_with_their_place() {
    says("\n#endif", "2: `#endif` without `#if`");
    says("#if 1\na", "1: this condition has no end");
    says("#if 1\n#else\n#else\n#endif", "3: `#else` after `#else`");
    says("#frob", "1: no directive `#frob`");
    says("#error stop  here", "1: #error: stop  here");
    says("#warning old", "1: #warning: old");
    says("#if 1 / 0\n#endif", "1: a division by 0");
    says("#if (1\n#endif", "1: expected `)`");
    says("#if 1 2\n#endif", "1: `2` was not expected here");
    says("#if 1 || (\n#endif", "1: the condition ends where a value was expected");
    says("#if 0 && 2 )\n#endif", "1: `)` was not expected here");
    says("#if 1 ? 1 : *\n#endif", "1: `*` is not a value");
    says("#if 1 ? 1 / 0 : 1\n#endif", "1: a division by 0");
    says("#if\n#endif", "1: the condition ends where a value was expected");
    says("#define A(x) x\nA(1, 2)", "2: `A` takes 1 arguments, not 2");
    says("#define A(x) x\nA(1", "2: the arguments of `A` have no end");
    says("#define A(x, x) x", "1: a macro's parameters are names, each one once");
    says("#define A 1\n#define A 2", "2: `A` is redefined");
    says("#define A(x) #1", "1: `#` stands in front of a parameter");
    says("#include 5", "1: this is not a file's name");
}

#[test]
fn macros_without_end_are_stopped() {
    let mut text = String::from("#define A0 x x\n");
    for at in 1..30 {
        text += &format!("#define A{at} A{} A{}\n", at - 1, at - 1);
    }
    text += "A29";
    assert_eq!(run(&text, &[]).1, ["31: macros make more than 262144 tokens"]);
    let nested = format!("#define F(x) x\n{}1{}", "F(".repeat(500), ")".repeat(500));
    assert_eq!(run(&nested, &[]).1[0], "2: macros' arguments are nested too deeply");
    let wide = "2: macros make more than 262144 tokens";
    // Nested arguments that are each used twice, with an empty result.
    let empty = format!("#define F(x) x x\n{}{}", "F(".repeat(60), ")".repeat(60));
    assert_eq!(run(&empty, &[]), (String::new(), Vec::new()));
    // Excessive output is rejected before it is produced.
    let long = "a ".repeat(20_000);
    for body in ["x ", "x##x ", "#x "] {
        let many = format!("#define F(x) {}\nF({long})", body.repeat(20_000));
        assert_eq!(run(&many, &[]).1.last().map(String::as_str), Some(wide), "{body}");
    }
    for (body, first) in [("x##x", "a"), ("#x", "\"\\\\\"")] {
        let (open, close) = ("F(".repeat(50), ")".repeat(50));
        let grown = format!("#define G(x) {body}\n#define F(x) G(x)\n{open}{first}{close}");
        assert_eq!(run(&grown, &[]).1, ["3: macros make more than 262144 tokens"], "{body}");
    }
    // The name of a function-like macro without parentheses is not expanded.
    let names = format!("#define F() {}\n{}", "a ".repeat(20_000), "F ".repeat(20_000));
    assert_eq!(run(&names, &[]).1, [""; 0]);
    // Words other than `__LINE__` are not located.
    let lines = format!("#define A\n{}", "word\n".repeat(100_000));
    assert_eq!(run(&lines, &[]).1, [""; 0]);
    let deep = format!("#if {}1\n#endif", "(".repeat(5000));
    assert_eq!(run(&deep, &[]).1, ["1: the condition is nested too deeply"]);
    for choice in ["0?0:", "0?"] {
        let deep = format!("#if {}0\n#endif", choice.repeat(100_000));
        assert_eq!(run(&deep, &[]).1, ["1: the condition is nested too deeply"], "{choice}");
    }
}
