//! The restrictions on a foreign program's process, and that no program runs outside of it.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use capture::{Interface, Writer};
use testkit::{until, value_of};

use super::running::{Running, children};
use super::{PROGRAM, directory, says};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Writes a capture of this number of packets.
fn capture(directory: &Path, packets: u64) {
    let mut writer = Writer::begin(Vec::new(), &[Interface::default()], 0).expect("memory");
    for at in 0..packets {
        writer.packet(0, at * 1000, &[1, 7, 0], "").expect("memory");
    }
    let bytes = writer.finish().expect("memory");
    std::fs::write(directory.join("in.pcapng"), bytes).expect("a file");
}

fn status(process: u32, field: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    Some(line.trim().to_owned())
}

/// Returns true if the process has code that was generated, not mapped from a file: a program's.
fn has_made_code(process: u32) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).expect("it runs");
    maps.lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_code = fields[1].contains('x') && fields.get(4) == Some(&"0");
        is_code && !fields.get(5).is_some_and(|name| name.starts_with("[v"))
    })
}

/// Returns the process that runs the program of a command, and asserts that no program runs in the
/// command itself.
#[track_caller]
fn runs_apart(command: u32) -> u32 {
    let filtered = |process: &u32| status(*process, "Seccomp").as_deref() == Some("2");
    let ready =
        || children(command).into_iter().find(|child| filtered(child) && has_made_code(*child));
    let child = until(TIMEOUT, ready, || format!("children: {:?}", children(command)));
    assert!(!has_made_code(command), "a program's code in the command's own process");
    assert_eq!(status(child, "CapEff").as_deref(), Some("0000000000000000"));
    assert_eq!(status(child, "NoNewPrivs").as_deref(), Some("1"));
    child
}

/// With P4Runtime, clients may set their own programs.
#[test]
fn a_capture_beside_p4runtime_has_its_program_in_the_sandbox() {
    let here = directory(&[("p.p4", PROGRAM)]);
    capture(here.path(), 3);
    let running = Running::start(&["p.p4", "--pcap", "in.pcapng"], here.path());
    runs_apart(running.id());
    assert_eq!(running.end()["all"], 3);
}

#[test]
fn a_capture_alone_has_its_program_in_the_sandbox() {
    let here = directory(&[("p.p4", PROGRAM)]);
    // Enough packets to take a while; the command is killed before they are processed.
    capture(here.path(), 2_000_000);
    let mut command = Command::new(env!("CARGO_BIN_EXE_kaido"));
    command.args(["p4", "run", "p.p4", "--pcap", "in.pcapng"]).current_dir(here.path());
    let mut running = command.stdout(Stdio::null()).spawn().expect("it starts");
    let child = std::panic::catch_unwind(|| runs_apart(running.id()));
    running.kill().expect("it still runs");
    running.wait().expect("it ends");
    child.expect("a process");
}

/// The user is neither root nor one of other services.
#[test]
fn root_each_program_has_a_user_of_its_own() {
    let here = directory(&[("p.p4", PROGRAM)]);
    let [one, other] = [0, 1].map(|_| Running::start(&["p.p4"], here.path()));
    let users = [&one, &other].map(|running| {
        let child = runs_apart(running.id());
        let user = status(child, "Uid").expect("it runs");
        let user: Vec<u32> = user.split_whitespace().map(|id| id.parse().expect("an id")).collect();
        assert!(user.iter().all(|id| *id == user[0] && *id >= 0x7f00_0000), "{user:?}");
        user[0]
    });
    assert_ne!(users[0], users[1]);
}

/// Runs the command as root without the rights to create namespaces and to change the user, like in
/// many containers.
fn without_rights(arguments: &[&str], directory: &Path) -> Output {
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", "-sys_admin,-setuid,-setgid", env!("CARGO_BIN_EXE_kaido")]);
    command.args(arguments).current_dir(directory).output().expect("setpriv runs")
}

#[test]
fn root_a_program_that_cannot_be_isolated_does_not_run() {
    let here = directory(&[("p.p4", PROGRAM)]);
    capture(here.path(), 3);
    let run = ["p4", "run", "p.p4", "--pcap", "in.pcapng"];
    let refused = without_rights(&run, here.path());
    let missing = [
        "cannot isolate the program's process",
        "network namespace",
        "empty root",
        "another user than root",
    ];
    says(&refused, 2, &missing);
    let reduced = [&run[..], &["--isolation", "reduced"]].concat();
    let lacks = "kaido: warning: the program's process has no network namespace";
    says(&without_rights(&reduced, here.path()), 0, &[lacks, "3 packets"]);
    let json = without_rights(&[&reduced[..], &["--json"]].concat(), here.path());
    let said = value_of(&["p4", "run"], &json.stdout);
    let lacks = said["isolation_lacks"].as_array().expect("a list");
    assert!(lacks.contains(&"empty root".into()), "{said}");
    let doctor = without_rights(&["doctor", "--json"], here.path());
    let found = value_of(&["doctor"], &doctor.stdout);
    let mut found = found.as_array().into_iter().flatten();
    let isolation = found.find(|one| one["what"] == "isolation").expect("it looks");
    assert_eq!(isolation["ok"], false, "{isolation}");
}

/// In a mount namespace without control groups.
#[test]
fn root_a_missing_cpu_limit_is_reported() {
    let here = directory(&[("p.p4", PROGRAM)]);
    capture(here.path(), 3);
    let kaido = env!("CARGO_BIN_EXE_kaido");
    let script = format!(
        "umount --recursive /sys/fs/cgroup && exec {kaido} p4 run p.p4 --pcap in.pcapng --cpu 50"
    );
    let run = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script]).current_dir(here.path());
        command.output().expect("unshare runs")
    };
    says(
        &run(&script),
        0,
        &["the program's process has no CPU limit of a control group", "3 packets"],
    );
    let said = value_of(&["p4", "run"], &run(&format!("{script} --json")).stdout);
    assert_eq!(said["isolation_lacks"], serde_json::json!(["CPU limit of a control group"]));
}

#[test]
fn root_this_machine_isolates_programs() {
    let here = directory(&[("p.p4", PROGRAM)]);
    capture(here.path(), 3);
    let arguments = ["p4", "run", "p.p4", "--pcap", "in.pcapng", "--json"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_kaido"));
    let json = command.args(arguments).current_dir(here.path()).output().expect("it runs");
    let said = value_of(&["p4", "run"], &json.stdout);
    assert_eq!(said["isolation_lacks"], serde_json::json!([]), "{said}");
}
