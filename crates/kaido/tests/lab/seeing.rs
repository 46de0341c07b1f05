//! Display of a lab's links: counters by cause, and current options.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use testkit::{Kaido, Lab, until};

use crate::daemons::end;
use crate::{direction, kaido};

/// A kernel link, two emulated links, and a LAN.
const WAN: &str = "\
name: wan
seed: 7
nodes: {h1: {}, h2: {}, h3: {}, r1: {router: linux}, r2: {router: linux}}
links:
  - h1-r1: {rate: 50mbit}
  - r1-r2: {delay: 20ms, loss: 10%, rate: 10mbit, filter: [{protocol: tcp}]}
  - lan0: {nodes: [r2, h2, h3], delay: 1ms}
";
const H2: &str = "10.0.3.2";

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn ping(lab: &Lab<'_>, arguments: &str) {
    let all = format!("ping -q -W 1 {arguments} {H2}");
    lab.run("h1", &all.split_whitespace().collect::<Vec<_>>());
}

#[test]
fn root_every_packet_of_a_link_is_accounted_for_from_socket_to_socket() {
    let kaido = kaido();
    let lab = kaido.lab_up(WAN);
    ping(&lab, "-c 1");
    ping(&lab, "-c 200 -i 0.002");
    // The filter drops a TCP connection.
    let connect = ["bash", "-c", "timeout 1 bash -c '</dev/tcp/10.0.3.2/80'"];
    lab.run("h1", &connect);
    let account = |all: &Value| -> Option<()> {
        let one = direction(all, "r1-r2", "r1");
        let dropped = one["dropped"].as_object()?.values().map(number).sum::<u64>();
        let came = number(&one["entry"]["received"]);
        let is_whole = came == number(&one["received"]) + number(&one["filtered"])
            && number(&one["received"]) == number(&one["arrived"]) + dropped
            && number(&one["arrived"]) == number(&one["exit"]["sent"]);
        (is_whole && number(&one["filtered"]) > 0 && dropped > 5).then_some(())
    };
    let links = || kaido.json(&["lab", "links"]);
    until(Duration::from_secs(10), || account(&links()), || links().to_string());
    let all = links();
    let one = direction(&all, "r1-r2", "r1");
    for lost in [&one["entry"]["misunderstood"], &one["entry"]["overflowed"]] {
        assert_eq!(number(lost), 0, "{one}");
    }
    assert_eq!(number(&one["exit"]["refused"]), 0, "{one}");
    // Packets that the LAN sends to a member leave through that member's own port.
    assert!(number(&direction(&all, "lan0", "h2")["exit"]["sent"]) > 100, "{all}");
    let said = kaido.ok(&["lab", "links"]);
    assert!(said.contains("loss ") && said.contains("filtered "), "{said}");
    lab.down();
}

#[test]
fn root_measured_values_of_links_are_next_to_configured_ones() {
    let kaido = kaido();
    let lab = kaido.lab_up(WAN);
    ping(&lab, "-c 1");
    let mut pinging = lab.start("h1", &["ping", "-q", "-i", "0.005", "-s", "1000", H2]);
    let all = kaido.json(&["lab", "top", "--once", "--interval", "2"]);
    let said = kaido.ok(&["lab", "top", "--interval", "0.5"]);
    pinging.kill().unwrap();
    pinging.wait().unwrap();
    let one = direction(&all, "r1-r2", "r1");
    let part = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{all}"));
    assert_eq!((number(&one["delay_ns"]), number(&one["rate_bps"])), (20_000_000, 10_000_000));
    // Measured on the link itself, without the emulator's lateness; transmission takes 0.8 ms.
    let delay = part(&one["delay_measured_ns"]);
    assert!((20_000_000.0..60_000_000.0).contains(&delay), "{one}");
    assert!(part(&one["late_mean_ns"]) > 0.0 && number(&one["late_max_ns"]) > 0, "{one}");
    assert_eq!((part(&one["loss"]), &one["emulated"]), (0.1, &Value::Bool(true)));
    assert!((0.01..0.3).contains(&part(&one["loss_measured"])), "{one}");
    // At most 200 a second, and slightly more on a busy machine.
    assert!((10.0..300.0).contains(&part(&one["packets_per_s"])), "{one}");
    assert!((80_000.0..3_000_000.0).contains(&part(&one["rate_measured_bps"])), "{one}");
    assert!(number(&one["dropped"]["loss"]) > 0, "{one}");
    // The kernel has fewer counters.
    let own = direction(&all, "h1-r1", "h1");
    assert_eq!((&own["delay_ns"], &own["emulated"]), (&Value::Null, &Value::Bool(false)));
    assert_eq!(number(&own["rate_bps"]), 50_000_000, "{own}");
    assert!(part(&own["packets_per_s"]) > 10.0, "{own}");
    assert_eq!(all.as_array().unwrap().len(), 7, "two links and a LAN of three: {all}");
    // Without a terminal it prints once.
    assert!(said.starts_with("LINK   FROM  SET-DELAY"), "{said}");
    assert_eq!(said.lines().count(), 8, "{said}");

    kaido.run(&["lab", "top", "--lab", "nowhere"]).failed(2, &["nowhere"]);
    kaido.run(&["lab", "top", "--interval", "0"]).failed(2, &["write seconds, from 0.1 to 3600"]);
    end(&kaido, "emulator");
    let top = || kaido.ok(&["lab", "top", "--once"]);
    until(Duration::from_secs(10), || top().contains("is not running").then_some(()), top);
    let said = top();
    assert_eq!((said.lines().count(), said.matches("not running").count()), (8, 5), "{said}");
    kaido.run(&["lab", "links"]).failed(1, &["no emulator answers"]);
    lab.down();
}

/// Runs `lab top` on a terminal of this size, types keys once it shows these words, and waits for
/// its exit. Returns its exit code and output.
fn on_terminal(kaido: &Kaido, size: &str, words: &str, keys: &[u8]) -> (Option<i32>, String) {
    let program = env!("CARGO_BIN_EXE_kaido");
    let command = format!("stty {size}; exec {program} lab top --interval 0.2");
    let mut script = Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).env("KAIDO_RUN", kaido.run_directory());
    let mut running = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut keyboard, mut screen) =
        (running.stdin.take().unwrap(), running.stdout.take().unwrap());
    let shown = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&shown);
    let reader = thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = screen.read(&mut buffer) {
            told.lock().unwrap().extend_from_slice(&buffer[..count]);
        }
    });
    let text = || String::from_utf8_lossy(&shown.lock().unwrap()).into_owned();
    until(Duration::from_secs(20), || text().contains(words).then_some(()), text);
    keyboard.write_all(keys).unwrap();
    let code = until(Duration::from_secs(20), || running.try_wait().unwrap(), text).code();
    reader.join().unwrap();
    (code, text())
}

#[test]
fn root_a_key_ends_it_on_a_terminal_and_the_terminal_is_restored() {
    let kaido = kaido();
    let lab = kaido.lab_up(WAN);
    for (size, words, keys) in [
        ("rows 30 cols 160", "7 directions; q ends", &b"q"[..]),
        ("rows 30 cols 160", "20ms", b"\x03"),
        ("rows 3 cols 20", "small:", b"q"),
    ] {
        let (code, screen) = on_terminal(&kaido, size, words, keys);
        assert_eq!(code, Some(0), "{size} {keys:?}: {screen}");
        let (entered, left) = (screen.find("\x1b[?1049h"), screen.rfind("\x1b[?1049l"));
        assert!(entered.is_some() && entered < left, "{screen:?}");
    }
    lab.down();
}

/// Fetches the metrics as Prometheus does.
fn scrape(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn root_prometheus_gets_the_counters_of_links() {
    let kaido = kaido();
    let lab = kaido.lab_up(WAN);
    // A lost ARP packet would delay the pings, so that few of them reach the second link.
    let answered = || {
        let said = lab.run("h1", &["ping", "-q", "-c", "1", "-W", "1", H2]);
        (said.code == Some(0)).then_some(())
    };
    until(Duration::from_secs(30), answered, || "no answer".into());
    ping(&lab, "-c 100 -i 0.002");
    let printed = kaido.ok(&["lab", "metrics"]);
    assert!(printed.ends_with("# EOF\n") && printed.contains("lab=\"wan\""), "{printed}");
    let mut command = kaido.command(&["lab", "metrics", "--listen", "127.0.0.1:0"]);
    let mut serving = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(serving.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.strip_prefix("http://").and_then(|line| line.split_once('/')).unwrap().0;
    let answer = scrape(address);
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.contains("content-type: application/openmetrics-text"), "{answer}");
    let value = |answer: &str, name: &str, labels: &str| -> f64 {
        let start = format!("kaido_lab_{name}{{lab=\"wan\"{labels}}} ");
        let line = answer.lines().find_map(|line| line.strip_prefix(&start));
        line.unwrap_or_else(|| panic!("{start}: {answer}")).parse().unwrap()
    };
    let far = ",link=\"r1-r2\",from=\"r1\",to=\"r2\"";
    let lost = format!("{far},cause=\"loss\"");
    assert!(value(&answer, "link_packets_total", far) > 20.0);
    assert!(value(&answer, "link_dropped_packets_total", &lost) >= 1.0);
    assert!(value(&answer, "link_lateness_seconds_count", far) > 20.0);
    let mean =
        value(&answer, "link_delay_seconds_total", far) / value(&answer, "link_packets_total", far);
    assert!((0.02..0.1).contains(&mean), "{mean}");
    let own = ",link=\"h1-r1\",from=\"h1\",to=\"r1\"";
    assert!(value(&answer, "link_packets_total", own) > 50.0);
    assert_eq!(value(&answer, "link_configured_rate_bits_per_second", own), 5e7);
    assert_eq!(value(&answer, "emulator_up", ""), 1.0);

    // An address in use is rejected, and the exit of the emulator is visible.
    kaido
        .run(&["lab", "metrics", "--listen", address])
        .failed(1, &[&format!("cannot listen on {address} for Prometheus")]);
    end(&kaido, "emulator");
    let gone = || scrape(address).contains("kaido_lab_emulator_up{lab=\"wan\"} 0\n");
    until(Duration::from_secs(10), || gone().then_some(()), || scrape(address));
    let answer = scrape(address);
    assert!(value(&answer, "link_packets_total", own) > 50.0);
    assert_eq!(value(&answer, "up", ""), 1.0);
    // It continues without the lab.
    lab.down();
    // An answer may be half a second old.
    let down = || Some(scrape(address)).filter(|answer| value(answer, "up", "") == 0.0);
    let answer = until(Duration::from_secs(10), down, || scrape(address));
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(!answer.contains("kaido_lab_link"), "{answer}");
    assert!(
        Command::new("kill").args(["-INT", &serving.id().to_string()]).status().unwrap().success()
    );
    assert_eq!(serving.wait().unwrap().code(), Some(0));
    kaido.run(&["lab", "metrics", "--lab", "nowhere"]).failed(2, &["nowhere"]);
}
