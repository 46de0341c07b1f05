//! The files in `labs/`, and the first file in docs/topology.md: their tests pass.

use std::process::Command;

use testkit::{Kaido, Machine};

use crate::{file_in_labs, kaido};

const DOCUMENTED: &str = include_str!("../../../../docs/topology.md");

fn holds(name: &str) {
    let kaido = kaido();
    file_holds(&kaido, &file_in_labs(name));
}

fn file_holds(kaido: &Kaido, file: &str) {
    let before = Machine::now(kaido);
    let said = kaido.run(&["lab", "test", file]);
    assert_eq!(said.code, Some(0), "{said}");
    before.assert_restored(kaido);
}

#[test]
fn root_the_documented_file() {
    let (_, behind) = DOCUMENTED.split_once("```yaml\n").unwrap();
    let (text, _) = behind.split_once("```").unwrap();
    let kaido = kaido();
    file_holds(&kaido, &kaido.file("lab.yaml", text));
}

#[test]
fn root_the_papers_network_with_rip() {
    holds("paper-rip.yaml");
}

#[test]
fn root_an_ospf_fabric() {
    holds("ospf-fabric.yaml");
}

#[test]
fn root_two_branches() {
    holds("paper-path.yaml");
}

#[test]
fn root_functions() {
    holds("functions.yaml");
}

#[test]
fn root_an_srv6_core() {
    holds("srv6-core.yaml");
}

#[test]
fn root_a_cellular_trace() {
    holds("cellular.yaml");
}

#[test]
fn root_a_fabric_of_a_thousand_nodes() {
    holds("leaf-spine-1000.yaml");
}

#[test]
fn the_fabrics_script_writes_the_fabrics_file() {
    let script = file_in_labs("leaf-spine.sh");
    let arguments = ["10", "90", "10", "leaf-spine-1000"];
    let output = Command::new(&script).args(arguments).output().unwrap();
    let file = std::fs::read(file_in_labs("leaf-spine-1000.yaml")).unwrap();
    assert!(output.stdout == file, "run {script} {arguments:?} again");
    let small = Command::new(&script).args(["2", "3", "1"]).output().unwrap();
    let text = String::from_utf8(small.stdout).unwrap();
    let topology = topology_file::parse("small.yaml", &text).unwrap();
    assert_eq!((topology.nodes.len(), topology.segments.len()), (8, 9));
    assert_eq!(Command::new(&script).output().unwrap().status.code(), Some(2));
}
