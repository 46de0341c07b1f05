//! Data that a VM publishes, from the VM to the tenant's program.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use capture::{Interface, Writer};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use testkit::{until, value_of};

use super::running::Running;
use super::{directory, kaido, says};

const FILTER: &str = include_str!("../../../p4/tests/programs/vm_filter.p4");
const FIGURE: &str = include_str!("../../../../docs/images/vm-filter.svg");
const TIMEOUT: Duration = Duration::from_secs(30);

/// `kaido p4 publish`, killed on drop.
struct Vm(Child);

impl Vm {
    fn start(directory: &Path, keys: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kaido"));
        command.args(["p4", "publish", "--to", "vm", "--every", "5", "--only", "memory"]);
        command.args(["--valid", "600000"]).args(keys.iter().flat_map(|key| ["--set", key]));
        command.current_dir(directory).stdout(Stdio::null());
        Self(command.spawn().expect("it starts"))
    }

    fn end(mut self) {
        kill(Pid::from_raw(self.0.id() as i32), Signal::SIGINT).expect("it runs");
        assert!(self.0.wait().expect("it ends").success());
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the output of `kaido p4 published`, once there is a publication.
fn published(directory: &Path) -> Value {
    let said = || {
        let output = kaido(&["published", "vm", "--json"], directory);
        output.status.success().then(|| value_of(&["p4", "published"], &output.stdout))
    };
    until(TIMEOUT, said, || "nothing is published".into())
}

#[test]
fn published_values_of_a_vm_are_shown() {
    let here = directory(&[]);
    says(
        &kaido(&["published", "vm"], here.path()),
        2,
        &["vm: cannot read the publication: No such file"],
    );
    let vm = Vm::start(here.path(), &["app.queue=17"]);
    let said = published(here.path());
    assert_eq!(said["state"], "publishes", "{said}");
    let keys = said["keys"].as_array().expect("keys");
    let key = |name: &str| keys.iter().find(|key| key["key"] == name).expect("it is there");
    assert_eq!(
        (&key("app.queue")["value"], &key("app.queue")["fresh"]),
        (&17.into(), &true.into())
    );
    assert_eq!(key("memory.total")["unit"], "bytes");
    assert!(key("app.queue")["age_ns"].as_u64().expect("a number") < 60_000_000_000);
    let shown = kaido(&["published", "vm"], here.path());
    says(&shown, 0, &["KEY", "UNIT", "memory.utilisation", "per mille", "app.queue", "fresh"]);
    vm.end();
    says(&kaido(&["published", "vm"], here.path()), 0, &["stale", "vm: its writer exited"]);
    std::fs::write(here.path().join("other"), "something else, and long enough".repeat(9))
        .expect("a capture");
    let other = kaido(&["published", "other"], here.path());
    says(&other, 2, &["other: it is not a file written by `kaido p4 publish`"]);
}

/// Writes a capture with a packet to each of both ports.
fn capture(directory: &Path) {
    let interface = Interface { name: "in".into(), comment: String::new() };
    let mut writer = Writer::begin(Vec::new(), &[interface], 0).expect("a capture");
    for port in [8000_u16, 9000] {
        let mut packet = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 28];
        packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x13, 0x88]);
        packet.extend(port.to_be_bytes());
        packet.extend([0, 8, 0, 0]);
        writer.packet(0, 1_000_000, &packet, "").expect("a capture");
    }
    std::fs::write(directory.join("in.pcapng"), writer.finish().expect("a capture"))
        .expect("a capture");
}

#[test]
fn a_program_runs_with_the_values_of_its_vm() {
    let here = directory(&[("filter.p4", FILTER)]);
    capture(here.path());
    let with = ["run", "filter.p4", "--pcap", "in.pcapng"];
    let run = |more: &[&str]| kaido(&[&with[..], more].concat(), here.path());
    let nothing = "filter.p4: the program reads net.utilisation, filter.on, filter.off of its";
    says(&run(&[]), 2, &[nothing, "add `--vm-info FILE`"]);
    let explained = kaido(&["explain", "filter.p4"], here.path());
    let reads = "reads of its tenant's VM: net.utilisation, filter.on, filter.off";
    says(&explained, 0, &[reads, "call helper 20  ; get_vm_info"]);
    // The VM has not published yet: the filter stays off.
    let early = [
        "vm: cannot read the publication: No such file",
        "nothing is fresh until there is",
        "2 passed",
    ];
    says(&run(&["--vm-info", "vm"]), 0, &early);
    let limits = ["filter.on=300", "filter.off=100"];
    let vm = Vm::start(here.path(), &[&limits[..], &["net.utilisation=350"]].concat());
    published(here.path());
    says(&run(&["--vm-info", "vm"]), 0, &["1 passed, 0 redirected, 1 dropped"]);
    vm.end();
    let vm = Vm::start(here.path(), &[&limits[..], &["net.utilisation=250"]].concat());
    until(TIMEOUT, || (published(here.path())["state"] == "publishes").then_some(()), String::new);
    says(&run(&["--vm-info", "vm"]), 0, &["2 passed"]);
    drop(vm);
    let vm = Vm::start(here.path(), &["net.utilization=250"]);
    until(TIMEOUT, || (published(here.path())["state"] == "publishes").then_some(()), String::new);
    let why = "the program reads `net.utilisation`, which the VM does not publish in vm: it publishes \
               `net.utilization`";
    says(&run(&["--vm-info", "vm"]), 2, &[why]);
    // Also for a program in its own process.
    let alone = ["run", "filter.p4", "--p4runtime", "none", "--vm-info", "vm"];
    says(&kaido(&alone, here.path()), 2, &[why]);
    drop(vm);
    let mut bytes = std::fs::read(here.path().join("vm")).expect("a file");
    bytes[8] = 2;
    std::fs::write(here.path().join("vm"), bytes).expect("a file");
    says(&run(&["--vm-info", "vm"]), 2, &["layout version 2 is not supported"]);
}

/// The command reports the values that the VM does not publish, also if that changes later.
#[test]
fn values_that_a_vm_does_not_publish_are_reported() {
    let here = directory(&[("filter.p4", FILTER)]);
    let run = Running::start(&["filter.p4", "--vm-info", "vm"], here.path());
    run.told("vm: cannot read the publication: No such file");
    let other = Vm::start(here.path(), &["app.queue=17"]);
    let told = run.told("does not publish");
    assert!(told.starts_with("kaido: filter.p4: the program reads `net.utilisation`"), "{told}");
    other.end();
    let vm = Vm::start(here.path(), &["net.utilisation=400", "filter.on=300", "filter.off=100"]);
    run.told("the VM publishes what the program reads");
    vm.end();
    run.told("the publisher in the VM exited");
    run.end();
}

/// The filter is switched on above 30 % and off below 10 %, and not in between: `kaido bench
/// vm-filter` checks each step itself. The experiment is deterministic, so the figure is always the
/// same.
#[test]
fn the_published_experiment_is_as_it_was_drawn() {
    let here = directory(&[]);
    let output = Command::new(env!("CARGO_BIN_EXE_kaido"))
        .args(["bench", "vm-filter", "--figure", "vm-filter.svg", "--json"])
        .current_dir(here.path())
        .output()
        .expect("the command runs");
    says(&output, 0, &[]);
    let rows = value_of(&["bench"], &output.stdout);
    let number = |at: usize, what: &str| rows[at][what].as_f64().expect("a number");
    assert_eq!(
        (&rows[0]["name"], &rows[1]["name"]),
        (&"vm-filter/on".into(), &"vm-filter/off".into())
    );
    assert!(number(0, "low") > 300.0 && number(0, "high") < 350.0, "{rows}");
    assert!(number(1, "high") < 100.0 && number(1, "low") > 80.0, "{rows}");
    let drawn = std::fs::read_to_string(here.path().join("vm-filter.svg")).expect("a figure");
    assert!(
        drawn == FIGURE,
        "docs/images/vm-filter.svg is out of date: `kaido bench vm-filter --figure \
         docs/images/vm-filter.svg` draws it"
    );
}
