//! The unit for systemd: the rights that it removes from the daemon, and that the daemon works
//! without them.
//!
//! systemd itself runs in a guest (scripts/guest/unit.sh), as it must be PID 1 of a machine. Here,
//! other means apply the unit's settings to the daemon (capabilities, no new privileges, a private
//! read-only view of the file systems), and the daemon's system calls are compared with the unit's
//! filter.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::Duration;

use testkit::{Kaido, until};

use crate::functions::{expect, nft, ping};
use crate::health::{Function, SID};
use crate::machines::{PROGRAM, UNIT};

#[test]
fn root_systemd_has_nothing_against_the_unit() {
    let kaido = Kaido::new(env!("CARGO_BIN_EXE_kaido"));
    let unit = UNIT.replace(PROGRAM, env!("CARGO_BIN_EXE_kaido"));
    let file = kaido.file("kaido-dataplane.service", &unit);
    match Command::new("systemd-analyze").args(["verify", &file]).output() {
        Ok(said) => {
            let text = String::from_utf8_lossy(&said.stderr);
            // Ignore messages about other units.
            assert!(said.status.success() && !text.contains("kaido"), "{text}");
        }
        Err(error) => eprintln!("SKIPPED: no systemd-analyze: {error}"),
    }
}

/// The maximum exposure level of systemd-analyze, times ten.
const MOST_EXPOSED: &str = "--threshold=39";

#[test]
fn root_the_unit_restricts_the_daemon() {
    let kaido = Kaido::new(env!("CARGO_BIN_EXE_kaido"));
    let file = kaido.file("kaido-dataplane.service", UNIT);
    let arguments = ["security", "--offline=yes", "--no-pager", MOST_EXPOSED, &file];
    match Command::new("systemd-analyze").args(arguments).output() {
        Ok(said) => assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stdout)),
        Err(error) => eprintln!("SKIPPED: no systemd-analyze: {error}"),
    }
}

/// Returns a value of the unit.
fn value(key: &str) -> &'static str {
    let line = UNIT.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    line.unwrap_or_else(|| panic!("no {key}= in the unit"))
}

/// Returns the unit's capabilities in the syntax of `setpriv`.
fn capabilities() -> String {
    let names = value("CapabilityBoundingSet").split(' ');
    let names =
        names.map(|name| format!(",+{}", name.strip_prefix("CAP_").unwrap().to_lowercase()));
    format!("--bounding-set=-all{}", names.collect::<String>())
}

/// Returns the daemon's command as the unit starts it, after its first command; system calls are
/// logged in `calls`.
fn confined(function: &Function, calls: &str) -> Command {
    let run = function.net.kaido.run_directory();
    let run = run.to_str().unwrap();
    let first =
        value("ExecStartPre").strip_prefix("+nsenter --target 1 --mount /bin/sh -c \'").unwrap();
    let first = first.strip_suffix('\'').unwrap().replace("$$", "$").replace("/run/kaido", run);
    assert!(Command::new("sh").args(["-c", &first]).status().unwrap().success());
    // ProtectSystem=strict, ReadWritePaths=; /proc and /dev are other file systems. The locks of
    // network namespaces are in /run/kaido, which other tests may remove: this daemon has its own.
    let script = format!(
        "mount --rbind {run} {run} && mount --rbind {calls} {calls} && mount -o remount,bind,ro / && \
         mount -t tmpfs -o mode=0755 none /run && exec \
         setpriv --no-new-privs {} strace -D -f -qq -o {calls}/calls {} dataplane run",
        capabilities(),
        env!("CARGO_BIN_EXE_kaido"),
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "slave", "sh", "-c", &script]);
    command.env("KAIDO_RUN", run);
    command
}

/// Returns the names of the system calls that the unit's filter allows.
fn allowed() -> BTreeSet<String> {
    let listed = Command::new("systemd-analyze").args(["--no-pager", "syscall-filter"]).output();
    let listed = String::from_utf8(listed.unwrap().stdout).unwrap();
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut group = "";
    for line in listed.lines().filter(|line| !line.trim_start().starts_with('#')) {
        if line.starts_with('@') {
            group = line.trim();
        } else if !line.trim().is_empty() {
            groups.entry(group).or_default().push(line.trim());
        }
    }
    let mut left: Vec<&str> = value("SystemCallFilter").split(' ').collect();
    let mut names = BTreeSet::new();
    while let Some(name) = left.pop() {
        match groups.get(name) {
            Some(members) => left.extend(members),
            None => drop(names.insert(name.to_owned())),
        }
    }
    names
}

/// Returns the system calls that were made: `1234 openat(…`.
fn made(calls: &std::path::Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(calls).unwrap();
    let name = |line: &str| {
        let call = line.split_once(' ')?.1.trim_start();
        let name = call.split_once('(')?.0;
        name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_').then(|| name.to_owned())
    };
    text.lines().filter_map(name).collect()
}

#[test]
fn root_the_daemon_works_within_the_limits_of_its_unit() {
    let has = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    if !has("strace") || !has("systemd-analyze") {
        return eprintln!("SKIPPED: no strace, or no systemd-analyze");
    }
    let mut function = Function::new();
    function.net.end();
    nft(&function.net, "table inet f { chain f { type filter hook forward priority filter; }; }");
    let calls = function.net.kaido.directory().join("calls");
    std::fs::create_dir(&calls).unwrap();
    let confine = |function: &Function| confined(function, calls.to_str().unwrap());
    let command = confine(&function);
    function.net.start_as(command);
    // A check that needs more from the kernel than its own process.
    let timeout = Duration::from_secs(5).mul_f64(crate::net::slower()).as_millis();
    let check = format!("{{run: nft list chain inet f f, timeout: {timeout}ms, every: 200ms}}");
    function.net.apply(&function.file(&check));
    let up = |function: &Function| {
        let shown = function.net.show();
        let sids = shown["sids"].as_array().unwrap();
        let sid = sids.iter().find(|sid| sid["name"] == SID).unwrap();
        (sid["health"]["up"] == true && sid["health"]["runs"].as_u64() > Some(1)).then_some(())
    };
    until(Duration::from_secs(60), || up(&function), || function.net.log());
    expect(&function.net, "10.9.0.1", true);
    // Packets pass without the daemon, and the next one takes over the packets that are with the
    // function.
    function.net.kill();
    assert!(ping(&function.net, "10.9.0.1"));
    let mut all = made(&calls.join("calls"));
    let command = confine(&function);
    function.net.start_as(command);
    until(Duration::from_secs(60), || up(&function), || function.net.log());
    expect(&function.net, "10.9.0.1", true);
    function.net.kaido.ok(&["dataplane", "detach"]);
    function.net.end();
    all.extend(made(&calls.join("calls")));
    assert!(all.contains("bpf") && all.contains("execve"), "nothing was seen: {all:?}");
    let refused: Vec<_> = all.difference(&allowed()).cloned().collect();
    assert_eq!(refused, [""; 0], "not in SystemCallFilter=");
}
