//! Compiles the hand-written C programs that serve as baselines for P4.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=programs");
    let out = std::env::var("OUT_DIR").expect("cargo sets it");
    for file in std::fs::read_dir("programs").expect("the programs are there") {
        let path = file.expect("a file").path();
        if path.extension().is_none_or(|extension| extension != "c") {
            continue;
        }
        let object = Path::new(&out).join(path.file_name().expect("a name")).with_extension("o");
        let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
        let done = Command::new(clang)
            .args([
                "-target",
                "bpf",
                "-mcpu=v3",
                "-O2",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-fno-builtin",
            ])
            .arg("-c")
            .arg(&path)
            .arg("-o")
            .arg(&object)
            .status();
        match done {
            Ok(status) if status.success() => {}
            other => panic!("{}: clang -target bpf: {other:?}", path.display()),
        }
    }
}
