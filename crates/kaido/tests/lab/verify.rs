//! `kaido lab test`: a file's `tests:` in a lab.

use std::time::Duration;

use testkit::{Machine, until, value_of};

use crate::kaido;

/// Two hosts on two routers with two paths between them.
const LAB: &str = "\
name: tested
nodes: {h1: {}, h2: {}, r1: {router: linux}, r2: {router: linux}, r3: {router: linux}}
links:
  - h1-r1
  - r1-r2: {delay: 20ms, cost: 1}
  - r1-r3
  - r3-r2
  - r2-h2: {rate: 20mbit}
tests:
";

/// Tests that pass in it; the round-trip time is 40 ms.
const GOOD: [&str; 8] = [
    "{from: h1, ping: h2}",
    "{from: h1, ping: h2, family: ipv6, rtt: 40ms..80ms}",
    "{from: h1, ping: r3, rtt: 0ms..39ms}",
    "{from: h1, ping: h2, loss: 0%..0%, count: 20}",
    "{from: h1, to: h2, throughput: 15mbit..20mbit}",
    "{on: r1, route: 10.255.0.3/32, via: r3}",
    "{on: r1, route: 10.77.0.0/24, present: false}",
    "{on: r1, route: 'fd01::3/128'}",
];

fn text(tests: &[&str]) -> String {
    tests.iter().fold(LAB.to_owned(), |text, test| text + "  - " + test + "\n")
}

#[test]
fn root_a_file_is_brought_up_tested_and_taken_down() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    let file = kaido.file("lab.yaml", &text(&GOOD));
    let said = kaido.run(&["lab", "test", &file]);
    assert_eq!(said.code, Some(0), "{said}");
    assert!(said.stdout.contains("8 passed, 0 failed"), "{said}");
    assert_eq!(said.stdout.matches("PASS").count(), 8, "{said}");
    before.assert_restored(&kaido);
    kaido.run(&["lab", "test", "other.yaml"]).failed(2, &["cannot read other.yaml: no such file"]);
}

#[test]
fn root_a_failed_test_shows_the_measured_value() {
    let kaido = kaido();
    let tests = [
        "{from: h1, ping: h2, rtt: 1ms..2ms, within: 5s}",
        "{from: h1, ping: h2, unreachable: true, within: 1s}",
        "{from: h1, ping: h2, loss: 10%..20%, count: 10, within: 1s}",
        "{from: h1, to: h2, throughput: 100mbit..200mbit, within: 1s}",
        "{on: r1, route: 10.255.0.3/32, via: r2, within: 100ms}",
        "{on: r1, route: 10.255.0.3/32, present: false, within: 100ms}",
        "{on: r1, route: 10.77.0.0/24, within: 100ms}",
        "{from: h1, ping: h2}",
    ];
    let file = kaido.file("lab.yaml", &text(&tests));
    let report = format!("{}/report.xml", kaido.directory().display());
    let said = kaido.run(&["--json", "lab", "test", &file, "--junit", &report]);
    assert_eq!(said.code, Some(1), "{said}");
    let result = value_of(&["lab", "test"], said.stdout.as_bytes());
    assert_eq!((&result["passed"], &result["failed"]), (&1.into(), &7.into()), "{said}");
    let measured = |index: usize| result["tests"][index]["measured"].as_str().unwrap().to_owned();
    for (index, words) in [
        (0, "IPv4 4"),
        (1, "; IPv6 4"),
        (2, "0.0% of 10 lost"),
        (3, "mbit"),
        (4, "a route via r3"),
        (5, "a route via r3"),
        (6, "no route"),
    ] {
        assert!(measured(index).contains(words), "{index}: {said}");
    }
    let report = std::fs::read_to_string(&report).unwrap();
    for words in ["tests=\"8\"", "failures=\"7\"", "h1 pings h2", "expected no answer within 1s"] {
        assert!(report.contains(words), "{words}: {report}");
    }
}

#[test]
fn root_a_lab_that_is_up_stays_and_says_how_long_convergence_took() {
    let kaido = kaido();
    let routed = |tests: &[&str]| text(tests).replace("linux", "frr");
    let file = kaido.file("lab.yaml", &routed(&["{from: h1, ping: h2}"]));
    let lab = kaido.lab_up_file(&file, &[]);
    kaido.ok(&["lab", "test"]);
    kaido.ok(&["lab", "test", "tested"]);
    // The lab's own file, with other tests.
    lab.link("r1-r2", &["down", "--silent"]);
    let test = "{from: h1, ping: h2, rtt: 0ms..39ms, within: 30s}";
    let file = kaido.file("lab.yaml", &routed(&[test]));
    let result = kaido.json(&["lab", "test", &file]);
    let after = result["tests"][0]["after"].as_f64().unwrap();
    // OSPF declares a silent neighbor dead three to four seconds after its last hello.
    assert!((1.0..30.0).contains(&after), "{result}");
    assert_eq!(kaido.labs(), ["tested"]);
    lab.link("r1-r3", &["down"]);
    let file = kaido.file("lab.yaml", &routed(&["{from: h1, ping: h2, unreachable: true}"]));
    kaido.ok(&["lab", "test", &file]);

    let other = kaido.file("other.yaml", &routed(&[test]).replace("20ms", "30ms"));
    let said = kaido.run(&["lab", "test", &other]);
    said.failed(2, &["tested is up with another network", "kaido lab down tested"]);
}

/// A test that was killed cannot take its lab down.
#[test]
fn root_gc_takes_the_lab_of_a_killed_test_and_not_that_of_a_living_one() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    let file =
        kaido.file("lab.yaml", &text(&["{from: h1, ping: h2, loss: 90%..100%, within: 60s}"]));
    let mut child = kaido.start(&["lab", "test", &file]);
    let phase = || {
        let list = kaido.json(&["lab", "ls"]);
        Some(list.as_array()?.first()?["phase"].as_str()?.to_owned())
    };
    let ready = || phase().filter(|phase| phase == "ready");
    until(Duration::from_secs(30), ready, || "no lab is ready".into());
    assert_eq!(kaido.json(&["lab", "gc"]), serde_json::json!([]));
    assert_eq!(phase().as_deref(), Some("ready"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(phase().as_deref(), Some("broken"));
    kaido.run(&["lab", "test", &file]).failed(1, &["is broken", "kaido lab down tested"]);
    let collected = kaido.json(&["lab", "gc"]);
    assert_eq!(collected, serde_json::json!([{ "name": "tested", "removed": true }]));
    before.assert_restored(&kaido);
}

/// Results are not lost if the report cannot be written, and a run without results keeps the
/// previous report.
#[test]
fn root_a_report_takes_the_place_of_the_last_one_when_it_is_whole() {
    let kaido = kaido();
    let same = "{from: h1, ping: h2, count: 1}";
    let file = kaido.file("lab.yaml", &text(&[same, same, "{from: h1, ping: h2, loss: 0%..0%}"]));
    let old = kaido.file("report.xml", "the last one");
    let read = || std::fs::read_to_string(&old).unwrap();
    let bad = kaido.file("bad.yaml", "name: [");
    kaido.run(&["lab", "test", &bad, "--junit", &old]).failed(2, &["bad.yaml"]);
    assert_eq!(read(), "the last one");

    let full = kaido.run(&["lab", "test", &file, "--junit", "/dev/full"]);
    full.failed(1, &["cannot write /dev/full: No space left on device"]);
    assert!(full.stdout.contains("3 passed, 0 failed"), "{full}");

    let link = kaido.directory().join("link.xml");
    std::os::unix::fs::symlink(&old, &link).unwrap();
    kaido.ok(&["lab", "test", &file, "--junit", link.to_str().unwrap()]);
    assert!(link.is_symlink());
    let report = read();
    let names: std::collections::BTreeSet<_> = report
        .lines()
        .filter(|line| line.contains("<testcase "))
        .map(|line| line.split('"').nth(1).unwrap())
        .collect();
    assert_eq!(names.len(), 3, "{report}");
    let beside = std::fs::read_dir(kaido.directory()).unwrap().flatten();
    let left: Vec<_> = beside.map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with('.')), "{left:?}");

    let said = kaido.run(&["lab", "test", &file, "--junit", kaido.directory().to_str().unwrap()]);
    said.failed(1, &["cannot write", "Is a directory"]);
    assert!(kaido.labs().is_empty());
}

#[test]
fn root_tests_that_cannot_run_say_why_before_anything_is_done() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    let file = kaido.file("none.yaml", LAB.trim_end_matches("tests:\n"));
    kaido.run(&["lab", "test", &file]).failed(2, &["none.yaml has no `tests:`"]);
    kaido.run(&["lab", "test", "nowhere"]).failed(2, &["no lab `nowhere`"]);
    kaido.run(&["lab", "test"]).failed(2, &["lab"]);
    let file = kaido.file("lab.yaml", &text(&GOOD));
    let said = kaido.run(&["lab", "test", &file, "--junit", "/nowhere/report.xml"]);
    said.failed(1, &["cannot write /nowhere/report.xml"]);
    let hide = "empty=\"${KAIDO_RUN%/*}/empty\"; touch \"$empty\"
        mount --bind \"$empty\" \"$(command -v iperf3)\"";
    let said = kaido.script(&format!("{hide}\nexec \"$K\" lab test {file}"));
    said.failed(1, &["iperf3, which a test needs", "apt-get install iperf3"]);
    before.assert_restored(&kaido);
}
