//! Clients that the library cannot judge.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use super::{assert_empty, kaido, run};

/// User of no other program.
const STRANGER: u32 = 65534;

#[test]
fn a_client_that_cannot_be_preloaded_is_refused() {
    let kaido = kaido();
    let advice = "`kaido p4 attach` runs programs on its interfaces without it";
    let mut program = std::fs::read("/bin/true").expect("it is installed");
    // Without its dynamic linker, a program is a static one.
    let headers = usize::from(program[56]);
    let header = |at: usize| 64 + 56 * at;
    let at = (0..headers).map(header).find(|at| program[*at..at + 4] == [3, 0, 0, 0]);
    program[at.expect("it is dynamic")] = 0;
    let path = kaido.directory().join("static");
    std::fs::write(&path, &program).expect("a file");
    let mode = |mode| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(&path, mode(0o755)).expect("it is this user's");
    let client = path.to_str().expect("it is ASCII");
    run(&kaido, &[], &[client]).failed(2, &["static` is linked statically", advice]);
    program[4] = 1;
    std::fs::write(&path, &program).expect("a file");
    run(&kaido, &[], &[client]).failed(2, &["static` is of another architecture", advice]);
    assert_empty(&kaido);
}

#[test]
fn root_a_client_that_runs_as_another_user_is_refused() {
    let kaido = kaido();
    let path = kaido.directory().join("other");
    std::fs::copy("/bin/true", &path).expect("a file");
    let owner = STRANGER.to_string();
    let changed = Command::new("chown").arg(owner).arg(&path).status();
    assert!(changed.expect("it is installed").success());
    let mode = std::fs::Permissions::from_mode(0o4755);
    std::fs::set_permissions(&path, mode).expect("root may do this");
    let client = path.to_str().expect("it is ASCII");
    run(&kaido, &[], &[client]).failed(2, &["other` runs as another user", "`kaido p4 attach`"]);
    assert_empty(&kaido);
}
