//! Imported labs of other tools.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Command;

use testkit::Machine;

use crate::kaido;

fn foreign(name: &str) -> String {
    format!("{}/../import/tests/files/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn each_program_is_imported_and_checked() {
    let kaido = kaido();
    for (name, lab) in [
        ("leaves.clab.yml", "two-leaves"),
        ("campus", "campus"),
        ("campus/lab.conf", "campus"),
        ("office.mn", "office"),
    ] {
        let out = kaido.directory().join(name.replace('/', "_")).with_extension("yaml");
        let out = out.to_str().unwrap();
        let said = kaido.run(&["lab", "import", &foreign(name), "-o", out]);
        assert!(said.stderr.contains("not carried over"), "{}", said.stderr);
        assert!(said.ok().contains(&format!("lab {lab} is in {out}")));
        assert!(kaido.ok(&["lab", "check", out]).contains(&format!("lab {lab},")));
        // An existing file, which may have been edited, is not overwritten.
        let again = kaido.run(&["lab", "import", &foreign(name), "-o", out]);
        again.failed(2, &[out, "is there already"]);
    }
    let campus = kaido.json(&["lab", "import", &foreign("campus")]);
    let notes = campus["notes"].as_array().unwrap();
    let has = |words: &str| notes.iter().any(|n| n["text"].as_str().unwrap().contains(words));
    assert!(has("pc1.startup") && has("kathara/frr"), "{notes:?}");
    assert!(campus["topology"].as_str().unwrap().contains("core: {router: frr}"));
}

#[test]
fn an_unknown_format_is_refused() {
    let kaido = kaido();
    let odd = kaido.file("odd.txt", "hello\n");
    kaido.run(&["lab", "import", &odd]).failed(2, &["odd.txt", "--from"]);
    let from = ["lab", "import", &odd, "--from", "kathara"];
    kaido.run(&from).failed(2, &["odd.txt", "not a line of a lab.conf", "pc1[0]"]);
    kaido.run(&["lab", "import", "/dev/zero"]).failed(2, &["neither a file nor a pipe"]);
}

#[test]
fn a_directory_of_others_leads_to_no_other_file() {
    let kaido = kaido();
    let [secret, directory] = ["secret", "directory"].map(|name| kaido.directory().join(name));
    std::fs::write(&secret, "root:hash\n").unwrap();
    std::fs::create_dir(&directory).unwrap();
    let import = |path: &std::path::Path| kaido.run(&["lab", "import", path.to_str().unwrap()]);
    symlink(&secret, directory.join("lab.conf")).unwrap();
    let said = import(&directory);
    assert!(!said.stderr.contains("hash"), "{}", said.stderr);
    said.failed(2, &["lab.conf is absolute, or leads outside its directory", "copy the file"]);
    std::fs::remove_file(directory.join("lab.conf")).unwrap();
    // Notes quote names: they must not control the terminal.
    std::fs::write(directory.join("lab.conf"), "pc1[0]=\"A\"\npc2[0]=\"A\"\n").unwrap();
    std::fs::write(directory.join("pc1\u{1b}]0;evil.startup"), "x\n").unwrap();
    let said = import(&directory);
    assert!(!said.stderr.contains('\u{1b}'), "{}", said.stderr);
    symlink(&secret, directory.join("pc1.startup")).unwrap();
    let said = import(&directory);
    assert!(!said.stderr.contains("hash"), "{}", said.stderr);
    said.failed(2, &["pc1.startup is absolute, or leads outside its directory"]);
}

#[test]
fn no_other_user_can_write_an_imported_file() {
    let kaido = kaido();
    let out = kaido.directory().join("out.yaml");
    let run = "umask 0; exec \"$0\" lab import \"$1\" --out \"$2\"";
    let status = Command::new("sh")
        .args(["-c", run, env!("CARGO_BIN_EXE_kaido"), &foreign("office.mn")])
        .arg(&out)
        .output()
        .unwrap();
    assert!(status.status.success(), "{status:?}");
    assert_eq!(out.metadata().unwrap().permissions().mode() & 0o7777, 0o644);
}

#[test]
fn root_an_imported_lab_comes_up() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    let office = kaido.ok(&["lab", "import", &foreign("office.mn")]);
    let lab = kaido.lab_up(&office);
    // Beyond two switches and two routers; 1% of the packets between these are lost.
    let said = lab.exec("h1", "ping -c 3 -W 2 10.0.3.2");
    assert!(said.contains("bytes from"), "{said}");
    lab.down();
    before.assert_restored(&kaido);
}
