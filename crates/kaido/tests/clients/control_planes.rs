//! P4Runtime clients of others change the program of a switch that forwards.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use crate::bed::Bed;
use crate::openvswitch::{answers, start};

/// Runs a session of a client, which drops h1's packets until it gets a line.
fn session(tool: &str, script: &str) {
    let bed = Bed::new("");
    let mut switch = start(&bed);
    let python = format!("{}/../tools/{tool}/bin/python", env!("CARGO_TARGET_TMPDIR"));
    let mut command = Command::new(&python);
    // gRPC's C library sends the path as the authority, and `/` is not valid there.
    command.args(["-c", script, "unix:p4runtime.sock", "1"]);
    command.current_dir(bed.kaido.run_directory().join("xsk/default")).env_remove("PYTHONPATH");
    // The generated code of p4runtime-shell is too old for protobuf's faster implementations.
    if tool == "p4runtime-shell" {
        command.env("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python");
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|why| {
        panic!("{python}: {why}: `scripts/deps.sh --lint` installs {tool}");
    });
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut next = || lines.next().map(|line| line.expect("lines of text"));
    assert!(answers(&bed));
    assert_eq!(next().as_deref(), Some("added"));
    assert!(!answers(&bed), "dropped");
    writeln!(child.stdin.take().expect("a pipe")).expect("it reads");
    assert_eq!(next().as_deref(), Some("deleted"));
    assert!(answers(&bed), "passes again");
    assert!(child.wait().expect("it is a child").success());
    switch.assert_running();
}

#[test]
fn root_p4runtime_shell_changes_an_attached_program() {
    session("p4runtime-shell", include_str!("shell.py"));
}

#[test]
fn root_finsy_changes_an_attached_program() {
    session("finsy", include_str!("finsy.py"));
}
