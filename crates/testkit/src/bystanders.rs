//! Bystanders: objects similar to a lab's, which no command of Kaido may touch.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A network namespace pinned by a file, with a bridge and a veth pair named like a lab's, and a
/// process in it named like one of FRR's.
#[derive(Debug)]
pub struct Bystanders {
    process: Child,
    directory: TempDir,
    identity: String,
}

const SCRIPT: &str = "\
    ip link set lo up
    ip link add sr-local type bridge
    ip link add r1 type veth peer name r2
    ip address add 10.0.1.1/24 dev r1
    ip link set r1 up
    touch \"$1/netns\"
    mount --bind /proc/self/ns/net \"$1/netns\"
    echo ready
    exec -a zebra sleep infinity";

impl Bystanders {
    /// Creates all objects. Dropping the value removes them.
    pub fn new() -> Self {
        let directory = tempfile::tempdir().expect("the temporary directory takes a directory");
        let mut process = Command::new("unshare")
            .args(["--net", "bash", "-ec", SCRIPT, "bystander"])
            .arg(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare runs");
        let mut ready = String::new();
        let output = process.stdout.as_mut().expect("it is a pipe");
        BufReader::new(output).read_line(&mut ready).expect("the bystander says that it is ready");
        assert_eq!(ready, "ready\n");
        let mut bystanders = Self { process, directory, identity: String::new() };
        bystanders.identity = bystanders.look();
        bystanders
    }

    /// Asserts that the objects are unchanged.
    #[track_caller]
    pub fn assert_untouched(&mut self) {
        let ended = self.process.try_wait().expect("it is this process's child");
        assert!(ended.is_none(), "the bystander was ended: {ended:?}");
        assert_eq!(self.look(), self.identity);
    }

    /// Returns the state of the objects that could change.
    fn look(&self) -> String {
        let namespace = self.directory.path().join("netns");
        let output = Command::new("nsenter")
            .arg(format!("--net={}", namespace.display()))
            .args(["sh", "-ec", "ip address; ip route; readlink /proc/self/ns/net"])
            .output()
            .expect("nsenter runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Default for Bystanders {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Bystanders {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        // A mount would prevent the removal of the directory.
        let _ = nix::mount::umount2(
            &self.directory.path().join("netns"),
            nix::mount::MntFlags::MNT_DETACH,
        );
    }
}
