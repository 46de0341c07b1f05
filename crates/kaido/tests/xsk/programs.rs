//! Programs of a running client: their processes, and their P4Runtime devices.

use std::io::BufReader;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Deserializer, Value};
use testkit::{check_output, until};

use super::{Running, TIMEOUT, kaido, stats};

#[test]
fn programs_are_shown_with_their_devices() {
    let kaido = kaido();
    let running = Running::start(&kaido, "default", &[]);
    let said = stats(&kaido, "default");
    assert_eq!(said["sockets"], serde_json::json!([]));
    let address = said["p4runtime"].as_str().expect("an address");
    for (at, tenant, device, table) in [(0, "blue", 1, "c.rules"), (1, "red", 7, "c.t")] {
        let program = &said["programs"][at];
        assert_eq!((&program["tenant"], &program["device_id"]), (&tenant.into(), &device.into()));
        assert_eq!((&program["version"], &program["failures"]), (&1.into(), &0.into()), "{said}");
        assert!(program["process"].is_u64() && program["last_failure"].is_null(), "{said}");
        let device = device.to_string();
        let tables = ["p4", "table", "ls", "--address", address, "--device-id", &device];
        assert!(kaido.ok(&tables).contains(table));
    }
    let text = kaido.ok(&["xsk", "stats"]);
    let head = format!("/bin/sleep (process {}), P4Runtime at {address}", running.client);
    for part in [&*head, "eth2=4,eth3=5", "has not opened an AF_XDP socket"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn the_end_of_a_process_is_shown() {
    let kaido = kaido();
    let _running = Running::start(&kaido, "default", &[]);
    let blue = || stats(&kaido, "default")["programs"][0].clone();
    let before = blue()["process"].as_i64().expect("a process");
    kill(Pid::from_raw(before as i32), Signal::SIGKILL).expect("it runs");
    let replaced = || Some(blue()).filter(|now| now["process"].is_u64() && now["failures"] == 1);
    let now = until(TIMEOUT, replaced, || blue().to_string());
    assert_ne!(now["process"], before);
    assert!(now["last_failure"].is_string() && now["evicted"] == false, "{now}");
}

/// A request of a control plane waits for a process that does not respond.
#[test]
fn a_slow_process_of_one_tenant_delays_no_other_tenant() {
    let kaido = kaido();
    let _running = Running::start(&kaido, "default", &[]);
    let said = stats(&kaido, "default");
    let process = |said: &Value, at: usize| said["programs"][at]["process"].as_i64();
    let [blue, red] = [0, 1].map(|at| Pid::from_raw(process(&said, at).expect("a process") as i32));
    let address = said["p4runtime"].as_str().expect("an address");
    kill(blue, Signal::SIGSTOP).expect("it runs");
    let entry = ["c.rules", "src=10.0.0.0/8", "priority=10", "allow"];
    let add = [&["p4", "table", "add"][..], &entry, &["--address", address]].concat();
    let mut add = kaido.command(&add);
    let mut add = add.stderr(std::process::Stdio::null()).spawn().expect("it starts");
    // The request is on its way to the process once the daemon does not see its state anymore.
    testkit::pause(std::time::Duration::from_millis(200));
    kill(red, Signal::SIGKILL).expect("it runs");
    let replaced = || {
        let now = process(&stats(&kaido, "default"), 1)?;
        (now != i64::from(red.as_raw())).then_some(())
    };
    until(TIMEOUT, replaced, || stats(&kaido, "default").to_string());
    assert!(add.try_wait().expect("it is a child").is_none(), "the request is still waiting");
    kill(blue, Signal::SIGCONT).expect("it runs");
    add.wait().expect("it ends");
}

#[test]
fn rates_are_shown_until_the_reader_leaves() {
    let kaido = kaido();
    let _running = Running::start(&kaido, "default", &[]);
    let mut top = kaido.start(&["xsk", "top", "--json"]);
    let output = BufReader::new(top.stdout.take().expect("it is a pipe"));
    let mut values = Deserializer::from_reader(output).into_iter::<Value>();
    for _ in 0..2 {
        let value = values.next().expect("a value").expect("JSON");
        check_output(&["xsk", "top"], &value);
        assert_eq!(value["name"], "default");
    }
    drop(values);
    assert!(top.wait().expect("it ends").success());
}
