//! Topology files of other people: a lab runs their commands as root, and `check` lists them.

use crate::kaido;

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
