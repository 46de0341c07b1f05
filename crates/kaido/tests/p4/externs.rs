//! Extern functions of a program that are written in C (`--extern`).

use std::path::Path;
use std::process::Command;

use super::{directory, kaido, says};

/// Calls two functions of a library, with its own map and a function of its own.
const PROGRAM: &str = "#include <ubpf_model.p4>

extern bit<32> mix(in bit<32> a, in bit<16> b);
extern bit<8> seen(bit<8> key);

header h_t { bit<32> a; bit<16> b; bit<8> key; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        hdr.h.a = mix(hdr.h.a, hdr.h.b);
        hdr.h.key = seen(hdr.h.key);
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr.h); } }
ubpf(prs(), c(), dprs()) main;
";

const LIBRARY: &str = "typedef unsigned long long u64;
struct ubpf_map_def { unsigned type, key_size, value_size, max_entries, nb_hash_functions; };
struct ubpf_map_def counts __attribute__((section(\"maps\"), used)) = {1, 4, 8, 16, 0};
static void *(*map_lookup)(void *map, const void *key) = (void *)1;

static __attribute__((noinline)) u64 twice(u64 x) { return 2 * x; }

u64 mix(u64 a, u64 b) { return twice(a) + b; }

u64 seen(u64 key)
{
\tunsigned at = key & 15;
\tu64 *count = map_lookup(&counts, &at);

\treturn count ? ++*count : 0;
}
";

/// Results are truncated to the type of the declaration.
const TEST: &str = "packet 1 00000003 0001 05
expect 1 00000007 0001 01
packet 1 80000001 ffff 05
expect 1 00010001 ffff 02
packet 1 00000000 0000 06
expect 1 00000000 0000 01
";

/// Compiles a C file of the directory to an object of the same name.
fn clang(directory: &Path, name: &str) {
    let (source, object) = (format!("{name}.c"), format!("{name}.o"));
    let arguments = ["-O2", "-g", "-target", "bpf", "-c", &source, "-o", &object];
    let said = Command::new("clang").args(arguments).current_dir(directory).output();
    let said = said.expect("clang builds Kaido's own BPF programs");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}

#[test]
fn functions_in_c_are_linked() {
    let here = directory(&[("p.p4", PROGRAM), ("lib.c", LIBRARY), ("p.stf", TEST)]);
    clang(here.path(), "lib");
    let here = here.path();
    says(&kaido(&["test", "p.p4", "p.stf", "--extern", "lib.o"], here), 0, &["6 lines passed"]);
    says(&kaido(&["compile", "p.p4", "--extern", "lib.o"], here), 0, &["p.o: ", "1 map"]);
    let listed = ["mix:\n", "twice:\n", "seen:\n", "counts", "lib.c:8"];
    says(&kaido(&["explain", "p.o"], here), 0, &listed);
    // Without the library, or with another one.
    let missing = ["p.p4:16", "extern function `mix` is not implemented", "--extern FILE"];
    says(&kaido(&["check", "p.p4"], here), 2, &missing);
    std::fs::write(here.join("half.c"), LIBRARY.replace("u64 mix(", "u64 mux(")).expect("a file");
    clang(here, "half");
    says(&kaido(&["check", "p.p4", "--extern", "half.o"], here), 2, &missing);
}

/// A library has the rights of the program: what it may not do is found when it is linked, or stops
/// the program.
#[test]
fn a_library_is_checked_like_a_program() {
    let here = directory(&[("p.p4", PROGRAM), ("p.stf", TEST), ("text.o", "no ELF")]);
    let library = |name: &str, from: &str, to: &str| {
        assert!(LIBRARY.contains(from));
        let text = LIBRARY.replace(from, to);
        std::fs::write(here.path().join(format!("{name}.c")), text).expect("a file");
        clang(here.path(), name);
    };
    library("helper", "(void *)1;", "(void *)77;");
    library(
        "twice",
        "struct ubpf_map_def counts",
        "u64 entry(void) { return 0; }\nstruct ubpf_map_def counts",
    );
    library("wild", "return count ? ++*count : 0;", "return *(u64 *)(key << 20);");
    library("endless", "return twice(a) + b;", "for (;;) asm volatile(\"\");");
    library(
        "outside",
        "static __attribute__((noinline)) u64 twice(u64 x) { return 2 * x; }",
        "u64 twice(u64 x);",
    );
    library("global", "return twice(a) + b;", "static volatile u64 last; last = a; return last;");
    library("named", "counts", "c_counts");
    for (name, wanted) in [
        ("helper", "no helper 77"),
        ("twice", "a function `entry`"),
        ("outside", "the function `twice`, which is not in the object"),
        ("global", "neither a map nor a function"),
        ("text", "not a valid ELF file"),
        ("missing", "missing.o"),
    ] {
        let object = format!("{name}.o");
        says(&kaido(&["check", "p.p4", "--extern", &object], here.path()), 2, &[wanted]);
    }
    // Two maps of one name.
    let twice = ["check", "p.p4", "--extern", "named.o"];
    says(&kaido(&twice, here.path()), 0, &["no errors"]);
    for name in ["wild", "endless"] {
        let object = format!("{name}.o");
        let said = kaido(&["test", "p.p4", "p.stf", "--extern", &object], here.path());
        says(&said, 1, &["p.stf:2: no packet was sent on port 1"]);
    }
    // A signature that registers do not hold.
    for of in [
        "extern bit<32> mix(out bit<32> a, in bit<16> b);",
        "extern bit<96> mix(in bit<32> a, in bit<16> b);",
    ] {
        let program = PROGRAM.replace("extern bit<32> mix(in bit<32> a, in bit<16> b);", of);
        let program = program.replace(
            "hdr.h.a = mix(hdr.h.a, hdr.h.b);",
            "hdr.h.a = (bit<32>)mix(hdr.h.a, hdr.h.b);",
        );
        std::fs::write(here.path().join("odd.p4"), program).expect("a file");
        let said = kaido(&["check", "odd.p4", "--extern", "named.o"], here.path());
        says(&said, 2, &["extern function `mix` is not implemented", "at most 64 bits"]);
    }
}
