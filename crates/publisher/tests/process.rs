//! Tests of `kaido-publish` as it runs in a VM.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use testkit::until;
use vminfo::{Ages, Publication, Reader, now_ns};

const TIMEOUT: Duration = Duration::from_secs(30);

fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_kaido-publish"))
}

/// A running publisher, ended on drop, and a reader of its publication.
struct Vm {
    child: Child,
    reader: Reader,
    directory: TempDir,
}

impl Vm {
    fn start(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("vm");
        let mut child = command()
            .args(["--every", "5", "--to"])
            .arg(&file)
            .args(arguments)
            .current_dir(directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("it is a pipe");
        BufReader::new(output).read_line(&mut line).expect("text");
        assert!(line.contains("every 5 ms; Ctrl-C ends it"), "{line}");
        Self { child, reader: Reader::new(&file), directory }
    }

    fn say(&mut self, lines: &str) {
        let input = self.child.stdin.as_mut().expect("it is a pipe");
        input.write_all(lines.as_bytes()).expect("it reads");
    }

    fn read(&mut self) -> Publication {
        until(TIMEOUT, || self.reader.read().ok(), || "nothing is published".into())
    }

    /// Waits until a key has a value.
    fn has(&mut self, key: &str, wanted: u64) {
        let is = || (value(&self.reader.read().ok()?, key) == Some(wanted)).then_some(());
        until(TIMEOUT, is, || format!("`{key}` is not {wanted}"));
    }

    fn signal(&mut self, signal: Signal) -> ExitStatus {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("it runs");
        self.child.wait().expect("it ends")
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn value(said: &Publication, key: &str) -> Option<u64> {
    said.entries.iter().find(|one| one.name == key)?.value
}

#[test]
fn a_machine_publishes_its_own_load() {
    let mut vm = Vm::start(&["--process", "kaido-publish"]);
    let said = vm.read();
    let processors = std::thread::available_parallelism().expect("there are some").get() as u64;
    assert!(value(&said, "cpu.count").is_some_and(|count| count >= processors), "{said:?}");
    let memory = value(&said, "memory.total").expect("there is memory");
    assert!(memory > value(&said, "memory.available").expect("some is left"));
    assert!(value(&said, "memory.utilisation").is_some_and(|used| used <= 1000));
    assert!(value(&said, "net.utilisation").is_some_and(|used| used <= 1000));
    // Other tests may run such processes too.
    assert!(value(&said, "process.kaido-publish.count").is_some_and(|count| count >= 1));
    assert!(value(&said, "process.kaido-publish.memory").is_some_and(|bytes| bytes > 100_000));
    assert!(value(&said, "processes.threads").is_some_and(|count| count > 0));
}

#[test]
fn the_tenants_own_keys_come_from_files_and_commands() {
    let mut vm = Vm::start(&[
        "--only=cpu",
        "--set=filter.on=300",
        "--file=app.depth=depth",
        "--command=app.lines=wc -l <depth",
        "--stdin",
    ]);
    vm.has("filter.on", 300);
    assert_eq!(value(&vm.read(), "memory.total"), None);
    std::fs::write(vm.directory.path().join("depth"), "12 packets\nmore\n").expect("a file");
    vm.has("app.depth", 12);
    vm.has("app.lines", 2);
    vm.say("app.queue 5\nnonsense\napp.queue=6\n");
    vm.has("app.queue", 6);
    // A value that is not updated becomes stale; a constant does not.
    let before = vm.read();
    let is_fresh = |said: &Publication, key: &str| {
        let one = said.entries.iter().find(|one| one.name == key).expect("it is there");
        u128::from(said.now_ns - one.at_ns) <= one.valid.as_nanos()
    };
    let is_old = |vm: &mut Vm| (!is_fresh(&vm.read(), "app.queue")).then_some(());
    until(TIMEOUT, || is_old(&mut vm), || "it is fresh".into());
    let beats = |vm: &mut Vm| (vm.read().beat > before.beat).then_some(());
    until(TIMEOUT, || beats(&mut vm), || "no sign of life".into());
    let stays = |vm: &mut Vm| is_fresh(&vm.read(), "filter.on").then_some(());
    until(TIMEOUT, || stays(&mut vm), || "it grew old".into());
}

#[test]
fn ctrl_c_ends_it_and_readers_see_that() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // Also while a command is still running.
        let mut vm = Vm::start(&["--command=never=read line </proc/$PPID/fd/0"]);
        assert!(!vm.read().ended);
        assert!(vm.signal(signal).success());
        assert!(vm.read().ended);
    }
}

#[test]
fn one_that_is_killed_gives_no_sign_of_life() {
    let mut vm = Vm::start(&["--set=a=1", "--valid=100"]);
    let mut ages = Ages::default();
    let is_alive = |vm: &mut Vm, ages: &mut Ages| {
        let said = vm.read();
        ages.hear(&said, now_ns());
        ages.of(&said, "a").is_some_and(|one| one.is_fresh(now_ns()))
    };
    let lives = || is_alive(&mut vm, &mut ages).then_some(());
    until(TIMEOUT, lives, || "it says nothing".into());
    assert!(!vm.signal(Signal::SIGKILL).success());
    let is_silent = || (!is_alive(&mut vm, &mut ages)).then_some(());
    until(TIMEOUT, is_silent, || "it lives on".into());
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_failure_to_publish_is_reported() {
    let vm = Vm::start(&[]);
    let file = vm.directory.path().join("vm").display().to_string();
    let run = |arguments: &[&str]| command().args(arguments).output().expect("it runs");
    let twice = run(&["--to", &file]);
    assert_eq!(twice.status.code(), Some(1));
    assert!(said(&twice).contains("another process publishes in"), "{}", said(&twice));
    let nowhere = run(&["--to", "/proc/none/vm"]);
    assert!(said(&nowhere).contains("cannot publish in /proc/none/vm: No such file"));
    for (wrong, why) in [
        ("--set=a b=1", "`a b` is not a valid key"),
        ("--set=a=-1", "`-1` is not a whole number"),
        ("--set=a", "expected `KEY=…`"),
        ("--every=0", "0 is not in 1..=3600000"),
        ("--only=disk", "possible values: network, cpu, memory, processes"),
    ] {
        let output = run(&[wrong]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(said(&output).contains(why), "{wrong}: {}", said(&output));
    }
}
