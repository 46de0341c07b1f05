//! Switches of labs: `labs/openvswitch.yaml`, and files that no lab can be made from.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testkit::{Kaido, Lab, Machine, Packages, Said, preloads, processes_with, until};

/// Timeout of events that are normally immediate.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) fn kaido() -> Kaido {
    let program = Path::new(env!("CARGO_BIN_EXE_kaido"));
    preloads(program);
    Kaido::new(program).with_openvswitch()
}

fn file() -> String {
    format!("{}/../../labs/openvswitch.yaml", env!("CARGO_MANIFEST_DIR"))
}

fn files(kaido: &Kaido) -> PathBuf {
    kaido.run_directory().join("labs/openvswitch/nodes/sw")
}

/// The process that runs `ovs-vswitchd` itself.
fn switch(kaido: &Kaido) -> Pid {
    let text =
        std::fs::read_to_string(files(kaido).join("switch.pid")).expect("the switch has started");
    Pid::from_raw(text.trim().parse().expect("it is a number"))
}

fn answers(lab: &Lab<'_>, from: &str, to: &str) -> bool {
    lab.run(from, &["ping", "-n", "-c", "1", "-W", "1", to]).code == Some(0)
}

/// Waits until h1 reaches an address. It may have found out that it is unreachable.
#[track_caller]
fn await_answers(lab: &Lab<'_>, to: &str) {
    let answers = || answers(lab, "h1", to).then_some(());
    until(TIMEOUT, answers, || format!("no answer of {to}"));
}

/// Waits until the lab has this state and a trouble that contains `words`.
#[track_caller]
fn await_state(kaido: &Kaido, state: &str, words: &str) {
    let list = || kaido.json(&["lab", "ls"])[0].clone();
    let is_so = || {
        let lab = list();
        let has = words.is_empty() || lab["troubles"].to_string().contains(words);
        (lab["phase"] == state && has).then_some(())
    };
    until(TIMEOUT, is_so, || list().to_string());
}

#[test]
fn root_a_switch_connects_its_hosts_until_a_table_refuses_one() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    let lab = kaido.lab_up_file(&file(), &[]);
    let everyone = ["10.0.1.1", "10.0.1.2", "10.0.1.3"];
    for from in ["h1", "h2", "h3"] {
        lab.ping(from, &everyone);
    }
    kaido.ok(&["lab", "test", "openvswitch"]);
    let clients = kaido.json(&["xsk", "ls"]);
    assert_eq!(clients[0]["name"], "openvswitch/sw", "{clients}");
    let stats = || kaido.json(&["xsk", "stats", "--lab", "openvswitch", "sw"]);
    // Counters are read every 500 ms.
    let counted = || {
        let stats = stats();
        let passed = |interface: &str| {
            let sockets = stats["sockets"].as_array().unwrap();
            let mine = sockets.iter().filter(|socket| socket["interface"] == interface);
            mine.map(|socket| socket["passed"].as_u64().unwrap()).sum::<u64>()
        };
        let is_counted = ["h1", "h2", "h3"].iter().all(|interface| passed(interface) > 0);
        is_counted.then_some(stats)
    };
    let stats = until(TIMEOUT, counted, || stats().to_string());
    assert_eq!(stats["programs"][0]["is_inline"], true, "{stats}");
    assert_eq!(stats["programs"][1]["is_inline"], false, "{stats}");

    // Red refuses the packets that the switch receives from h2.
    let address = stats["p4runtime"].as_str().unwrap();
    let rule = ["sources", "ipv4.source=10.0.1.2/32", "transmitted=0", "refuse"];
    let add = ["p4", "table", "add"];
    kaido.ok(&[&add[..], &rule, &["--address", address, "--device-id", "7"]].concat());
    assert!(!answers(&lab, "h2", "10.0.1.1") && !answers(&lab, "h1", "10.0.1.2"));
    assert!(answers(&lab, "h3", "10.0.1.1") && answers(&lab, "h1", "10.0.1.3"));
    let unknown = kaido.run(&["xsk", "stats", "--lab", "openvswitch", "h1"]);
    assert!(unknown.stderr.contains("node h1 has no tenants' programs"), "{unknown}");
    assert_eq!(unknown.code, Some(2), "{unknown}");

    // Open vSwitch's own commands use the lab's switch.
    let shown = lab.exec("sw", "ovs-vsctl list-ports br0");
    assert_eq!(shown.lines().collect::<Vec<_>>(), ["h1", "h2", "h3"]);
    assert!(lab.exec("sw", "ovs-ofctl dump-flows br0").contains("actions=NORMAL"));
    // The links are one LAN.
    lab.link("sw", &["down"]);
    assert!(!answers(&lab, "h1", "10.0.1.3"));
    lab.link("sw", &["up"]);
    await_answers(&lab, "10.0.1.3");
    let top = kaido.json(&["lab", "top"]);
    let senders = top.as_array().unwrap().iter().filter(|one| one["link"] == "sw");
    assert_eq!(senders.count(), 3, "{top}");
    // What red drops stands beside the link's own drops.
    let refused = || {
        let pinging = ["lab", "exec", "h2", "--", "ping", "-n", "-c", "8", "-i", "0.3", "10.0.1.1"];
        std::thread::scope(|scope| {
            scope.spawn(|| kaido.run(&pinging));
            let top = kaido.json(&["lab", "top", "--interval", "2"]);
            let from_h2 = top.as_array().unwrap().iter().find(|one| one["from"] == "h2").cloned();
            let dropped = &from_h2.unwrap()["dropped"];
            (dropped["program"].as_u64() > Some(0) && dropped["program-to"] == 0).then_some(())
        })
    };
    until(TIMEOUT, refused, || kaido.json(&["lab", "top"]).to_string());

    let drawn = kaido.ok(&["lab", "graph", "openvswitch"]);
    assert!(drawn.contains("switch (Open vSwitch)  blue judges h1; red judges h2, h3"), "{drawn}");
    lab.down();
    before.assert_restored(&kaido);
}

#[test]
fn root_no_other_user_reaches_the_sockets_of_a_switch() {
    let kaido = kaido();
    // The directory of the test is private as well.
    let open = std::fs::Permissions::from_mode(0o755);
    for directory in [kaido.directory().to_owned(), kaido.run_directory()] {
        std::fs::set_permissions(directory, open.clone()).unwrap();
    }
    let lab = kaido.lab_up_file(&file(), &[]);
    let sockets = ["db.sock", "switch.ctl", "database.ctl", "xsk/default/p4runtime.sock"];
    for socket in sockets.map(|socket| files(&kaido).join(socket)) {
        assert!(socket.exists(), "{}", socket.display());
        let mut test = Command::new("setpriv");
        test.args(["--reuid=65534", "--regid=65534", "--clear-groups", "test", "-e"]);
        let status = test.arg(&socket).status().unwrap();
        assert_eq!(status.code(), Some(1), "{}", socket.display());
    }
    lab.down();
}

#[test]
fn root_a_dead_switch_is_reported_and_started_again() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    let lab = kaido.lab_up_file(&file(), &[]);
    kill(switch(&kaido), Signal::SIGKILL).unwrap();
    await_state(&kaido, "degraded", "the switch sw exited");
    assert!(!answers(&lab, "h1", "10.0.1.2"));
    kaido.ok(&["lab", "start", "sw"]);
    await_state(&kaido, "ready", "");
    await_answers(&lab, "10.0.1.2");
    let again = kaido.run(&["lab", "start", "sw"]);
    assert!(again.stderr.contains("sw is running already"), "{again}");

    // Its wrapper alone: the switch continues, and its programs are gone.
    let wrapper = processes_with(&files(&kaido).join("tenants.yaml"));
    kill(Pid::from_raw(wrapper[0]), Signal::SIGKILL).unwrap();
    await_state(&kaido, "degraded", "the wrapper of the switch sw exited");
    kaido.ok(&["lab", "start", "sw"]);
    await_state(&kaido, "ready", "");
    await_answers(&lab, "10.0.1.2");

    // The switch continues without its database.
    let (before_kill, database) =
        (switch(&kaido), processes_with(&files(&kaido).join("database.ctl")));
    kill(Pid::from_raw(database[0]), Signal::SIGKILL).unwrap();
    await_state(&kaido, "degraded", "the database of the switch sw exited");
    kaido.ok(&["lab", "start", "sw"]);
    await_state(&kaido, "ready", "");
    assert_eq!(switch(&kaido), before_kill);
    await_answers(&lab, "10.0.1.2");
    lab.down();
    before.assert_restored(&kaido);
}

#[test]
fn root_a_start_that_is_interrupted_leaves_nothing() {
    let kaido = kaido();
    let path = file();
    for signal in [Signal::SIGINT, Signal::SIGKILL] {
        let before = Machine::now(&kaido);
        let mut up = kaido.start(&["lab", "up", &path]);
        let there = || files(&kaido).join("switch.log").exists().then_some(());
        until(TIMEOUT, there, || "no switch is started".into());
        kill(Pid::from_raw(up.id().cast_signed()), signal).unwrap();
        up.wait().unwrap();
        if signal == Signal::SIGKILL {
            kaido.ok(&["lab", "gc"]);
        }
        before.assert_restored(&kaido);
    }
}

#[test]
fn root_a_switch_that_ends_at_once_leaves_nothing() {
    let kaido = kaido();
    // Open vSwitch, apart from its daemon.
    let usr = kaido.directory().join("broken/usr");
    std::fs::create_dir_all(usr.join("lib/openvswitch-switch")).unwrap();
    for part in ["bin", "sbin", "share", "lib/x86_64-linux-gnu"] {
        let real = Packages::open("openvswitch").path("usr").join(part);
        symlink(real.canonicalize().unwrap(), usr.join(part)).unwrap();
    }
    let daemon = usr.join("lib/openvswitch-switch/ovs-vswitchd");
    std::fs::write(&daemon, "#!/bin/sh\necho it is broken >&2\nexit 3\n").unwrap();
    std::fs::set_permissions(daemon, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", usr.join("bin").display(), std::env::var("PATH").unwrap());
    let before = Machine::now(&kaido);
    let said = Said::run(kaido.command(&["lab", "up", &file()]).env("PATH", path));
    assert_eq!(said.code, Some(1), "{said}");
    assert!(said.stderr.contains("the switch sw exited"), "{said}");
    assert!(said.stderr.contains("it is broken"), "{said}");
    before.assert_restored(&kaido);
}

#[test]
fn root_nothing_is_made_of_a_file_whose_programs_do_not_compile() {
    let kaido = kaido();
    let lab = |tenant: &str| {
        let text = format!(
            "name: a\nnodes:\n  h1: {{}}\n  sw:\n    switch:\n      kind: openvswitch\n      tenants:\n        \
             red: {{{tenant}, ports: {{h1: 1}}}}\nlinks: [h1-sw]\n"
        );
        kaido.file("lab.yaml", &text)
    };
    kaido.file("bad.p4", "control c() { apply { } }\n");
    kaido.file("good.p4", include_str!("../../../../labs/xsk/filter.p4"));
    kaido.file("bad.txt", "decide.sources nonsense\n");
    for (tenant, wanted) in [
        ("program: gone.p4", "lab.yaml:8:"),
        ("program: gone.p4", "gone.p4: No such file"),
        ("program: good.p4, entries: gone.txt", "gone.txt: No such file"),
        ("program: good.p4, entries: bad.txt", "bad.txt"),
        ("program: bad.p4", "bad.p4:"),
    ] {
        let path = lab(tenant);
        for command in ["check", "up"] {
            let said = kaido.run(&["lab", command, &path]);
            assert_eq!(said.code, Some(2), "{said}");
            assert!(said.stderr.contains(wanted), "{wanted}: {said}");
        }
    }
    let path = lab("program: good.p4");
    let check = kaido.ok(&["lab", "check", &path]);
    assert!(check.contains("runs as root on sw: ovs-vswitchd"), "{check}");
    assert!(check.contains("runs in a sandbox on sw: P4: good.p4 of tenant red"), "{check}");
    assert_eq!(std::fs::read_dir(kaido.run_directory()).unwrap().count(), 0);
}

#[test]
fn root_a_machine_without_open_vswitch_makes_nothing() {
    let kaido = kaido();
    let mut command = kaido.command(&["lab", "up", &file()]);
    let said = Said::run(command.env("PATH", "/nowhere"));
    if !Path::new("/usr/bin/ovs-vsctl").exists() {
        assert_eq!(said.code, Some(1), "{said}");
        assert!(
            said.stderr.contains("Open vSwitch is not installed: run `apt-get install"),
            "{said}"
        );
    }
    assert_eq!(std::fs::read_dir(kaido.run_directory()).unwrap().count(), 0);
}

#[test]
fn root_a_router_on_a_switch_forwards_in_xdp() {
    let kaido = kaido();
    kaido.file("good.p4", include_str!("../../../../labs/xsk/filter.p4"));
    let text = "name: a\ndataplane: xdp\nnodes:\n  h1: {}\n  h2: {}\n  r1: {router: linux}\n  \
                r2: {router: linux}\n  sw:\n    switch:\n      kind: openvswitch\n      tenants:\n        \
                t: {program: good.p4, ports: {r1: 1, r2: 2}}\nlinks: [r1-sw, r2-sw, h1-r1, r2-h2]\n\
                tests:\n  - {from: h1, ping: h2}\n  - {from: h1, to: h2, throughput: 1mbit..100gbit}\n";
    let lab = kaido.lab_up(text);
    kaido.ok(&["lab", "test", "a"]);
    lab.down();
}

#[test]
fn root_a_router_on_a_switch_routes() {
    let kaido = kaido();
    // The controller has no node on the switch.
    let text = "name: a\ncontroller: true\nnodes:\n  h1: {}\n  h2: {}\n  r1: {router: frr}\n  \
                r2: {router: frr}\n  sw: {switch: openvswitch}\nlinks: [r1-sw, r2-sw, h1-r1, r2-h2]\n";
    let lab = kaido.lab_up(text);
    let h2 = lab.exec("h2", "ip -o -4 addr show dev r2");
    let h2 = h2.split_whitespace().nth(3).unwrap().split('/').next().unwrap();
    lab.ping("h1", &[h2]);
    assert!(lab.exec("r1", "ip route").contains("proto ospf"));
    lab.down();
}
