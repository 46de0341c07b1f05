//! The guide of docs/xsk.md.

use testkit::{Machine, Page};

use crate::labs::kaido;

const PAGE: &str = include_str!("../../../../docs/xsk.md");

#[test]
fn root_the_guide_with_a_lab_works_as_it_is_written() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    let said = Page::part(PAGE, "### Run a lab").run(&kaido);
    assert!(said.contains("3 received") && said.contains("entry added"), "{said}");
    before.assert_restored(&kaido);
}

#[test]
fn root_the_guide_without_a_lab_works_as_it_is_written() {
    let kaido = kaido();
    let files = tempfile::tempdir().expect("/tmp takes a directory");
    let page = Page::part(PAGE, "### Start the switch yourself")
        .replace("/run/kaido-ovs", &files.path().join("ovs"))
        .wait_after("kaido xsk run", "kaido xsk ls | grep -q ovs-vswitchd")
        .wait_after("type=afxdp", "kaido xsk stats | grep -q '^eth3 '");
    let said = page.run(&kaido);
    assert!(said.contains("3 received") && said.contains("entry added"), "{said}");
    let left = std::fs::read_dir(kaido.run_directory().join("xsk")).expect("it was made");
    assert_eq!(left.count(), 0, "{said}");
    assert!(kaido.run(&["lab", "ls"]).ok().contains("no lab"), "{said}");
}
