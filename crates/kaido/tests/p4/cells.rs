//! `kaido p4 counter`, `meter` and `digest`.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use capture::{Interface, Writer};
use p4runtime::v1::ForwardingPipelineConfig;
use p4runtime::{Processes, Sandboxed, Service};
use sandbox::process::{Config, Launcher};
use serde_json::json;
use testkit::{value_of, values_of};

use super::running::{CUSTOMERS, Running};
use super::{directory, kaido, says};

/// Returns an IPv4 packet of 34 bytes without a payload.
fn packet(source: [u8; 4]) -> Vec<u8> {
    let mut packet = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]].concat();
    packet.extend([8, 0, 0x45, 0, 0, 20, 0, 1, 0, 0, 64, 17, 0, 0]);
    packet.extend(source);
    packet.extend([11, 0, 0, 1]);
    packet
}

/// Returns a capture with three packets of one customer, one of another, and one of no customer.
fn capture() -> Vec<u8> {
    let mut writer = Writer::begin(Vec::new(), &[Interface::default()], 0).expect("memory");
    let sources = [[10, 0, 0, 1], [10, 0, 0, 2], [20, 0, 0, 1], [10, 0, 0, 3], [30, 0, 0, 1]];
    for (at, source) in (1_u64..).zip(sources) {
        writer.packet(0, at * 1000, &packet(source), "").expect("memory");
    }
    writer.finish().expect("memory")
}

#[test]
fn people_read_and_set_counters_and_meters() {
    let entries = "customers hdr.ipv4.src=10.0.0.0/8 customer(1)\n\
                   customers hdr.ipv4.src=20.0.0.0/8 customer(2)\n";
    let here = directory(&[("customers.p4", CUSTOMERS), ("entries.txt", entries)]);
    std::fs::write(here.path().join("in.pcapng"), capture()).expect("a file");
    let running = Running::start(
        &["customers.p4", "--entries", "entries.txt", "--pcap", "in.pcapng"],
        here.path(),
    );
    let run = |arguments: &[&str]| running.command(arguments);
    let ls = run(&["counter", "ls"]);
    says(&ls, 0, &["COUNTER", "CELL", "PACKETS", "BYTES"]);
    says(&ls, 0, &["c.customers  hdr.ipv4.src=10.0.0.0/8  3        102"]);
    says(&ls, 0, &["c.customers  hdr.ipv4.src=20.0.0.0/8  1        34"]);
    let said = value_of(&["p4", "counter", "ls"], &run(&["counter", "ls", "--json"]).stdout);
    let first = json!({
        "counter": "c.customers", "cell": "hdr.ipv4.src=10.0.0.0/8", "packets": 3, "bytes": 102,
    });
    assert_eq!(said.as_array().map(Vec::len), Some(2), "{said}");
    assert_eq!(said[0], first, "{said}");
    let all = run(&["counter", "ls", "dropped", "--all", "--json"]);
    let said = value_of(&["p4", "counter", "ls"], &all.stdout);
    assert_eq!(said.as_array().map(Vec::len), Some(512));

    let entry = "hdr.ipv4.src=10.0.0.0/8";
    says(
        &run(&["counter", "set", "customers", entry, "--packets", "7"]),
        0,
        &["c.customers hdr.ipv4.src=10.0.0.0/8: set"],
    );
    says(&run(&["counter", "ls", "customers"]), 0, &["10.0.0.0/8  7        0"]);
    says(
        &run(&["counter", "set", "dropped", "9", "--packets", "5", "--bytes", "6"]),
        0,
        &["c.dropped 9: set"],
    );
    says(&run(&["counter", "ls", "c.dropped"]), 0, &["c.dropped  9     5        6"]);
    says(&run(&["counter", "set", "dropped"]), 0, &["c.dropped: all cells set"]);
    let none = run(&["counter", "ls", "c.dropped", "--json"]);
    assert_eq!(value_of(&["p4", "counter", "ls"], &none.stdout), json!([]));

    let rates = ["--cir", "1000", "--cburst", "100"];
    let with = |first: &[&'static str]| [first, &rates[..]].concat();
    says(&run(&with(&["meter", "set", "uplink", "0"])), 0, &["c.uplink 0: set"]);
    let peak =
        [&with(&["meter", "set", "customers", entry])[..], &["--pir", "2000", "--pburst", "300"]]
            .concat();
    says(&run(&peak), 0, &["c.customers hdr.ipv4.src=10.0.0.0/8: set"]);
    says(
        &run(&with(&["meter", "set", "customers", "default"])),
        0,
        &["c.customers (default): set"],
    );
    let ls = run(&["meter", "ls"]);
    says(&ls, 0, &["METER", "CIR", "CBURST", "PIR", "PBURST"]);
    says(&ls, 0, &["1000  100     1000  100", "10.0.0.0/8  1000  100     2000  300", "(default)"]);
    says(&run(&["meter", "reset", "customers", entry]), 0, &["set"]);
    let said = value_of(&["p4", "meter", "ls"], &run(&["meter", "ls", "--json"]).stdout);
    let left: Vec<_> = said.as_array().expect("a list").iter().map(|one| &one["cell"]).collect();
    assert_eq!(left, ["0", "(default)"], "{said}");

    for (arguments, code, why) in [
        (&["counter", "ls", "nothing"][..], 2, "no counter, or table that has one, `nothing`"),
        (&["counter", "ls", "uplink"], 2, "known: `c.marked`, `c.dropped`, `c.customers`"),
        (&["counter", "set", "dropped", "x"], 2, "`x` is not an index"),
        (&["counter", "set", "dropped", "1", "2"], 2, "`2`: one index is enough"),
        (&["counter", "set", "dropped", "512"], 2, "512"),
        (&["counter", "set", "customers", "hdr.ipv4.src=40.0.0.0/8"], 2, "c.customers"),
        (&["counter", "set", "customers", "port=1"], 2, "no field `port`"),
        (&["counter", "set", "dropped", "1", "--packets", "9223372036854775808"], 2, "63 bits"),
        (&["meter", "set", "uplink", "0", "--cir", "1"], 2, "--cburst"),
        (
            &["meter", "set", "uplink", "0", "--cir", "2", "--cburst", "1", "--pir", "1"],
            2,
            "the peak rate is below the committed one",
        ),
        (&["digest", "nothing"], 2, "no digest `nothing` (known: `c.strangers`"),
    ] {
        says(&run(arguments), code, &[why]);
    }
    let packets = running.end();
    assert_eq!((&packets["digests"], &packets["faults"]), (&json!(1), &json!(0)), "{packets}");
}

#[test]
fn digests_are_explained() {
    let here = directory(&[("customers.p4", CUSTOMERS)]);
    let explained = kaido(&["explain", "customers.p4"], here.path());
    says(&explained, 0, &["DIGEST       BYTES\nc_strangers  8\n", "; meter", "; digest"]);
}

/// Runs each program in its own process, as `kaido p4 run` does.
fn processes() -> Processes {
    let launcher =
        Launcher::of(env!("CARGO_BIN_EXE_kaido-sandbox").as_ref(), [""; 0]).expect("it is built");
    let config = Config { deadline: Duration::from_secs(10), ..Config::default() };
    Processes { launcher, config, vm: None, queues: None }
}

/// Packets are sent until the digests that they cause have been seen.
#[tokio::test(flavor = "multi_thread")]
async fn people_see_digests() {
    let checked = p4::check("customers.p4", CUSTOMERS, &p4::NoIncludes);
    let compiled = p4_ebpf::compile(&checked.program, &checked.sources).expect("it has code");
    let config = ForwardingPipelineConfig {
        p4info: Some(p4info::info(&checked.program).expect("it has p4info")),
        p4_device_config: p4_object::write(&compiled.object).expect("an object"),
        ..Default::default()
    };
    let (device, plane) = Sandboxed::new(processes(), 255);
    let service = Service::new([(1, device)]).expect("it starts");
    service.begin(1, config, Vec::new()).await.expect("it runs");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("it has one").to_string();
    let serving = tokio::spawn(p4runtime::serve(service, listener, std::future::pending()));
    let over = Arc::new(AtomicBool::new(false));
    let traffic = std::thread::spawn({
        let over = Arc::clone(&over);
        move || {
            let mut last = 0_u8;
            while !over.load(Ordering::Relaxed) {
                last = last.wrapping_add(1);
                plane.packet(3, &packet([30, 0, 0, last]), None).expect("it runs");
                std::thread::yield_now();
            }
        }
    });
    let digest = |more: &'static [&'static str]| {
        let address = address.clone();
        tokio::task::spawn_blocking(move || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_kaido"));
            command
                .args(["p4", "digest", "--address", &address, "--insecure-tcp", "--count", "2"])
                .args(more);
            command.stdin(Stdio::null()).output().expect("the command runs")
        })
    };
    let text = digest(&["strangers"]).await.expect("it ends");
    says(&text, 0, &["c.strangers  port=3 source=30.0.0."]);
    assert_eq!(String::from_utf8_lossy(&text.stdout).lines().count(), 2, "{text:?}");
    let said = digest(&["--json"]).await.expect("it ends");
    let all = values_of(&["p4", "digest"], &said.stdout);
    assert_eq!(all.len(), 2);
    assert_eq!((&all[0]["digest"], &all[0]["data"]["port"]), (&json!("c.strangers"), &json!("3")));
    over.store(true, Ordering::Relaxed);
    traffic.join().expect("packets went through");
    // No other client is primary; without a server the command fails.
    serving.abort();
    let gone = digest(&[]).await.expect("it ends");
    says(&gone, 1, &["cannot connect to P4Runtime at"]);
}
