//! Events are carried out at the times in the file, and unexpected events are detected and
//! repaired.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;
use testkit::{Kaido, Lab, Machine, until};

use crate::daemons::{daemon, end, signal};
use crate::{direction, kaido};

/// A host on either side of two routers; the first link is a kernel link, the others are emulated.
const WAN: &str = "\
name: wan
seed: 7
nodes: {h1: {}, h2: {}, r1: {router: linux}, r2: {router: linux}}
links:
  - h1-r1
  - r1-r2: {delay: 10ms, rate: 30mbit}
  - r2-h2: {delay: 5ms}
";
/// h2's addresses, on the last link.
const H2: [&str; 2] = ["10.0.3.2", "fd02:0:0:3::2"];

fn summary(kaido: &Kaido) -> Value {
    kaido.json(&["lab", "ls"])[0].clone()
}

/// True if a node's interface has a carrier.
fn carrier(lab: &Lab<'_>, node: &str, interface: &str) -> bool {
    let said = lab.exec(node, &format!("ip -o link show {interface}"));
    assert!(said.contains("UP"), "{said}");
    !said.contains("NO-CARRIER")
}

fn pings(lab: &Lab<'_>) {
    for address in H2 {
        let said = lab.run("h1", &["ping", "-q", "-c", "3", "-i", "0.2", "-W", "2", address]);
        assert_eq!(said.code, Some(0), "{}", said.stdout);
    }
}

#[test]
fn root_an_emulator_that_is_killed_is_seen_at_once_and_mended() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    let lab = kaido.lab_up(WAN);
    pings(&lab);
    assert_eq!(summary(&kaido)["phase"], "ready");
    let killed = Instant::now();
    end(&kaido, "emulator");
    until(
        Duration::from_secs(1),
        || (summary(&kaido)["phase"] == "degraded").then_some(()),
        || format!("{}", summary(&kaido)),
    );
    until(
        Duration::from_secs(1).saturating_sub(killed.elapsed()),
        || (!carrier(&lab, "r1", "r2") && !carrier(&lab, "h2", "r2")).then_some(()),
        || lab.exec("r1", "ip -o link show"),
    );
    let said = kaido.ok(&["lab", "ls"]);
    assert!(said.contains("the emulator exited and its links are down"), "{said}");
    assert!(carrier(&lab, "h1", "r1"), "the kernel's own link is none of its");
    kaido.run(&["lab", "link", "r1-r2", "set", "delay=1ms"]).failed(1, &["no emulator answers"]);
    // `gc` only removes remains.
    assert_eq!(kaido.json(&["lab", "gc"]), serde_json::json!([]));
    kaido.ok(&["lab", "start", "emulator"]);
    assert_eq!(summary(&kaido)["phase"], "ready");
    assert!(carrier(&lab, "r1", "r2") && carrier(&lab, "h2", "r2"));
    pings(&lab);
    let said = kaido.ok(&["lab", "events"]);
    assert!(
        said.contains("the emulator exited") && said.contains("the emulator was restarted"),
        "{said}"
    );
    kaido.run(&["lab", "start", "emulator"]).failed(2, &["is running already"]);
    for command in [
        &["link", "r1-r2", "set", "delay=1ms", "--from", "h1"][..],
        &["traffic", "r1-r2", "--from", "h1", "rate=1mbit", "for=1s"],
        &["capture", "--link", "r1-r2", "--from", "h1", "--write", "/nowhere/x"],
        &["link", "h1-r1", "set", "rate=1mbit", "--from", "r2"],
    ] {
        let said = kaido.run(&[&["lab"], command].concat());
        let ends = if command.contains(&"r2") {
            "h1-r1, which has h1, r1"
        } else {
            "r1-r2, which has r1, r2"
        };
        said.failed(2, &["is not on", ends]);
    }
    end(&kaido, "emulator");
    lab.down();
    before.assert_restored(&kaido);
}

/// Simulates a cleaner of old files.
#[test]
fn root_daemons_whose_sockets_are_gone_are_named_and_replaced() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    let lab = kaido.lab_up(WAN);
    let directory = kaido.run_directory().join("labs/wan");
    for gone in [&["emulator"][..], &["supervisor"], &["emulator", "supervisor"]] {
        let old: Vec<_> = gone.iter().map(|name| daemon(&kaido, name)).collect();
        for name in gone {
            std::fs::remove_file(directory.join(format!("{name}.sock"))).unwrap();
        }
        let said = kaido.ok(&["lab", "ls"]);
        for name in gone {
            let words = format!("the {name} runs, and its socket is gone");
            assert!(said.contains(&words) && said.contains(&format!("start {name}`")), "{said}");
        }
        // This also restarts the supervisor.
        kaido.ok(&["lab", "start", gone[0]]);
        let new: Vec<_> = gone.iter().map(|name| daemon(&kaido, name)).collect();
        assert!(new.iter().zip(&old).all(|(new, old)| new.is_some() && new != old), "{gone:?}");
        assert_eq!(summary(&kaido)["phase"], "ready", "{gone:?}");
        pings(&lab);
        kaido.ok(&["lab", "links"]);
    }
    lab.down();
    before.assert_restored(&kaido);
}

#[test]
fn root_a_killed_supervisor_does_no_harm_and_is_named() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    let lab = kaido.lab_up(WAN);
    end(&kaido, "supervisor");
    pings(&lab);
    assert_eq!(summary(&kaido)["phase"], "degraded");
    assert!(kaido.ok(&["lab", "ls"]).contains("`kaido lab start supervisor`"));
    // Both have exited: `start emulator` also starts the supervisor, which sets the links down
    // until then.
    end(&kaido, "emulator");
    kaido.ok(&["lab", "start", "emulator"]);
    assert_eq!(summary(&kaido)["phase"], "ready");
    pings(&lab);
    kaido.run(&["lab", "start", "supervisor"]).failed(2, &["is running already"]);
    end(&kaido, "supervisor");
    kaido.ok(&["lab", "start", "supervisor"]);
    end(&kaido, "emulator");
    until(
        Duration::from_secs(1),
        || (!carrier(&lab, "r1", "r2")).then_some(()),
        || lab.exec("r1", "ip -o link show"),
    );
    end(&kaido, "supervisor");
    lab.down();
    before.assert_restored(&kaido);
}

#[test]
fn root_an_interface_that_goes_takes_its_link_down_and_no_other() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    let lab = kaido.lab_up(WAN);
    lab.exec("r1", "ip link del r2");
    until(
        Duration::from_secs(1),
        || (!carrier(&lab, "r2", "r1")).then_some(()),
        || lab.exec("r2", "ip -o link show"),
    );
    let said = kaido.ok(&["lab", "ls"]);
    assert!(said.contains("degraded") && said.contains("r1:r2 is gone"), "{said}");
    // Packets for it are lost, and the other links still work.
    lab.run("h2", &["ping", "-c", "1", "-W", "1", "10.0.1.1"]);
    lab.ping("r2", &H2);
    lab.down();
    before.assert_restored(&kaido);
}

/// Times and outcomes of the steps, in order of time.
fn states(kaido: &Kaido) -> Vec<(f64, String)> {
    let all = kaido.json(&["lab", "events"]);
    let state = |one: &Value| {
        let error = one["error"].as_str().unwrap_or_default();
        (
            one["done_at"].as_f64().unwrap_or(0.0),
            format!("{}{error}", one["state"].as_str().unwrap()),
        )
    };
    all["events"].as_array().unwrap().iter().map(state).collect()
}

pub(crate) fn wait_for_steps(kaido: &Kaido, count: usize) {
    let done = || states(kaido).iter().filter(|(_, state)| state != "to-come").count() >= count;
    until(Duration::from_secs(20), || done().then_some(()), || format!("{:?}", states(kaido)));
}

#[test]
fn root_events_happen_in_time_on_links_of_both_kinds() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    let lab = kaido.lab_up(&format!(
        "{WAN}events:
  - {{at: 3s, link: r1-r2, set: {{delay: 40ms}}, from: r1}}
  - {{at: 500ms, link: h1-r1, down: 1s}}
  - {{at: 2s, link: h1-r1, set: {{rate: 50mbit}}}}
  - {{at: 2.5s, link: r1-r2, down: 100ms, silent: true}}
  - {{at: 3.5s, link: r2-h2, down: 500ms}}
"
    ));
    assert!(states(&kaido).iter().all(|(_, state)| state == "to-come"));
    wait_for_steps(&kaido, 1);
    let said = lab.exec("h1", "ip -o link show r1");
    assert!(said.contains("state DOWN"), "{said}");
    wait_for_steps(&kaido, 8);
    let seen = states(&kaido);
    let times = [0.5, 1.5, 2.0, 2.5, 2.6, 3.0, 3.5, 4.0];
    for ((at, state), due) in seen.iter().zip(times) {
        assert!(state == "done" && (due..due + 1.0).contains(at), "{seen:?}");
    }
    assert!(lab.exec("h1", "tc qdisc show dev r1").contains("50Mbit"));
    pings(&lab);
    let links = kaido.json(&["lab", "links"]);
    assert_eq!(direction(&links, "r1-r2", "r1")["does"], "rate 30mbit, delay 40ms");
    assert_eq!(direction(&links, "r1-r2", "r2")["does"], "rate 30mbit, delay 10ms");
    // A restarted emulator receives the changes.
    end(&kaido, "emulator");
    kaido.ok(&["lab", "start", "emulator"]);
    let said = kaido.ok(&["lab", "links"]);
    assert!(said.contains("delay 40ms"), "{said}");
    lab.down();
    before.assert_restored(&kaido);
}

#[test]
fn root_a_timeline_goes_on_where_its_supervisor_was_killed() {
    let kaido = kaido();
    let lab = kaido.lab_up(&format!(
        "{WAN}events:
  - {{at: 300ms, link: h1-r1, down: 1500ms}}
  - {{at: 1s, link: r1-r2, set: {{loss: 1%}}}}
  - {{at: 600s, link: r1-r2, set: {{loss: 2%}}}}
"
    ));
    wait_for_steps(&kaido, 1);
    let first = states(&kaido)[0].clone();
    end(&kaido, "supervisor");
    // Wait until two more are due.
    let ready_for = || kaido.json(&["lab", "events"])["ready_for"].as_f64().unwrap();
    until(Duration::from_secs(10), || (ready_for() > 2.0).then_some(()), String::new);
    assert!(kaido.ok(&["lab", "ls"]).contains("events wait"));
    kaido.ok(&["lab", "start", "supervisor"]);
    wait_for_steps(&kaido, 3);
    let seen = states(&kaido);
    assert_eq!(seen[0], first, "it is done once");
    let state = |(_, state): &(f64, String)| state.clone();
    assert_eq!(seen.iter().map(state).collect::<Vec<_>>(), ["done", "done", "done", "to-come"]);
    pings(&lab);
    lab.down();
}

/// A stopped emulator exists but does not respond: steps that are due wait.
#[test]
fn root_events_wait_for_an_emulator_that_does_not_answer() {
    let kaido = kaido();
    let lab = kaido.lab_up(&format!(
        "{WAN}events:
  - {{at: 2s, link: r1-r2, set: {{delay: 40ms}}, from: r1}}
  - {{at: 2.1s, link: r2-h2, from: r2, traffic: {{rate: 1kbit, for: 1h, size: 125b}}}}
"
    ));
    signal(&kaido, "emulator", Signal::SIGSTOP);
    let said = kaido.ok(&["lab", "ls"]);
    assert!(said.contains("degraded") && said.contains("the emulator does not respond"), "{said}");
    let events = || kaido.ok(&["lab", "events"]);
    let waits = || events().contains("the emulator does not respond: events wait");
    until(Duration::from_secs(10), || waits().then_some(()), events);
    let ready_for = || kaido.json(&["lab", "events"])["ready_for"].as_f64().unwrap();
    until(Duration::from_secs(10), || (ready_for() > 3.0).then_some(()), String::new);
    assert!(states(&kaido).iter().all(|(_, state)| state == "to-come"), "{}", events());
    signal(&kaido, "emulator", Signal::SIGCONT);
    wait_for_steps(&kaido, 2);
    assert!(states(&kaido).iter().all(|(_, state)| state == "done"), "{}", events());
    let said = events();
    assert!(said.contains(" s late") && said.contains("the emulator answers again"), "{said}");
    let links = kaido.json(&["lab", "links"]);
    assert_eq!(direction(&links, "r1-r2", "r1")["does"], "rate 30mbit, delay 40ms");
    let stop = ["lab", "traffic", "r2-h2", "--from", "r2", "--stop"];
    assert_eq!(kaido.json(&stop)["stopped"], 1);
    assert_eq!(summary(&kaido)["phase"], "ready");
    lab.down();
}

/// Restarts the emulator at any point between events, which are always due.
#[test]
fn root_a_restarted_emulator_gets_each_event_once() {
    let kaido = kaido();
    const COUNT: usize = 400;
    let events: String = (0..COUNT)
        .map(|n| {
            let traffic = "traffic: {rate: 1kbit, for: 1h, size: 125b}";
            format!("  - {{at: {}ms, link: r1-r2, from: r1, {traffic}}}\n", 500 + n)
        })
        .collect();
    let lab = kaido.lab_up(&format!("{WAN}events:\n{events}"));
    wait_for_steps(&kaido, 20);
    end(&kaido, "emulator");
    kaido.ok(&["lab", "start", "emulator"]);
    wait_for_steps(&kaido, COUNT);
    let stop = ["lab", "traffic", "r1-r2", "--from", "r1", "--stop"];
    assert_eq!(kaido.json(&stop)["stopped"], COUNT, "{}", kaido.ok(&["lab", "events"]));
    // Stopped traffic does not start again.
    end(&kaido, "emulator");
    kaido.ok(&["lab", "start", "emulator"]);
    assert_eq!(kaido.json(&stop)["stopped"], 0, "{}", kaido.ok(&["lab", "events"]));
    lab.down();
}

#[test]
fn root_cross_traffic_is_as_much_as_it_says() {
    let kaido = kaido();
    let lab = kaido.lab_up(&format!(
        "{WAN}events:
  - {{at: 200ms, link: r1-r2, from: r1,
     traffic: {{rate: 10mbit, for: 1s, size: 1250b, family: ipv6}}}}
"
    ));
    let cross = |link: &str, from: &str| {
        let links = kaido.json(&["lab", "links"]);
        let cross = &direction(&links, link, from)["cross"];
        ["sent", "sent_bytes", "arrived"].map(|key| cross[key].as_u64().unwrap())
    };
    let arrived = |link: &str, from: &str, all: u64| {
        let limit = Duration::from_secs(20);
        let said = || format!("{:?}", cross(link, from));
        until(limit, || (cross(link, from)[2] == all).then_some(()), said);
    };
    // A thousand packets are sent in one second.
    arrived("r1-r2", "r1", 1000);
    assert_eq!(cross("r1-r2", "r1"), [1000, 1_250_000, 1000]);
    assert_eq!(cross("r1-r2", "r2"), [0, 0, 0]);
    let said = kaido.ok(&[
        "lab",
        "traffic",
        "r2-r1",
        "--from",
        "r2",
        "rate=1mbit",
        "for=100ms",
        "size=125b",
    ]);
    assert!(said.contains("r1-r2 from r2: 1mbit constant"), "{said}");
    arrived("r1-r2", "r2", 100);
    let run = |link: &str, settings: &[&str]| {
        kaido.run(&[&["lab", "traffic", link, "--from", "r1"], settings].concat())
    };
    run("h1-r1", &["rate=1mbit", "for=1s"]).failed(2, &["engine: true"]);
    run("r1-r2", &["rate=1mbit"]).failed(2, &["say for how long"]);
    run("r1-r2", &["rate=1mbit", "for=1s", "size=9000b"]).failed(2, &["9000 bytes"]);
    pings(&lab);
    lab.down();
}
