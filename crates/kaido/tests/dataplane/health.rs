//! The check of a function: while it fails, the SID is not announced, and no packet bypasses the
//! rules.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use testkit::until;

use crate::functions::{nft, ping};
use crate::net::{Net, ip, show};

const TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) const SID: &str = "fd00:1::f:0:0/112";

/// The node's function, with a check that succeeds while a file exists.
pub(crate) struct Function {
    pub(crate) net: Net,
    works: PathBuf,
}

impl Function {
    pub(crate) fn new() -> Self {
        let mut net = crate::functions::function_net();
        let works = net.kaido.directory().join("works");
        std::fs::write(&works, "").unwrap();
        net.start(&[]);
        Self { net, works }
    }

    /// Returns the data plane file with this check of the function.
    pub(crate) fn file(&self, check: &str) -> String {
        let health = format!("{{behavior: End.AN.NF, health: {check}}}");
        crate::functions::FILE.replace("End.AN.NF", &health)
    }

    /// Returns a check that reads the file and prints its contents.
    pub(crate) fn check(&self) -> String {
        let works = self.works.display();
        let slower = crate::net::slower();
        let timeout = Duration::from_millis(300).mul_f64(slower).as_millis();
        format!("{{run: [sh, -c, \"cat {works} || exit 7\"], timeout: {timeout}ms}}")
    }

    pub(crate) fn fails(&self) {
        std::fs::remove_file(&self.works).unwrap();
    }

    pub(crate) fn works(&self) {
        std::fs::write(&self.works, "").unwrap();
    }

    fn shown(&self) -> Value {
        let shown = self.net.show();
        let sids = shown["sids"].as_array().unwrap();
        sids.iter().find(|sid| sid["name"] == SID).unwrap()["health"].clone()
    }

    /// Waits until the function is up, or down.
    #[track_caller]
    fn wait(&self, up: bool) {
        let is = || (self.shown()["up"] == up && self.is_announced() == up).then_some(());
        until(Duration::from_secs(20), is, || format!("{}\n{}", self.shown(), self.net.log()));
    }

    fn is_announced(&self) -> bool {
        show(&self.net.node, "-6 route show proto 76").contains(SID)
    }

    /// Asserts that the node's kernel does not forward packets to the SID.
    #[track_caller]
    fn assert_guarded(&self) {
        let got = self.net.node.run(|| {
            let get = ["-6", "route", "get", "fd00:1::f:0:1111"];
            std::process::Command::new("ip").args(get).output().unwrap()
        });
        let got = got.unwrap();
        let said = [got.stdout, got.stderr].concat();
        let said = String::from_utf8(said).unwrap();
        // EHOSTUNREACH, the error of an unreachable route; without a route it is ENETUNREACH.
        assert!(said.contains("No route to host"), "{said}");
    }
}

/// Returns true if a process runs a command with this argument.
fn runs(word: &str) -> bool {
    let runs = |directory: &Path| {
        std::fs::read(directory.join("cmdline")).is_ok_and(|line| {
            line.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())
        })
    };
    let all = std::fs::read_dir("/proc").unwrap();
    all.flatten().any(|entry| runs(&entry.path()))
}

#[test]
fn root_a_function_that_fails_is_withdrawn_and_comes_back() {
    let function = Function::new();
    let net = &function.net;
    // A less specific route, which must not be used.
    ip(&net.node, &["-6 route add default via fd00:b::2"]);
    nft(
        net,
        "table ip f { chain f { type filter hook forward priority filter; ip ttl 9 drop; }; }",
    );
    let plan = |check: &str| net.kaido.file("dataplane.yaml", &function.file(check));
    net.apply(&function.file(&function.check()));
    function.wait(true);
    function.assert_guarded();

    function.fails();
    function.wait(false);
    function.assert_guarded();
    let health = function.shown();
    let why = health["failure"].as_str().unwrap();
    assert!(why.starts_with("exit status 7: cat: ") && why.contains("No such file"), "{why}");
    assert!(
        net.log().contains(&format!("the function {SID} is down, and its route withdrawn: {why}"))
    );
    let text = net.kaido.ok(&["dataplane", "show"]);
    assert!(text.contains("HEALTH") && text.contains("failed in a row: exit status 7"), "{text}");
    let listed = net.kaido.json(&["function", "ls"]);
    assert_eq!(listed[0]["health"]["up"], false, "{listed}");
    // Packets that still arrive pass the rules.
    assert!(ping(net, "-t 8 10.9.0.1"));
    assert!(!ping(net, "-t 9 10.9.0.1"));

    // After an unrelated change, the end of the daemon or its restart, the function is still down.
    let other = function.file(&function.check()).replace("r: {}", "r: {mode: native}");
    net.apply(&other);
    assert!(!function.is_announced());
    function.works();
    function.wait(true);
    assert!(function.shown()["failure"].is_null());

    // A new check starts with the state of the old one, and the plan shows the change.
    let succeeds = "{run: \"true\", timeout: 10s}";
    let file = plan(succeeds);
    let said = net.kaido.ok(&["dataplane", "plan", &file]);
    assert!(said.contains(SID) && said.contains("`true` every 200ms"), "{said}");
    net.apply(&function.file(succeeds));
    assert!(function.is_announced());
    // Without a check the function is announced.
    net.apply(crate::functions::FILE);
    assert!(function.is_announced() && function.shown().is_null());
}

#[test]
fn root_a_check_ends_with_its_function() {
    let function = Function::new();
    let net = &function.net;
    let started = std::time::Instant::now();
    // A check that never ends by itself; nor does its child process.
    let hangs = "{run: [sh, -c, \"sleep 98765 & sleep 98765\"], timeout: 1h}";
    net.apply(&function.file(hangs));
    let run = || runs("98765").then_some(());
    until(Duration::from_secs(20), run, || net.log());
    // The daemon does not wait for the check.
    assert!(started.elapsed() < Duration::from_secs(15).mul_f64(crate::net::slower()));
    assert!(!function.is_announced());
    let gone = || (!runs("98765")).then_some(());
    net.apply(crate::net::FILE);
    until(Duration::from_secs(20), gone, || "the check goes on".into());
    assert!(!show(&net.node, "-6 rule").contains("6001"));
    net.apply(&function.file(hangs));
    until(Duration::from_secs(20), run, || net.log());
    net.kaido.ok(&["dataplane", "detach"]);
    assert!(!runs("98765"));
    // A daemon that ends leaves no check behind.
    net.apply(&function.file(hangs));
    until(Duration::from_secs(20), run, || net.log());
    let mut function = function;
    function.net.end();
    assert!(!runs("98765"));
    function.assert_guarded();
}

#[test]
fn root_a_daemon_starts_with_the_announcements_of_the_last_one() {
    let mut function = Function::new();
    function.net.apply(&function.file(&function.check()));
    function.wait(true);
    function.net.kill();
    assert!(function.is_announced());
    // The SID stays announced until the new daemon's check fails.
    function.fails();
    function.net.start(&[]);
    function.wait(false);
    function.net.kill();
    function.assert_guarded();
    function.works();
    function.net.start(&[]);
    function.wait(true);
    function.net.apply(&function.file("{run: /nowhere/check}"));
    function.wait(false);
    let why = function.shown()["failure"].to_string();
    assert!(why.contains("it cannot be run: No such file"), "{why}");
}

/// Sets the descriptor limit of the daemon.
fn allow_descriptors(function: &Function, limit: &str) {
    let pid = function.net.pid().to_string();
    let limit = format!("--nofile={limit}:");
    let status = Command::new("prlimit").args(["--pid", &pid, &limit]).status().unwrap();
    assert!(status.success());
}

#[test]
fn root_a_function_whose_check_cannot_start_keeps_its_state() {
    let mut function = Function::new();
    nft(&function.net, "table inet none {}");
    // A single failure would suffice.
    let check = function.check().replace("timeout", "fall: 1, timeout");
    function.net.apply(&function.file(&check));
    function.wait(true);
    // Like after a flood of connections: no descriptor is left for the command's output.
    allow_descriptors(&function, "3");
    let told = || function.net.log().contains("cannot be started").then_some(());
    until(TIMEOUT, told, || function.net.log());
    assert!(function.is_announced(), "withdrawn: {}", function.net.log());
    allow_descriptors(&function, "1024");
    let again = || {
        let shown = function.shown();
        let started =
            shown["not_started"].as_u64().unwrap() > 0 && shown["runs"].as_u64() > Some(1);
        started.then_some(shown)
    };
    let shown = until(TIMEOUT, again, || function.net.log());
    assert_eq!((&shown["up"], &shown["failures"]), (&true.into(), &0.into()), "{shown}");
    assert!(!function.net.log().contains("is down"), "{}", function.net.log());
    // A real failure still counts.
    function.fails();
    function.wait(false);
    function.net.end();
}
