//! Programs of tenants, which root compiles, include no file of others.

use std::os::unix::fs::symlink;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::{give_away, kaido};

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

/// A tenant owns the files that a tenants file names, and makes one of them a link.
#[test]
fn root_a_tenants_link_shows_no_file_of_others() {
    let kaido = kaido();
    let secret = kaido.file("secret", "hidden-word is no program\n");
    let good = kaido.file("good.p4", include_str!("../clients/filter.p4"));
    let directory = kaido.directory().join("tenant");
    std::fs::create_dir_all(directory.join("own")).unwrap();
    std::fs::write(directory.join("good.p4"), include_str!("../clients/filter.p4")).unwrap();
    std::fs::write(directory.join("own/a.p4"), "#include \"secret\"\n").unwrap();
    for (target, name) in [
        (&*secret, "theirs.p4"),
        (kaido.directory().to_str().unwrap(), "way"),
        (&good, "working.p4"),
    ] {
        symlink(target, directory.join(name)).unwrap();
        give_away(&directory.join(name));
    }
    symlink(&secret, directory.join("roots.p4")).unwrap();
    let run = |command: &[&str], program: &str| {
        let tenants = format!("tenants:\n  a: {{program: tenant/{program}, ports: {{eth1: 1}}}}\n");
        let tenants = kaido.file("tenants.yaml", &tenants);
        let command = command.iter().map(|word| if *word == "FILE" { &*tenants } else { word });
        kaido.run(&command.collect::<Vec<_>>())
    };
    let check = &["xsk", "check", "FILE"][..];
    for command in [
        check,
        &["xsk", "check", "FILE", "--json"],
        &["xsk", "run", "--config", "FILE", "--", "true"],
        &["p4", "attach", "--config", "FILE"],
    ] {
        for files in
            ["theirs.p4", "way/secret", "good.p4, entries: tenant/theirs.p4", "way/tenant/own/a.p4"]
        {
            let said = run(command, files);
            said.failed(
                2,
                &["it has errors, which are not shown", "symbolic link of another user"],
            );
            assert!(!said.to_string().contains("hidden-word"), "{files}: {said}");
        }
    }
    // Those of root, and those to programs without errors, are used.
    run(check, "roots.p4").failed(2, &["hidden-word"]);
    assert_eq!(run(check, "working.p4").code, Some(0));
}
