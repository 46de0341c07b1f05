//! Programs of tenants, which root compiles, include no file of others.

use std::os::unix::fs::symlink;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::kaido;

const PROGRAM: &str = "#include <ubpf_model.p4>
@leak(
#include \"NAME\"
)
struct headers {}
struct metadata {}
parser P(packet_in packet, out headers h, inout metadata m, inout standard_metadata s) {
    state start { transition accept; }
}
control I(inout headers h, inout metadata m, inout standard_metadata s) { apply {} }
control D(packet_out packet, in headers h) { apply {} }
ubpf(P(), I(), D()) main;
";

#[test]
fn an_include_leads_to_no_file_outside_of_its_directory() {
    let kaido = kaido();
    let secret = kaido.file("secret", "a secret");
    let directory = kaido.directory().join("tenant");
    std::fs::create_dir_all(directory.join("below")).unwrap();
    std::fs::write(directory.join("part.p4"), "a part").unwrap();
    std::fs::write(directory.join("below/more.p4"), "#include \"../part.p4\"\n").unwrap();
    symlink(&secret, directory.join("link.p4")).unwrap();
    mkfifo(&directory.join("pipe.p4"), Mode::from_bits_truncate(0o600)).unwrap();
    let check = |name: &str| {
        let file = directory.join("program.p4");
        std::fs::write(&file, PROGRAM.replace("NAME", name)).unwrap();
        kaido.run(&["p4", "check", file.to_str().unwrap()])
    };
    for name in [&*secret, "../secret", "link.p4", "below/../../secret"] {
        let said = check(name);
        assert_eq!(said.code, Some(2), "{name}: {said}");
        assert!(said.stderr.contains("leads outside its directory"), "{name}: {said}");
        assert!(!said.stderr.contains("a secret"), "{name}: {said}");
    }
    // A pipe without a writer is empty.
    for name in ["pipe.p4", "part.p4", "below/more.p4", "./below/../part.p4"] {
        let said = check(name);
        assert_eq!(said.code, Some(0), "{name}: {said}");
    }
}
