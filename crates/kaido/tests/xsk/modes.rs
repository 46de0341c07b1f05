//! A local user, and a client's sockets.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use testkit::Said;

use super::{TIMEOUT, kaido};

/// User and group of no other program.
const STRANGER: u32 = 65534;

#[test]
fn root_no_other_user_controls_a_client_with_any_umask() {
    let kaido = kaido();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(kaido.directory(), open).expect("it is this user's");
    let mut command = Command::new("sh");
    command.args(["-c", "umask 000; exec \"$K\" xsk run --config \"$C\" -- sleep 300"]);
    command.env("K", env!("CARGO_BIN_EXE_kaido")).env("KAIDO_RUN", kaido.run_directory());
    let mut child = command.env("C", kaido.directory().join("tenants.yaml")).spawn().expect("sh");
    let served = || kaido.run(&["xsk", "stats"]).code.filter(|code| *code == 0);
    testkit::until(TIMEOUT, served, || "it does not respond".to_owned());
    let directory = kaido.run_directory().join("xsk/default");
    let mode =
        |name: &str| std::fs::metadata(directory.join(name)).expect("it is there").mode() & 0o7777;
    let modes = ["..", ".", "control.sock", "p4runtime.sock"].map(mode);
    let command = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kaido"));
        command.args(arguments).env("KAIDO_RUN", kaido.run_directory());
        Said::run(command.uid(STRANGER).gid(STRANGER))
    };
    let listed = command(&["xsk", "ls"]);
    let detached = command(&["xsk", "detach", "eth1"]);
    let process = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGTERM).expect("it runs");
    child.wait().expect("it ends");
    assert_eq!(modes, [0o700, 0o700, 0o600, 0o600]);
    for said in [listed, detached] {
        said.failed(1, &["ermission denied"]);
    }
}
