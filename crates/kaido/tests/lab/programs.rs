//! P4 programs on the ends of links: `labs/programs.yaml`.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testkit::{Lab, Machine, until};

use crate::{file_in_labs, kaido, soon};

const TIMEOUT: Duration = Duration::from_secs(30);

/// Addresses of h2.
const H2: [&str; 2] = ["10.0.3.2", "fd02:0:0:3::2"];

fn answers(lab: &Lab<'_>, to: &str) -> bool {
    lab.run("h1", &["ping", "-n", "-c", "1", "-W", "1", to]).code == Some(0)
}

fn has_carrier(lab: &Lab<'_>, node: &str, interface: &str) -> bool {
    let shown = lab.exec(node, &format!("ip -o link show dev {interface}"));
    !shown.contains("NO-CARRIER") && shown.contains("LOWER_UP")
}

#[test]
fn root_programs_judge_packets_at_the_ends_of_links() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    let lab = kaido.lab_up_file(&file_in_labs("programs.yaml"), &[]);
    lab.ping("h1", &H2);
    kaido.ok(&["lab", "test", "programs"]);
    let clients = kaido.json(&["xsk", "ls"]);
    let names: Vec<_> =
        clients.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["programs/h2", "programs/r1"]);
    let stats = |node: &str| kaido.json(&["xsk", "stats", "--lab", "programs", node]);
    // All packets of these interfaces have passed a program, in both directions.
    for (node, ends) in [("r1", 4), ("h2", 2)] {
        let counted = || {
            let stats = stats(node);
            let sockets = stats["sockets"].as_array().unwrap();
            let has_passed = |one: &&serde_json::Value| one["passed"].as_u64() > Some(0);
            (sockets.iter().filter(has_passed).count() == ends).then_some(())
        };
        until(TIMEOUT, counted, || format!("{:#}", stats(node)));
    }
    assert_eq!(stats("h2")["programs"][0]["is_inline"], true);
    // Packets that r1 receives from h1, and that it sends to h1.
    let address = stats("r1")["p4runtime"].as_str().unwrap().to_owned();
    for (source, transmitted) in [("10.0.1.1", "0"), ("10.0.3.2", "1")] {
        let entry = [&format!("ipv4.source={source}/32"), &*format!("transmitted={transmitted}")];
        let table = |verb: &str, action: &[&str]| {
            let command = ["p4", "table", verb, "sources"];
            kaido.ok(&[&command, &entry[..], action, &["--address", &address]].concat());
        };
        table("add", &["refuse"]);
        assert!(!answers(&lab, H2[0]) && answers(&lab, H2[1]), "{source}");
        table("delete", &[]);
        assert!(answers(&lab, H2[0]), "{source}");
    }
    let drawn = kaido.ok(&["lab", "graph", "programs"]);
    assert!(drawn.contains("r1  router  blue judges h1, r2"), "{drawn}");
    let unknown = kaido.run(&["xsk", "stats", "--lab", "programs", "h1"]);
    unknown.failed(2, &["node h1 has no tenants' programs (known: r1, h2)"]);
    lab.down();
    before.assert_restored(&kaido);
}

/// The node's interfaces are as without programs: they lose the carrier with their link.
#[test]
fn root_a_link_with_programs_is_cut_and_restored() {
    let kaido = kaido();
    let lab = kaido.lab_up_file(&file_in_labs("programs.yaml"), &[]);
    let has_carrier = |node, interface| has_carrier(&lab, node, interface);
    // h1 itself has no program.
    lab.exec("h1", "ip link set r1 down");
    soon("r1 has no carrier", || !has_carrier("r1", "h1"));
    lab.exec("h1", "ip link set r1 up");
    soon("r1 has a carrier", || has_carrier("r1", "h1"));
    lab.exec("r1", "ip link set h1 down");
    soon("h1 has no carrier", || !has_carrier("h1", "r1"));
    lab.exec("r1", "ip link set h1 up");
    soon("h1 has a carrier", || has_carrier("h1", "r1"));
    // `up` installs the routes that the kernel has removed with the carriers.
    for link in ["h1-r1", "r1-r2"] {
        lab.link(link, &["down"]);
        assert!(!answers(&lab, H2[0]), "{link}");
        lab.link(link, &["up"]);
        soon("packets pass", || answers(&lab, H2[0]));
    }
}

#[test]
fn root_ended_programs_let_nothing_pass_and_are_started_again() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    let lab = kaido.lab_up_file(&file_in_labs("programs.yaml"), &[]);
    lab.ping("h1", &H2);
    let config = kaido.run_directory().join("labs/programs/nodes/r1/tenants.yaml");
    let state = || kaido.json(&["lab", "ls"])[0].clone();
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        for pid in testkit::processes_with(&config) {
            // The first one takes the others with it.
            let _ = kill(Pid::from_raw(pid), signal);
        }
        soon("no packets pass", || !answers(&lab, H2[0]) && !answers(&lab, H2[1]));
        for (node, interface) in [("h1", "r1"), ("r1", "h1"), ("r1", "r2")] {
            assert!(has_carrier(&lab, node, interface), "{signal}: {node}, {interface}");
        }
        let reported = || {
            let lab = state();
            let troubles = lab["troubles"].to_string();
            let words = "the programs of r1 exited; no packets pass at h1, r2";
            (lab["phase"] == "degraded" && troubles.contains(words)).then_some(())
        };
        until(TIMEOUT, reported, || state().to_string());
        kaido.ok(&["lab", "start", "r1"]);
        soon("packets pass", || answers(&lab, H2[0]) && answers(&lab, H2[1]));
        assert_eq!(state()["phase"], "ready", "{}", state());
        kaido.run(&["lab", "start", "r1"]).failed(2, &["r1 is running already"]);
    }
    lab.down();
    before.assert_restored(&kaido);
}

/// A program is compiled once, however many tenants have it, and each of their files is looked at.
#[test]
fn files_of_tenants_with_one_program_are_checked() {
    let kaido = kaido();
    kaido.file("filter.p4", include_str!("../../../../labs/xsk/filter.p4"));
    kaido.file("bad.p4", "control c() { apply { } }\n");
    let lab = |one: &str, other: &str| {
        let text = format!(
            "name: a\nnodes:\n  h1: {{tenants: {{blue: {{{one}, ports: {{h2: 1}}}}}}}}\n  \
             h2: {{tenants: {{red: {{{other}, ports: {{h1: 1}}}}}}}}\nlinks: [h1-h2]\n"
        );
        kaido.file("lab.yaml", &text)
    };
    let good = "program: filter.p4";
    kaido.ok(&["lab", "check", &lab(good, good)]);
    let missing = lab(good, "program: filter.p4, entries: none.txt");
    kaido.run(&["lab", "check", &missing]).failed(2, &["none.txt"]);
    let said = kaido.run(&["lab", "check", &lab("program: bad.p4", "program: ./bad.p4")]);
    said.failed(2, &["bad.p4"]);
    assert_eq!(said.stderr.matches("bad.p4: 1 error").count(), 1, "{said}");
}
