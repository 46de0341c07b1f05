//! Compiled programs behave like the interpreter.

mod cells;
mod expressions;
mod large;
mod machine;
mod random;

use p4::stf;
use p4_syntax::NoIncludes as Nothing;
use testkit::programs::programs;

use super::*;
use machine::Machine;

#[test]
fn programs_pass_their_tests() {
    let only = std::env::var("P").ok();
    let mut wrong = Vec::new();
    for (name, program, test) in programs() {
        if only.as_ref().is_some_and(|only| *only != name) {
            continue;
        }
        let checked = p4::check(&name, &program, &Nothing);
        let compiled = match compile(&checked.program, &checked.sources) {
            Ok(compiled) => compiled,
            Err(why) => {
                wrong.push(format!("{name}: {}", why.render(&checked.sources, false)));
                continue;
            }
        };
        if only.is_some() {
            for (at, one) in compiled.object.code.iter().enumerate() {
                println!("{at:4} {one}");
            }
        }
        if let Err(why) = p4_object::verify(&compiled.object) {
            wrong.push(format!("{name}: {why}"));
            continue;
        }
        let elaborated = interpret::elaborate(&checked.program).unwrap();
        let lines = stf::parse(&test).unwrap();
        let result = std::panic::catch_unwind(|| {
            let mut machine = Machine::new(&compiled, elaborated);
            stf::run(&checked.program, &mut machine, &lines)
        });
        match result {
            Ok(failures) => {
                for one in failures {
                    wrong.push(format!("{name}: {one}"));
                }
            }
            Err(_) => wrong.push(format!("{name}: panicked")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn the_same_program_has_the_same_code() {
    for (name, program, _) in programs() {
        let checked = p4::check(&name, &program, &Nothing);
        let compiled = || compile(&checked.program, &checked.sources).map(|done| done.object);
        let (one, other) = (compiled(), compiled());
        assert_eq!(one.ok(), other.ok(), "{name}");
    }
}

/// Returns the message with which a program is rejected.
fn refused(declarations: &str, fields: &str, apply: &str) -> String {
    let text = format!(
        "#include <ubpf_model.p4>
        header h_t {{ {fields} }}
        struct headers {{ h_t h; h_t other; }}
        struct meta_t {{ }}
        parser prs(packet_in p, out headers hdr, inout meta_t m, inout standard_metadata std) {{
            state start {{ transition accept; }}
        }}
        control c(inout headers hdr, inout meta_t m, inout standard_metadata std) {{
            {declarations}
            apply {{ {apply} }}
        }}
        control dprs(packet_out b, in headers hdr) {{ apply {{ b.emit(hdr.h); }} }}
        ubpf(prs(), c(), dprs()) main;"
    );
    let checked = p4::check("refused", &text, &Nothing);
    let said = checked.diagnostics.render(&checked.sources, false);
    assert!(!checked.diagnostics.has_errors(), "{said}");
    match compile(&checked.program, &checked.sources) {
        Ok(_) => panic!("it has code: {apply} {declarations}"),
        Err(why) => why.render(&checked.sources, false),
    }
}

#[test]
fn a_helper_that_the_machine_lacks_is_reported_with_its_place() {
    let text = include_str!("../../../../p4/tests/programs/extern_user.p4")
        .replace("@helper(5)", "@helper(77)");
    let checked = p4::check("mine.p4", &text, &Nothing);
    let compiled = compile(&checked.program, &checked.sources).unwrap();
    let why = p4_object::verify(&compiled.object).unwrap_err().to_string();
    let told = "mine.p4:33:21: no helper 77; known are 1 (map_lookup), ";
    assert!(why.contains(told), "{why}");
    // Other machines may have the helper.
    assert_eq!(compiled.object.keys, ["connections", "app.queue/depth"]);
}

#[test]
fn an_extern_function_without_a_helper_is_refused() {
    let text =
        include_str!("../../../../p4/tests/programs/extern_user.p4").replace("@helper(5)", "");
    let checked = p4::check("mine.p4", &text, &Nothing);
    let why = compile(&checked.program, &checked.sources).unwrap_err();
    let said = why.render(&checked.sources, false);
    assert!(said.contains("extern function `clock` is not implemented"), "{said}");
    assert!(said.contains("`--extern FILE`") && said.contains("`@helper(number)`"), "{said}");
}

#[test]
fn a_construct_without_code_is_named() {
    let table = "table t { key = { hdr.h.a: range; } actions = { NoAction; } }";
    let one = "key = { hdr.h.a: exact; } actions = { NoAction; }";
    let of_one_name = format!("table t_u {{ {one} }} @name(\"t.u\") table u {{ {one} }}");
    let default = format!("table t {{ {one} }} table t_defaultAction {{ {one} }}");
    let list = vec!["hdr.h.b"; 200].join(", ");
    let hash = format!("bit<32> x; hash(x, HashAlgorithm.lookup3, {{ {list} }}); hdr.h.a = x;");
    for (declarations, fields, apply, why) in [
        ("", "bit<72> a;", "hdr.h.a = hdr.h.a / hdr.other.a;", "a division of numbers of 72 bits"),
        (table, "bit<72> a;", "t.apply();", "72 bits"),
        (&of_one_name, "bit<8> a;", "t_u.apply(); u.apply();", "same name, `c_t_u`"),
        (&default, "bit<8> a;", "t.apply(); t_defaultAction.apply();", "`c_t_defaultAction`"),
        (
            "",
            "bit<32> a; bit<2048> b;",
            &hash,
            "needs more than 512 bytes for what it remembers at once",
        ),
    ] {
        let said = refused(declarations, fields, apply);
        assert!(said.contains(why), "wanted {why}:\n{said}");
        assert!(said.contains("--> refused:"), "{said}");
    }
}
