//! Commands that are killed or interrupted: `gc` removes their remains, and nothing else.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testkit::{Bystanders, Kaido, Machine, Random, Said, pause, until};

use crate::topologies::{CHAIN, FRR, frr_ring, with_xdp};
use crate::{file_in_labs, kaido, soon};

/// Number of times that each of `up` and `down` is killed: 20, or `$KAIDO_KILLS`.
fn rounds() -> usize {
    std::env::var("KAIDO_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(20)
}

/// Duration of a command that is not interrupted.
fn duration(kaido: &Kaido, arguments: &[&str]) -> Duration {
    let started = Instant::now();
    kaido.ok(arguments);
    started.elapsed()
}

/// Runs a command and kills it at a random time within its usual duration, or a bit later.
fn killed(kaido: &Kaido, arguments: &[&str], usual: Duration, random: &mut Random) {
    let mut child = kaido.start(arguments);
    pause(usual.mul_f64(1.1 * random.fraction()));
    child.kill().expect("it is this process's child");
    child.wait().expect("it is this process's child");
}

/// Removes everything with `gc`, and with `down` for labs that had come up before the kill.
fn collect(kaido: &Kaido) {
    kaido.json(&["lab", "gc"]);
    for lab in kaido.json(&["lab", "ls"]).as_array().expect("`ls` prints a list") {
        assert_eq!(lab["phase"], "ready", "`gc` has left {lab}");
        kaido.ok(&["lab", "down", lab["name"].as_str().expect("a name")]);
    }
}

/// Kills `up` and `down` of the lab in `file` alternately.
fn kill_rounds(kaido: &Kaido, file: &str, rounds: usize, random: &mut Random) {
    let before = Machine::now(kaido);
    let up_takes = duration(kaido, &["lab", "up", file, "--name", "victim"]);
    let down_takes = duration(kaido, &["lab", "down", "victim"]);
    before.assert_restored(kaido);
    let mut strangers = Bystanders::new();
    for _ in 0..rounds {
        killed(kaido, &["lab", "up", file, "--name", "victim"], up_takes, random);
        collect(kaido);
        strangers.assert_untouched();
        before.assert_restored(kaido);

        kaido.ok(&["lab", "up", file, "--name", "victim"]);
        killed(kaido, &["lab", "down", "victim"], down_takes, random);
        collect(kaido);
        strangers.assert_untouched();
        before.assert_restored(kaido);
    }
}

#[test]
fn root_gc_cleans_up_after_killed_commands_of_a_static_lab() {
    let rounds = rounds() - rounds() / 4;
    kill_rounds(&kaido(), &file_in_labs("ring.yaml"), rounds, &mut Random::seeded());
}

#[test]
fn root_gc_cleans_up_after_killed_commands_of_an_frr_lab() {
    let kaido = kaido();
    let file = kaido.file("lab.yaml", FRR);
    kill_rounds(&kaido, &file, rounds().div_ceil(4), &mut Random::seeded());
}

/// A data plane pins its state in a mount in the lab's directory.
#[test]
fn root_gc_cleans_up_after_killed_commands_of_a_lab_with_xdp() {
    let kaido = kaido();
    let text = with_xdp(CHAIN).replace("r1-r2,", "r1-r2: {rate: 50mbit},");
    let file = kaido.file("lab.yaml", &format!("{text}controller: true\n"));
    kill_rounds(&kaido, &file, rounds().div_ceil(2), &mut Random::seeded());
}

#[test]
fn root_gc_cleans_up_after_a_lab_with_applications_killed_with_its_daemons() {
    let kaido = kaido();
    let rounds = rounds().div_ceil(10);
    kill_rounds(&kaido, &file_in_labs("paper-path.yaml"), rounds, &mut Random::seeded());
}

/// First thread exits, after which the process has no namespaces of its own in /proc.
const HEADLESS: &str = "import ctypes, os, platform, signal, sys, threading, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
threading.Thread(target=time.sleep, args=(600,)).start()
with open(sys.argv[1] + '.new', 'w') as file: file.write(str(os.getpid()))
os.rename(sys.argv[1] + '.new', sys.argv[1])
ctypes.CDLL(None).syscall({'x86_64': 60, 'aarch64': 93}[platform.machine()], 0)
";

/// Starts a Python script on h1, which writes its number into the file that it is given. Returns the command
/// and the number.
fn start_on_h1(kaido: &Kaido, script: &str) -> (std::process::Child, String) {
    let file = kaido.directory().join("process");
    let path = file.to_str().unwrap();
    let command = kaido.start(&["lab", "exec", "h1", "--", "/usr/bin/python3", "-c", script, path]);
    let started = || std::fs::read_to_string(&file).ok();
    let process = until(Duration::from_secs(60), started, || "it does not start".to_owned());
    (command, process)
}

#[test]
fn root_a_process_without_its_first_thread_ends_with_its_lab() {
    let kaido = kaido();
    let lab = kaido.lab_up_file(&file_in_labs("ring.yaml"), &[]);
    let (mut command, process) = start_on_h1(&kaido, HEADLESS);
    let status = || std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let is_headless = || status().contains("State:\tZ") && status().contains("Threads:\t2");
    soon("its first thread has exited", is_headless);
    lab.down();
    assert!(!status().contains("Threads:\t2"), "{}", status());
    command.wait().unwrap();
}

/// Forks again and again: each process ends before a scan of /proc reaches it.
const HOPPER: &str = "my ($file, $end) = ($ARGV[0], time + 60);
open(my $it, '>', $file); close($it);
while (time < $end) { utime(undef, undef, $file); exit 0 if fork; }
";

#[test]
fn root_a_process_that_forks_again_and_again_ends_with_its_lab() {
    let kaido = kaido();
    let lab = kaido.lab_up_file(&file_in_labs("ring.yaml"), &[]);
    let file = kaido.directory().join("alive");
    let path = file.to_str().unwrap();
    let mut command =
        kaido.start(&["lab", "exec", "h1", "--", "/usr/bin/perl", "-e", HOPPER, path]);
    let time = || std::fs::metadata(&file).and_then(|found| found.modified()).ok();
    soon("it starts", || time().is_some());
    let first = time();
    soon("it goes on", || time() != first);
    lab.down();
    let last = time();
    pause(Duration::from_millis(300));
    assert_eq!(time(), last, "it is alive");
    command.wait().unwrap();
}

/// A user namespace of its own permits its first thread to leave the node's network namespace.
const LEAVER: &str = "import ctypes, os, sys, threading, time
libc = ctypes.CDLL(None)
assert libc.unshare(0x10000000) == 0
threading.Thread(target=time.sleep, args=(60,)).start()
assert libc.unshare(0x40000000) == 0
with open(sys.argv[1] + '.new', 'w') as file: file.write(str(os.getpid()))
os.rename(sys.argv[1] + '.new', sys.argv[1])
time.sleep(60)
";

#[test]
fn root_a_process_whose_first_thread_has_left_ends_with_its_lab() {
    let kaido = kaido();
    let lab = kaido.lab_up_file(&file_in_labs("ring.yaml"), &[]);
    let (mut command, process) = start_on_h1(&kaido, LEAVER);
    lab.down();
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    assert!(status.is_empty() || status.contains("State:\tZ"), "{status}");
    command.wait().unwrap();
}

#[test]
fn root_gc_leaves_running_labs_alone() {
    let kaido = kaido();
    let ready = kaido.lab_up_file(&file_in_labs("ring.yaml"), &[]);
    let file = kaido.file("many.yaml", &slow_ring());
    let mut starting = kaido.start(&["lab", "up", &file]);
    wait_until_starting(&kaido, "many");
    assert_eq!(kaido.json(&["lab", "gc"]), serde_json::json!([]));
    assert_eq!(kaido.labs(), ["many", "ring"]);
    kaido.run(&["lab", "down", "many"]).failed(1, &["another command is working on"]);
    kaido
        .run(&["lab", "up", &file])
        .failed(2, &["the lab `many` is starting: another command", "wait"]);
    kaido.run(&["lab", "exec", "--lab", "many", "r1", "--", "true"]).failed(1, &["starting"]);
    ready.ping("h1", &["10.255.0.4"]);
    starting.kill().unwrap();
    starting.wait().unwrap();
    let collected = kaido.json(&["lab", "gc"]);
    assert_eq!(collected, serde_json::json!([{ "name": "many", "removed": true }]));
    ready.ping("h1", &["10.255.0.4"]);
}

/// Mounts, which cannot be removed with the directory, are still found.
#[test]
fn root_gc_removes_the_remains_of_a_directory_that_was_deleted_by_hand() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    let mine = kaido.run_directory().join("labs/mine/netns");
    private::make(&mine).unwrap();
    std::fs::write(mine.join("h1"), "").unwrap();
    let text = with_xdp(CHAIN).replace("r1-r2,", "r1-r2: {engine: true},");
    kaido.ok(&["lab", "up", &kaido.file("lab.yaml", &text), "--name", "victim"]);
    let directory = kaido.run_directory().join("labs/victim");
    let said = Said::run(std::process::Command::new("rm").arg("-rf").arg(&directory));
    assert_eq!(said.code, Some(1), "mounts stay: {said}");
    assert!(!directory.join("lab.yaml").exists());
    let list = kaido.json(&["lab", "ls"]);
    assert_eq!((&list[0]["name"], &list[0]["phase"]), (&"victim".into(), &"broken".into()));
    let said = kaido.ok(&["lab", "ls"]);
    assert!(
        said.contains("victim: the command that it belonged to was killed: `kaido lab gc`"),
        "{said}"
    );
    let collected = kaido.json(&["lab", "gc"]);
    assert_eq!(collected, serde_json::json!([{ "name": "victim", "removed": true }]));
    assert!(mine.join("h1").exists(), "this is somebody else's");
    std::fs::remove_dir_all(kaido.run_directory().join("labs")).unwrap();
    before.assert_restored(&kaido);
}

/// Ctrl-C signals the whole foreground process group, including daemons that are starting; `kill`
/// signals only the command. It cleans up in both cases.
#[test]
fn root_an_interrupted_up_leaves_nothing() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    let mut random = Random::seeded();
    for (signal, whole_group, text) in [
        (Signal::SIGINT, true, slow_ring()),
        (Signal::SIGTERM, false, with_xdp(&slow_ring())),
        (Signal::SIGINT, true, with_xdp(&slow_ring())),
    ] {
        let file = kaido.file("lab.yaml", &text);
        use std::os::unix::process::CommandExt;
        let mut command = kaido.command(&["lab", "up", &file]);
        command.process_group(0).stdout(std::process::Stdio::piped());
        let child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
        wait_until_starting(&kaido, "many");
        pause(Duration::from_secs(1).mul_f64(random.fraction()));
        let pid = Pid::from_raw(child.id() as i32);
        kill(if whole_group { Pid::from_raw(-pid.as_raw()) } else { pid }, signal).unwrap();
        let said = Said::from_output(format!("up, {signal}"), child.wait_with_output().unwrap());
        said.failed(1, &["stopped"]);
        before.assert_restored(&kaido);
    }
}

/// A lab that needs 10 s for its first routes.
fn slow_ring() -> String {
    frr_ring(6, "ospf: {hello: 10s, dead: 40s}")
}

fn wait_until_starting(kaido: &Kaido, name: &str) {
    let starting = || {
        let list = kaido.json(&["lab", "ls"]);
        let labs = list.as_array()?;
        labs.iter().any(|lab| lab["name"] == name && lab["phase"] == "starting").then_some(())
    };
    until(Duration::from_secs(20), starting, || format!("{name} does not start"));
}

/// The namespaces of such a lab are mounted where commands outside do not see them, as after `ip netns
/// exec` or in a unit with `PrivateTmp=`.
#[test]
fn root_a_lab_of_another_mount_namespace_is_taken_down() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    let frr = kaido.file("frr.yaml", FRR);
    let xdp = kaido.file("xdp.yaml", &format!("{}controller: true\n", with_xdp(CHAIN)));
    for (file, end) in [(frr, "down"), (xdp, "gc")] {
        let up = kaido.command(&["lab", "up", &file, "--name", "hidden"]);
        let mut hidden = std::process::Command::new("unshare");
        hidden.args(["--mount", "--propagation", "private"]).arg(up.get_program());
        hidden
            .args(up.get_args())
            .envs(up.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Said::run(&mut hidden).ok();
        if end == "gc" {
            // As after a command that was killed.
            let state = kaido.run_directory().join("labs/hidden/state.json");
            let text = std::fs::read_to_string(&state).unwrap();
            std::fs::write(&state, text.replace("\"ready\"", "\"stopping\"")).unwrap();
            kaido.ok(&["lab", "gc"]);
        } else {
            kaido.ok(&["lab", "down", "hidden"]);
        }
        before.assert_restored(&kaido);
    }
}
