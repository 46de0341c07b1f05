//! A local user, if root's umask makes files writable for everyone.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use testkit::{Kaido, Said, until};

use crate::{Ended, FILE, NOBODY, kaido, node, open};

/// Returns a command of Kaido with umask 000.
fn open_handed(kaido: &Kaido, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "umask 000; exec \"$K\" \"$@\"", "sh"]).args(arguments);
    command.env("K", env!("CARGO_BIN_EXE_kaido")).env("KAIDO_RUN", kaido.run_directory());
    command
}

/// Asserts that no other user can read or write anything in a directory.
fn assert_private(path: &Path) {
    let found = std::fs::symlink_metadata(path).unwrap();
    // A bound namespace has the kernel's own mode; the directory around it is closed.
    if found.file_type().is_symlink() || path.parent().is_some_and(|above| above.ends_with("netns"))
    {
        return;
    }
    assert_eq!(found.mode() & 0o077, 0, "{} {:o}", path.display(), found.mode());
    if found.is_dir() && !path.ends_with("bpf") {
        for entry in std::fs::read_dir(path).unwrap().flatten() {
            assert_private(&entry.path());
        }
    }
}

#[test]
fn root_no_other_user_gives_orders_with_any_umask() {
    let kaido = kaido();
    open(&kaido);
    let node = node();
    let file = kaido.file("file.yaml", FILE);
    let mut command = open_handed(&kaido, &["dataplane", "run", "--file", &file]);
    let daemon = Ended(node.run(|| command.spawn().unwrap()).unwrap());
    let shown = || kaido.run(&["dataplane", "show"]).code.filter(|code| *code == 0);
    until(Duration::from_secs(20), shown, || "the data plane does not respond".into());
    assert_private(&kaido.run_directory().join("dataplane"));
    let state = kaido.run_directory().join("dataplane");
    let mut apply = Command::new(env!("CARGO_BIN_EXE_kaido"));
    apply.args(["dataplane", "apply", &file, "--state"]).arg(&state).uid(NOBODY).gid(NOBODY);
    Said::run(&mut apply).failed(1, &["ermission denied"]);

    let yaml = kaido.file("lab.yaml", "name: x\ncontroller: true\nnodes: {h1: {}, r1: {router: linux}}\nlinks: [h1-r1: {engine: true}]\n");
    Said::run(&mut open_handed(&kaido, &["lab", "up", &yaml])).ok();
    assert_private(&kaido.run_directory().join("labs"));
    kaido.ok(&["lab", "down", "x"]);
    drop(daemon);
    let _ = nix::mount::umount(&state.join("bpf"));
}

#[test]
fn root_a_run_directory_that_others_write_to_is_refused() {
    let kaido = kaido();
    open(&kaido);
    let theirs = kaido.directory().join("theirs");
    std::fs::create_dir(&theirs).unwrap();
    private::Owner { user: NOBODY, group: NOBODY }.give_directory(&theirs).unwrap();
    let run = theirs.join("run");
    let file = kaido.file("lab.yaml", "name: x\nnodes: {h1: {}}\n");
    for arguments in [&["lab", "up", &file][..], &["lab", "down", "x"], &["lab", "gc"]] {
        let said = Said::run(kaido.command(arguments).env("KAIDO_RUN", &run));
        said.failed(2, &["theirs is not safe: it is user 65534's", "set KAIDO_RUN"]);
    }
    let mut daemon = kaido.command(&["dataplane", "run", "--state", run.to_str().unwrap()]);
    Said::run(&mut daemon).failed(2, &["is not safe", "--state"]);
    assert!(!run.exists());
}
