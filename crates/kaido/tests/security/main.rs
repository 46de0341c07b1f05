//! Attacks on the boundaries of docs/security.md, with the real binary, by users without rights.
//! All tests need root, to switch to these users.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

mod frr;
mod includes;
mod lab_file;
mod locks;
mod machines;
mod metrics;
mod modes;
mod page;
mod pipes;
mod planted;

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};

use netlink::Namespace;
use testkit::{Kaido, Said};

/// The user without rights.
const NOBODY: u32 = 65534;

/// Returns the binary under test, with its own directory.
fn kaido() -> Kaido {
    Kaido::new(env!("CARGO_BIN_EXE_kaido"))
}

/// Returns a Python program that runs as an unprivileged user.
fn python(program: &str, arguments: &[&Path]) -> Command {
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-c", program]).args(arguments).uid(NOBODY).gid(NOBODY);
    command
}

/// Lets every user reach the directory of the test, so that only Kaido's own modes keep them out.
fn open(kaido: &Kaido) {
    use std::os::unix::fs::PermissionsExt;
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(kaido.directory(), open).unwrap();
}

/// Creates a namespace with a veth pair, l and r, that are up.
fn node() -> Namespace {
    let node = Namespace::unnamed().unwrap();
    let lines = [
        "link add name l type veth peer name r",
        "link set dev l up",
        "link set dev r up",
        "link set dev lo up",
    ];
    for line in lines {
        let mut ip = Command::new("ip");
        ip.args(line.split(' '));
        node.run(|| Said::run(&mut ip)).unwrap().ok();
    }
    node
}

/// The data plane file for [`node`].
const FILE: &str = "ports: { l: {}, r: {} }\n";

/// A process that is killed on drop.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Makes another user the owner of a file, which may be a link.
fn give_away(path: &Path) {
    let given = Command::new("chown").args(["-h", "nobody"]).arg(path).status().unwrap();
    assert!(given.success());
}
