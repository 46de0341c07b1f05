//! Pipes and source files of other users.

use std::io::Read as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::{Ended, give_away, kaido, open, python};

const PROGRAM: &str = include_str!("../clients/filter.p4");

/// The pipe has neither a writer nor a reader.
#[test]
fn root_a_pipe_of_another_user_is_not_waited_for() {
    let kaido = kaido();
    let program = kaido.file("filter.p4", PROGRAM);
    let pipe = kaido.directory().join("pipe.yaml");
    mkfifo(&pipe, Mode::S_IRWXU).unwrap();
    give_away(&pipe);
    let pipe = pipe.to_str().unwrap();
    for (command, code) in [
        (&["p4", "compile", &program, "-o", pipe][..], 1),
        (&["p4", "check", pipe], 2),
        (&["lab", "check", pipe], 2),
        (&["lab", "import", pipe], 2),
        (&["xsk", "check", pipe], 2),
        (&["dataplane", "check", pipe], 2),
    ] {
        kaido.run(command).failed(code, &["the pipe belongs to another user"]);
    }
}

/// Opening a device may have effects, such as the start of a watchdog.
#[test]
fn root_a_device_behind_a_link_of_another_user_is_not_opened() {
    let kaido = kaido();
    let link = kaido.directory().join("device.yaml");
    symlink("/dev/random", &link).unwrap();
    let link = link.to_str().unwrap();
    for command in [["lab", "check"], ["lab", "import"], ["p4", "check"], ["dataplane", "check"]] {
        kaido.run(&[&command[..], &[link]].concat()).failed(2, &["it is a device"]);
    }
    kaido.run(&["lab", "check", "/dev/null"]).failed(2, &["neither a file nor a pipe"]);
    let empty = "cat /dev/null | \"$K\" lab check /dev/stdin";
    kaido.script(empty).failed(2, &[]);
}

/// open(2) waits 45 s for the holder of a lease.
const LEASE: &str = "import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
file = open(sys.argv[1], 'r+')
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print('held', flush=True)
signal.pause()
";

#[test]
fn root_a_lease_of_another_user_is_not_waited_for() {
    let kaido = kaido();
    open(&kaido);
    let program = kaido.file("filter.p4", PROGRAM);
    let tenants = "tenants:\n  a: {program: filter.p4, ports: {eth1: 1}}\n";
    let tenants = kaido.file("tenants.yaml", tenants);
    give_away(Path::new(&program));
    let mut holder = python(LEASE, &[Path::new(&program)]);
    let mut holder = Ended(holder.stdout(Stdio::piped()).spawn().unwrap());
    let mut said = [0; 5];
    holder.0.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
    let why = "its owner holds a lease on it";
    kaido.run(&["xsk", "check", &tenants]).failed(2, &[why]);
    kaido.run(&["p4", "check", &program]).failed(2, &[why]);
    kaido.run(&["p4", "compile", &program, "-o", &program]).failed(2, &[]);
}

/// A pipe without a name belongs to the user who calls sudo.
#[test]
fn root_the_pipe_of_a_shell_is_read() {
    let kaido = kaido();
    let program = kaido.file("filter.p4", PROGRAM);
    let script = "setpriv --reuid 65534 --clear-groups sh -c 'exec cat' < \"$2\" | \"$1\" p4 check /dev/stdin";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_kaido"), &program]);
    let said = testkit::Said::run(&mut command);
    assert!(said.stdout.contains("/dev/stdin: no errors"), "{said}");
}

/// An object names its source file, and another user may replace that.
#[test]
fn root_an_object_shows_no_files_outside_of_its_directory() {
    let kaido = kaido();
    let directory = kaido.directory().join("theirs");
    std::fs::create_dir(&directory).unwrap();
    let secret = kaido.file("secret", &"a secret\n".repeat(200));
    let [program, object] = ["a.p4", "a.o"].map(|name| directory.join(name));
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    std::fs::write(&program, PROGRAM).unwrap();
    kaido.ok(&["p4", "compile", &text(&program)]);
    assert!(kaido.ok(&["p4", "explain", &text(&object)]).contains("; "), "its own source");
    std::fs::remove_file(&program).unwrap();
    symlink(&secret, &program).unwrap();
    assert!(!kaido.ok(&["p4", "explain", &text(&object)]).contains("a secret"));
    // An object elsewhere names a file that is not below its directory.
    let other = kaido.file("filter.p4", PROGRAM);
    kaido.ok(&["p4", "compile", &other, "-o", &text(&object)]);
    assert!(!kaido.ok(&["p4", "explain", &text(&object)]).contains("filter.p4:"));
}
