//! Emulated links: packets get the options in the file, and each option changes independently.

use std::time::Duration;

use serde_json::Value;
use testkit::{Kaido, Lab, Machine, Random, until};

use crate::kaido;

/// A host on either side of two routers, with options on two links.
const WAN: &str = "\
name: wan
seed: 7
nodes: {h1: {}, h2: {}, r1: {router: linux}, r2: {router: linux}}
links:
  - h1-r1
  - r1-r2: {delay: 20ms, reverse: {delay: 10ms}}
  - r2-h2: {delay: 5ms, rate: 100mbit}
";
/// h2's addresses, on the last link.
const H2: [&str; 2] = ["10.0.3.2", "fd02:0:0:3::2"];

/// Minimum round-trip time that `ping` reports, in milliseconds.
fn least(said: &str) -> f64 {
    let times = said.split("mdev = ").nth(1).unwrap_or_else(|| panic!("{said}"));
    times.split('/').next().unwrap().parse().unwrap()
}

fn ping(lab: &Lab<'_>, to: &str, arguments: &str) -> String {
    let all = format!("ping -q -W 2 {arguments} {to}");
    let words: Vec<&str> = all.split_whitespace().collect();
    String::from_utf8_lossy(lab.run("h1", &words).stdout.as_bytes()).into_owned()
}

fn directions(kaido: &Kaido, link: &str) -> Vec<Value> {
    let all = kaido.json(&["lab", "links"]);
    all.as_array().unwrap().iter().filter(|one| one["link"] == link).cloned().collect()
}

#[test]
fn root_delays_follow_the_file_and_change_independently() {
    let kaido = kaido();
    let lab = kaido.lab_up(WAN);
    for address in H2 {
        // The first ping resolves the neighbors.
        ping(&lab, address, "-c 1");
        let time = least(&ping(&lab, address, "-c 5 -i 0.05"));
        assert!((40.0..80.0).contains(&time), "{address}: {time} ms");
    }
    let said = kaido.ok(&["lab", "link", "r2-r1", "set", "delay=100ms", "--from", "r1"]);
    assert!(said.contains("r1-r2 from r1 to r2: delay 100ms"), "{said}");
    let time = least(&ping(&lab, H2[0], "-c 3 -i 0.05"));
    assert!((120.0..160.0).contains(&time), "{time} ms");
    let said = kaido.ok(&["lab", "link", "r1-r2", "set", "loss=100%", "--from", "r2"]);
    assert!(said.contains("r1-r2 from r2 to r1: delay 10ms, loss 100%"), "{said}");
    assert!(ping(&lab, H2[0], "-c 2 -i 0.05").contains("100% packet loss"));
    kaido.ok(&["lab", "link", "r1-r2", "set", "loss=0%"]);
    let time = least(&ping(&lab, H2[0], "-c 3 -i 0.05"));
    assert!((120.0..160.0).contains(&time), "{time} ms");
    for one in directions(&kaido, "r1-r2") {
        let sum =
            |keys: &[&str]| -> u64 { keys.iter().map(|key| one[key].as_u64().unwrap()).sum() };
        let dropped: u64 =
            one["dropped"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
        assert_eq!(sum(&["received", "copied"]), sum(&["arrived", "inside"]) + dropped, "{one}");
    }
    lab.down();
}

#[test]
fn root_contradictory_settings_change_nothing() {
    let kaido = kaido();
    let lab = kaido.lab_up(WAN);
    let before = directions(&kaido, "r1-r2")[0]["does"].clone();
    let set = |settings: &[&str]| kaido.run(&[&["lab", "link", "r1-r2", "set"], settings].concat());
    set(&["loss=1%", "jitter=30ms"]).failed(2, &["a jitter of 30ms is more than the delay"]);
    set(&["delay=1"]).failed(2, &["has no unit"]);
    set(&["delay=1ms", "--from", "r9"]).failed(2, &["r9"]);
    assert_eq!(directions(&kaido, "r1-r2")[0]["does"], before);
    // Options that are set can be reset.
    set(&["rate=10mbit", "queue=9p codel", "jitter=1ms", "loss=1%", "duplicate=1%"]).ok();
    assert_ne!(directions(&kaido, "r1-r2")[0]["does"], before);
    set(&["rate=none", "queue=none", "jitter=none", "loss=none", "duplicate=none"]).ok();
    assert_eq!(directions(&kaido, "r1-r2")[0]["does"], before);
    set(&["delay=none"]).ok();
    assert_eq!(directions(&kaido, "r1-r2")[0]["does"], "");
    lab.down();
}

#[test]
fn root_packets_are_copied_and_silently_lost() {
    let kaido = kaido();
    let lab = kaido.lab_up(&WAN.replace("{delay: 20ms,", "{delay: 20ms, duplicate: 100%,"));
    ping(&lab, H2[0], "-c 1");
    // In both directions: each request is duplicated, and each answer; ping does not wait for the
    // last duplicates.
    let said = ping(&lab, H2[0], "-c 3 -i 0.1");
    assert!(said.contains("3 received, +6 duplicates"), "{said}");
    for one in directions(&kaido, "r1-r2") {
        assert_eq!(one["copied"], one["received"], "{one}");
    }
    kaido.ok(&["lab", "link", "r1-r2", "down", "--silent"]);
    assert!(ping(&lab, H2[0], "-c 2 -i 0.05").contains("100% packet loss"));
    let links = lab.exec("r1", "ip -o link show r2");
    assert!(links.contains("state UP"), "the carrier stays: {links}");
    kaido.ok(&["lab", "link", "r1-r2", "up"]);
    assert!(ping(&lab, H2[0], "-c 2 -i 0.05").contains("2 received"));
    lab.down();
}

#[test]
fn root_a_trace_says_when_packets_leave() {
    let kaido = kaido();
    let traced = WAN.replace("{delay: 5ms, rate: 100mbit}", "{trace: slow.trace, queue: 100p}");
    let file = kaido.file("wan.yaml", &traced);
    let before = Machine::now(&kaido);
    // A missing or invalid trace is an error in the file, and no lab is created.
    let refused = |words: &[&str]| {
        for command in ["check", "up"] {
            kaido.run(&["lab", command, &file]).failed(2, words);
        }
    };
    let line = traced.lines().position(|line| line.contains("slow.trace")).unwrap() + 1;
    refused(&["cannot read", "slow.trace: No such file", &format!("wan.yaml:{line}:1")]);
    let trace = kaido.file("slow.trace", "5\n4\n");
    refused(&["line 2 is earlier", "slow.trace:2:1", "whole number of milliseconds"]);
    std::fs::remove_file(&trace).unwrap();
    nix::unistd::mkfifo(trace.as_str(), nix::sys::stat::Mode::S_IRWXU).unwrap();
    refused(&["slow.trace: it is not a regular file"]);
    std::fs::remove_file(&trace).unwrap();
    before.assert_restored(&kaido);
    // One packet every 50 ms.
    kaido.file("slow.trace", "50\n");
    let lab = kaido.lab_up_file(&file, &[]);
    ping(&lab, H2[0], "-c 1");
    let said = ping(&lab, H2[0], "-c 10 -i 0.01 -s 1400");
    let slowest: f64 = said.split('/').nth(5).unwrap().parse().unwrap();
    // A single packet waits 50 ms in each direction, plus 30 ms of delay; later ones also wait for
    // it.
    assert!(slowest > 150.0, "{said}");
    let rate = kaido.run(&["lab", "link", "r2-h2", "set", "rate=1mbit"]);
    rate.failed(2, &["a rate and a trace contradict each other"]);
    lab.down();
}

#[test]
fn root_traces_and_delay_distributions_are_read_from_files() {
    let kaido = kaido();
    let traced =
        WAN.replace("{delay: 5ms, rate: 100mbit}", "{trace: hill.csv, jitter: {file: far.txt}}");
    let file = kaido.file("wan.yaml", &traced);
    let before = Machine::now(&kaido);
    kaido.file("far.txt", "70ms\n60ms\n");
    kaido.file("hill.csv", "time (s),delay (ms)\n1,10\n0,20\n");
    kaido.run(&["lab", "up", &file]).failed(2, &["0ns is earlier", "hill.csv:3:1"]);
    kaido.file("hill.csv", "time (s),delay (ms)\n0,100\n600,20\n");
    kaido.file("far.txt", "70ms\n-60ms\n");
    kaido.run(&["lab", "up", &file]).failed(2, &["`-60ms` is negative", "far.txt:2:1"]);
    before.assert_restored(&kaido);
    kaido.file("far.txt", "70ms\n60ms\n");
    let lab = kaido.lab_up_file(&file, &[]);
    ping(&lab, H2[0], "-c 1");
    // 30 ms on the other link; on this one 100 ms plus 60 to 70 ms in each direction.
    let time = least(&ping(&lab, H2[0], "-c 5 -i 0.2"));
    assert!((350.0..390.0).contains(&time), "{time} ms");
    let said = kaido.ok(&["lab", "links"]);
    assert!(said.contains("trace hill.csv, jitter of far.txt"), "{said}");
    // Changes to the files affect neither the lab nor a restarted emulator.
    kaido.file("hill.csv", "time (s),delay (ms)\n1,10\n0,20\n");
    std::fs::remove_file(kaido.directory().join("far.txt")).unwrap();
    for link in ["r1-r2", "r2-h2"] {
        kaido.ok(&["lab", "link", link, "set", "duplicate=0%"]);
    }
    let same = |time: f64| assert!((350.0..390.0).contains(&time), "{time} ms");
    same(least(&ping(&lab, H2[0], "-c 5 -i 0.2")));
    crate::daemons::end(&kaido, "emulator");
    kaido.ok(&["lab", "start", "emulator"]);
    same(least(&ping(&lab, H2[0], "-c 5 -i 0.2")));
    lab.down();
}

#[test]
fn root_a_web_servers_page_comes_whole_over_a_bad_network() {
    let kaido = kaido();
    let lab = kaido.lab_up(
        "name: web\nrouting: [static]\nnodes: {h1: {}, h2: {}, x: {router: virtual}}\n\
         links: [h1-x: {delay: 5ms, loss: 1%, rate: 100mbit}, x-h2: {duplicate: 1%, reorder: 1%, delay: 1ms}]\n",
    );
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random::seeded();
    let page: Vec<u8> = (0..1 << 20).map(|_| random.bits() as u8).collect();
    std::fs::write(directory.path().join("page"), &page).unwrap();
    let home = directory.path().to_str().unwrap();
    let mut server = lab.start("h2", &["busybox", "httpd", "-f", "-p", "80", "-h", home]);
    let got = directory.path().join("got");
    let fetch = ["curl", "-s", "--noproxy", "*", "-m", "60", "http://10.0.2.2/page", "-o"];
    let fetched = || {
        let fetch = [&fetch[..], &[got.to_str().unwrap()]].concat();
        (lab.run("h1", &fetch).code == Some(0)).then_some(())
    };
    until(Duration::from_secs(90), fetched, || "no page".into());
    assert!(std::fs::read(&got).unwrap() == page);
    server.kill().unwrap();
    server.wait().unwrap();
}
