//! `kaido p4`, as people and scripts use it.

mod cells;
mod clients;
mod externs;
mod isolation;
mod running;
mod vm;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use testkit::{check_error, value_of};

const PROGRAM: &str = include_str!("../../../p4/tests/programs/table_exact.p4");
const TEST: &str = include_str!("../../../p4/tests/programs/table_exact.stf");

fn kaido(arguments: &[&str], directory: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kaido"));
    command.arg("p4").args(arguments).current_dir(directory);
    command.output().expect("the command runs")
}

/// Creates a directory with these files.
fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, text) in files {
        let path: PathBuf = directory.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it is in the directory"))
            .expect("a directory");
        std::fs::write(path, text).expect("a file");
    }
    directory
}

#[track_caller]
fn says(output: &Output, code: i32, parts: &[&str]) {
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{text}");
    for part in parts {
        assert!(text.contains(part), "wanted: {part}\n{text}");
    }
    assert!(!text.contains("panicked"), "{text}");
}

#[test]
fn programs_are_checked() {
    let misspelt = PROGRAM.replace("hdr.h.b = to", "hdr.h.bb = too");
    let here = directory(&[("good.p4", PROGRAM), ("bad.p4", &misspelt)]);
    says(&kaido(&["check", "good.p4"], here.path()), 0, &["good.p4: no errors, 1 table"]);
    let both = ["bad.p4:13", "has no `bb`", "`too` is not declared", "help: `to` is"];
    says(&kaido(&["check", "bad.p4"], here.path()), 2, &both);
    std::fs::write(here.path().join("mark.p4"), format!("\u{feff}{PROGRAM}")).expect("a file");
    says(&kaido(&["check", "mark.p4"], here.path()), 0, &["mark.p4: no errors"]);
    // A file name may be invalid UTF-8.
    let odd = OsStr::from_bytes(b"na\xffme.p4");
    std::fs::write(here.path().join(odd), PROGRAM).expect("a file");
    for command in ["check", "compile"] {
        let mut myself = Command::new(env!("CARGO_BIN_EXE_kaido"));
        let said = myself.args(["p4", command]).arg(odd).current_dir(here.path()).output();
        says(&said.expect("it runs"), 0, &["na\u{fffd}me"]);
    }
    // The errors cannot be printed, but the exit code reports them.
    let full = std::fs::File::options().write(true).open("/dev/full").expect("it is there");
    let said = Command::new(env!("CARGO_BIN_EXE_kaido"))
        .args(["p4", "check", "bad.p4"])
        .current_dir(here.path())
        .stderr(full)
        .status()
        .expect("it runs");
    assert_eq!(said.code(), Some(2));
    // A program that cannot be compiled is an error, too.
    let half = PROGRAM.replace("bit<8> b;", "bit<4> b;").replace("bit<8> to", "bit<4> to");
    std::fs::write(here.path().join("half.p4"), half).expect("a file");
    let why = ["half.p4:", "not a whole number of bytes", "help: "];
    says(&kaido(&["check", "half.p4"], here.path()), 2, &why);
    let json = kaido(&["check", "bad.p4", "--json"], here.path());
    let said: Value = serde_json::from_slice(&json.stderr).expect("JSON");
    check_error(&said);
    assert_eq!(said["diagnostics"][0]["at"]["line"], 13, "{said}");
    assert!(json.stdout.is_empty());
    let json = kaido(&["check", "good.p4", "--json"], here.path());
    let said = value_of(&["p4", "check"], &json.stdout);
    assert_eq!(said["tables"], serde_json::json!(["c.t"]));
}

#[test]
fn included_files_are_found() {
    let (head, rest) = PROGRAM.split_once("struct headers").expect("it has headers");
    let main = format!("#include \"parts/headers.p4\"\n#include <more.p4>\nstruct headers{rest}");
    let here = directory(&[("main.p4", &main), ("parts/headers.p4", head), ("inc/more.p4", "\n")]);
    says(&kaido(&["check", "main.p4", "-I", "inc"], here.path()), 0, &["no errors"]);
    let alone = kaido(&["check", "main.p4"], here.path());
    says(&alone, 2, &["main.p4:2", "more.p4", "in no directory of `--include`"]);
}

#[test]
fn macros_are_defined_beside_the_program() {
    let program =
        PROGRAM.replace("bit<8> b;", "bit<WIDTH> b;").replace("bit<8> to", "bit<WIDTH> to");
    let here = directory(&[("p.p4", &program)]);
    says(&kaido(&["check", "p.p4", "-D", "WIDTH=8"], here.path()), 0, &["no errors"]);
    says(&kaido(&["check", "p.p4"], here.path()), 2, &["`WIDTH` is not declared"]);
    // Without a value the macro is 1: 9 bits with the preceding expression.
    let odd = ["-DWIDTH=8 +", "--define=WIDTH", "-D2=3", "-DW\n=1", "-D==1"];
    let said = [
        "`+` was not expected here",
        "this header has 9 bits",
        "`2` is not a valid macro name",
        "is not a valid macro name",
        "`` is not a valid macro name",
    ];
    for (define, why) in odd.into_iter().zip(said) {
        says(&kaido(&["check", "p.p4", define], here.path()), 2, &[why]);
    }
}

#[test]
fn tests_are_run() {
    let other = TEST.replace("0107ff$", "0108ff$");
    let here = directory(&[("p.p4", PROGRAM), ("good.stf", TEST), ("bad.stf", &other)]);
    says(&kaido(&["test", "p.p4", "good.stf"], here.path()), 0, &["good.stf: 9 lines passed"]);
    let failing = kaido(&["test", "p.p4", "good.stf", "bad.stf"], here.path());
    says(&failing, 1, &["bad.stf:6: another packet", "found    0107ff", "bad.stf: 1 failure"]);
    let json = kaido(&["test", "p.p4", "bad.stf", "--json"], here.path());
    let said = value_of(&["p4", "test"], &json.stdout);
    assert_eq!(said[0]["failures"][0]["line"], 6, "{said}");
}

const ENDLESS: &str = include_str!("../../../p4/tests/programs/parser_timeout.p4");
const VM: &str = include_str!("../../../p4/tests/programs/vm_filter.p4");

#[test]
fn a_test_that_cannot_hold_is_reported() {
    let here = directory(&[
        ("loop.p4", ENDLESS),
        ("loop.stf", "packet 0 00\nexpect 0 11\npacket 0 01\n"),
        ("vm.p4", VM),
        ("vm.stf", "publish net.utilisatoin 301\n"),
    ]);
    let said = kaido(&["test", "loop.p4", "loop.stf"], here.path());
    says(
        &said,
        0,
        &["loop.stf:3: packet dropped: instruction limit exceeded", "loop.stf: 3 lines passed"],
    );
    let unread = ["vm.stf:1: the program never reads `net.utilisatoin`", "`net.utilisation`"];
    says(&kaido(&["test", "vm.p4", "vm.stf"], here.path()), 1, &unread);
}

/// The program in docs/p4.md passes the test next to it, and its mistake is reported as documented.
#[test]
fn the_documented_program_passes_its_test() {
    const PAGE: &str = include_str!("../../../../docs/p4.md");
    let block = |begins: &str| {
        let (_, rest) = PAGE.split_once(begins).expect("the page has it");
        let (text, _) = rest.split_once("```\n").expect("it ends");
        text.to_owned()
    };
    let program = block("```p4\n");
    let test = block("`filter.stf`:\n\n```\n");
    let wrong = program.replace("ipv4.source: lpm", "ipv4.sorce: lpm");
    let here = directory(&[("filter.p4", &program), ("filter.stf", &test)]);
    says(&kaido(&["check", "filter.p4"], here.path()), 0, &["filter.p4: no errors, 1 table\n"]);
    let tested = kaido(&["test", "filter.p4", "filter.stf"], here.path());
    says(&tested, 0, &["filter.stf: 9 lines passed\n"]);
    let here = directory(&[("filter.p4", &wrong)]);
    let told = block("one run reports all of them:\n\n```console\n$ kaido p4 check filter.p4\n");
    says(&kaido(&["check", "filter.p4"], here.path()), 2, &[&told]);
}

#[test]
fn p4info_is_written_or_refused_with_a_reason() {
    let twice = PROGRAM.replace(
        "table t {",
        "@id(1) table u { actions = { drop; } default_action = drop(); } @id(1) table t {",
    );
    let one_name = PROGRAM.replace("action set", "@name(\"drop\") action set");
    let here = directory(&[("p.p4", PROGRAM), ("twice.p4", &twice), ("one_name.p4", &one_name)]);
    let why = "one_name.p4: p4info: `c.t`: duplicate action";
    says(&kaido(&["check", "one_name.p4"], here.path()), 2, &[why]);
    let lines = ["name: \"c.t\"", "alias: \"t\"", "match_type: EXACT", "arch: \"ubpf\""];
    says(&kaido(&["info", "p.p4"], here.path()), 0, &lines);
    let binary = kaido(&["info", "p.p4", "--binary"], here.path());
    assert!(binary.status.success() && binary.stdout.windows(3).any(|three| three == b"c.t"));
    let why = "twice.p4: `c.u` and `c.t` both have the id 0x02000001";
    says(&kaido(&["info", "twice.p4"], here.path()), 2, &[why]);
    let json = kaido(&["info", "p.p4", "--json"], here.path());
    let said = value_of(&["p4", "info"], &json.stdout);
    assert!(said["p4info"].as_str().is_some_and(|text| text.contains("c.set")), "{said}");
}

#[test]
fn objects_are_explained() {
    let here = directory(&[("text.o", "no ELF")]);
    let object = include_bytes!("../../../p4-object/tests/objects/by_clang.o");
    std::fs::write(here.path().join("object.o"), object).expect("a file");
    let lines =
        ["exact_defaultAction", "LPM trie", "entry:\n", "third:\n", "; map_lookup", "; third"];
    says(&kaido(&["explain", "object.o"], here.path()), 0, &lines);
    let json = kaido(&["explain", "object.o", "--json"], here.path());
    let said = value_of(&["p4", "explain"], &json.stdout);
    assert_eq!(said["maps"][2]["kind"], "LPM trie");
    // A helper that does not exist.
    let mut other = object.to_vec();
    let call = [0x85, 0, 0, 0, 9, 0, 0, 0];
    let at = other.windows(8).position(|window| window == call).expect("it calls helper 9");
    other[at + 4] = 77;
    std::fs::write(here.path().join("other.o"), other).expect("a file");
    let why = ["other.o: instruction", "`call helper 77`: no helper 77"];
    says(&kaido(&["explain", "other.o"], here.path()), 2, &why);
    says(&kaido(&["explain", "text.o"], here.path()), 2, &["text.o: it is not a valid ELF file"]);
    says(&kaido(&["explain", "/bin/true"], here.path()), 2, &["not for eBPF"]);
}

#[test]
fn a_file_that_is_not_a_program_is_refused() {
    let large = format!("// {}\n{PROGRAM}", "x".repeat(10 << 20));
    let here = directory(&[
        ("large.p4", &large),
        ("empty.p4", ""),
        ("p.p4", PROGRAM),
        ("odd.stf", "packet 1 00\npocket 1 00\n"),
        ("loop.p4", "#include \"loop.p4\"\n"),
    ]);
    std::fs::write(here.path().join("binary.p4"), [0xff, 0xfe, 0]).expect("a file");
    for (arguments, why) in [
        (&["check", "large.p4"][..], "larger than 4 MiB"),
        (&["check", "empty.p4"], "the program has no `main`"),
        (&["check", "none.p4"], "cannot read none.p4"),
        (&["check", "binary.p4"], "cannot read binary.p4"),
        (&["check", "."], "neither a file nor a pipe"),
        (&["check", "/dev/zero"], "neither a file nor a pipe"),
        (&["check", "loop.p4"], "loop.p4"),
        (&["test", "p.p4", "odd.stf"], "odd.stf: line 2: `pocket` is none of"),
        (&["test", "p.p4", "none.stf"], "cannot read none.stf"),
        (&["test", "p.p4"], "required"),
    ] {
        says(&kaido(arguments, here.path()), 2, &[why]);
    }
}

#[test]
fn programs_are_compiled() {
    let here = directory(&[("p.p4", PROGRAM)]);
    says(&kaido(&["compile", "p.p4"], here.path()), 0, &["p.o: ", " instructions, 2 maps"]);
    // The object contains its source positions and its P4Info.
    let lines = ["c_t_defaultAction", "entry:\n", "; p.p4:", "p.extract(", "; map_lookup"];
    says(&kaido(&["explain", "p.o"], here.path()), 0, &lines);
    says(&kaido(&["explain", "p.p4"], here.path()), 0, &lines);
    let object = std::fs::read(here.path().join("p.o")).expect("an object");
    assert!(object.windows(3).any(|three| three == b"c.t"), "it has p4info");
    let json = kaido(&["compile", "p.p4", "-o", "other.o", "--json"], here.path());
    let said = value_of(&["p4", "compile"], &json.stdout);
    assert_eq!(said["maps"], 2, "{said}");
    assert_eq!(std::fs::read(here.path().join("other.o")).expect("an object"), object);
}

#[test]
fn a_program_without_an_object_is_reported_and_leaves_no_file() {
    let misspelt = PROGRAM.replace("hdr.h.b = to", "hdr.h.bb = to");
    let half = PROGRAM.replace("bit<8> b;", "bit<4> b;").replace("bit<8> to", "bit<4> to");
    let here = directory(&[("bad.p4", &misspelt), ("half.p4", &half), ("p.p4", PROGRAM)]);
    says(&kaido(&["compile", "bad.p4"], here.path()), 2, &["bad.p4:13", "has no `bb`"]);
    let why = ["half.p4:", "not a whole number of bytes", "help: "];
    says(&kaido(&["compile", "half.p4"], here.path()), 2, &why);
    for same in ["p.p4", "./p.p4"] {
        let told = kaido(&["compile", "p.p4", "-o", same], here.path());
        says(&told, 2, &["p.p4, which is read here: write another file"]);
    }
    let nowhere = kaido(&["compile", "p.p4", "-o", "none/p.o"], here.path());
    says(&nowhere, 1, &["cannot write none/p.o: no directory none"]);
    let left = std::fs::read_dir(here.path()).expect("a directory").count();
    assert_eq!(left, 3, "something was left behind");
}
