//! Topology files of other people: a lab runs their commands as root, and `check` lists them.

use std::os::unix::fs::symlink;

use crate::kaido;

const PROGRAM: &str = include_str!("../clients/filter.p4");

const LAB: &str = "name: x
nodes:
  r1: {router: frr, config: \"log stdout\"}
  fw:
    router: linux
    functions:
      a: {rules: 'table inet a {}', health: {run: [sh, -c, \"id > /tmp/x; \\x1b[8m\"]}}
      b: {}
links: [r1-fw]
";

#[test]
fn check_lists_the_commands_of_a_topology_file() {
    let kaido = kaido();
    let file = kaido.file("lab.yaml", LAB);
    let said = kaido.ok(&["lab", "check", &file]);
    for line in [
        "runs as root on r1: vtysh: log stdout",
        "runs as root on fw: nft: table inet a {}",
        "runs as root on fw: sh -c id > /tmp/x; \\u{1b}[8m",
    ] {
        assert!(said.lines().any(|one| one == line), "{line}: {said}");
    }
    assert!(!said.contains('\x1b'), "nothing in the file controls the terminal");
    let runs = &kaido.json(&["lab", "check", &file])["runs"];
    assert_eq!(runs.as_array().unwrap().len(), 3, "{runs}");
    assert_eq!(runs[2]["user"], "root");
}

/// A topology file names files that its author may not be permitted to read.
#[test]
fn check_shows_nothing_of_files_elsewhere() {
    let kaido = kaido();
    let secret = kaido.file("secret.txt", "hidden-word:1:\n");
    let broken = kaido.file("secret.p4", "hidden-word is no program\n");
    let directory = kaido.directory().join("shared");
    std::fs::create_dir(&directory).unwrap();
    symlink(&secret, directory.join("link")).unwrap();
    symlink(&broken, directory.join("link.p4")).unwrap();
    std::fs::write(directory.join("own.p4"), "shown-word is no program\n").unwrap();
    std::fs::write(directory.join("good.p4"), PROGRAM).unwrap();
    let check = |node: &str, link: &str| {
        let file = directory.join("lab.yaml");
        let lab =
            format!("name: a\nnodes: {{h1: {{{node}}}, h2: {{}}}}\nlinks: [h1-h2: {{{link}}}]\n");
        std::fs::write(&file, lab).unwrap();
        let file = file.to_str().unwrap();
        let (said, json) =
            (kaido.run(&["lab", "check", file]), kaido.run(&["lab", "check", file, "--json"]));
        assert_eq!(said.code, Some(2), "{said}");
        format!("{said}{json}")
    };
    let tenant = |program: &str| format!("tenants: {{a: {{{program}, ports: {{h2: 1}}}}}}");
    for name in [&*secret, "../secret.txt", "link"] {
        for said in [
            check("", &format!("trace: {name}")),
            check("", &format!("delay: 1ms, jitter: {{file: {name}}}")),
            check(&tenant(&format!("program: good.p4, entries: {name}")), ""),
        ] {
            assert!(said.contains("outside of the topology file's directory"), "{name}: {said}");
            assert!(!said.contains("hidden-word"), "{name}: {said}");
        }
    }
    for name in [&*broken, "../secret.p4", "link.p4"] {
        let said = check(&tenant(&format!("program: {name}")), "");
        assert!(said.contains("outside of the topology file's directory"), "{name}: {said}");
        assert!(!said.contains("hidden-word"), "{name}: {said}");
    }
    assert!(check(&tenant("program: own.p4"), "").contains("shown-word"));
}
