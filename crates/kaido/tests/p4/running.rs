//! `kaido p4 run` and `kaido p4 table`: a running program and its controllers.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use capture::{Interface, Writer, read};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use p4runtime::v1::p4_runtime_client::P4RuntimeClient;
use p4runtime::v1::set_forwarding_pipeline_config_request::Action;
use p4runtime::v1::{
    GetForwardingPipelineConfigRequest, MasterArbitrationUpdate,
    SetForwardingPipelineConfigRequest, StreamMessageRequest, StreamMessageResponse, Uint128,
};
use p4runtime::v1::{stream_message_request, stream_message_response};
use sandbox::process::BackOff;
use serde_json::{Deserializer, StreamDeserializer, Value, de::IoRead};
use testkit::value_of;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::Channel;

use super::{directory, kaido, says};

const FIREWALL: &str = include_str!("../../../p4/tests/programs/firewall.p4");
pub(super) const CUSTOMERS: &str = include_str!("../../../p4/tests/programs/police_customers.p4");
const ROUTER: &str = include_str!("../../../p4/tests/programs/table_lpm.p4");

/// Installed there by `scripts/deps.sh --lint`.
pub(super) const PYTHON: &str =
    concat!(env!("CARGO_TARGET_TMPDIR"), "/../tools/p4runtime-shell/bin/python");
const SESSIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/p4/");

/// Timeout for events that normally occur immediately.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running program, killed on drop.
pub(super) struct Running {
    child: Child,
    said: StreamDeserializer<'static, IoRead<ChildStdout>, Value>,
    errors: Receiver<String>,
    address: String,
}

impl Running {
    pub(super) fn start(arguments: &[&str], directory: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_kaido"))
            .args(["p4", "run", "--p4runtime", "127.0.0.1:0", "--insecure-tcp", "--json"])
            .args(arguments)
            .current_dir(directory)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command runs");
        let output = child.stdout.take().expect("it is a pipe");
        let errors = BufReader::new(child.stderr.take().expect("it is a pipe")).lines();
        let (lines, read) = channel();
        std::thread::spawn(move || {
            errors.map_while(Result::ok).try_for_each(|line| lines.send(line))
        });
        let mut said = Deserializer::from_reader(output).into_iter::<Value>();
        let Some(Ok(first)) = said.next() else {
            panic!("it does not run: {}", read.iter().collect::<Vec<_>>().join("\n"));
        };
        let address = first["p4runtime"].as_str().expect("an address").to_owned();
        Self { child, said, errors: read, address }
    }

    /// Returns the process ID of the command.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the next line on standard error that contains this text.
    pub(super) fn told(&self, part: &str) -> String {
        loop {
            let line = self.errors.recv_timeout(TIMEOUT).expect(part);
            if line.contains(part) {
                return line;
            }
        }
    }

    fn table(&self, arguments: &[&str]) -> Output {
        self.command(&[&["table"], arguments].concat())
    }

    /// Runs a command that connects to it.
    pub(super) fn command(&self, arguments: &[&str]) -> Output {
        let mut all = arguments.to_vec();
        all.extend(["--address", &self.address, "--insecure-tcp"]);
        kaido(&all, Path::new("."))
    }

    /// Ends it, and returns its packet counts.
    pub(super) fn end(mut self) -> Value {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM).expect("it runs");
        let counts = self.said.next().expect("it says more").expect("JSON");
        assert!(self.child.wait().expect("it ends").success());
        counts["packets"].clone()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a session of p4runtime-shell.
fn session(name: &str, arguments: &[&str], directory: &Path) -> Output {
    assert!(
        Path::new(PYTHON).exists(),
        "{PYTHON} is not there: `scripts/deps.sh --lint` installs p4runtime-shell"
    );
    let script = format!("{SESSIONS}{name}");
    Command::new("timeout")
        .args(["120", PYTHON, &script])
        .args(arguments)
        // Its generated code is too old for protobuf's faster implementations.
        .env("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python")
        .env_remove("PYTHONPATH")
        .current_dir(directory)
        .output()
        .expect("the shell runs")
}

#[test]
fn p4runtime_shell_programs_a_running_firewall() {
    let here = directory(&[("firewall.p4", FIREWALL), ("router.p4", ROUTER)]);
    says(&kaido(&["compile", "router.p4"], here.path()), 0, &["router.o"]);
    let running = Running::start(&["firewall.p4"], here.path());
    let shell = session("firewall.py", &[&running.address, "router.o"], here.path());
    says(&shell, 0, &["all well"]);
    let packets = running.end();
    assert!(packets["passed"].as_u64().expect("a number") > 20, "{packets}");
    assert_eq!(packets["to_control_plane"], packets["passed"], "{packets}");
    assert_eq!(packets["faults"], 0, "{packets}");
}

#[test]
fn p4runtime_shell_polices_customers() {
    let here = directory(&[("customers.p4", CUSTOMERS)]);
    let running = Running::start(&["customers.p4"], here.path());
    let shell = session("customers.py", &[&running.address], here.path());
    says(&shell, 0, &["all well"]);
    let packets = running.end();
    assert_eq!(packets["faults"], 0, "{packets}");
}

/// Returns the child processes of a process.
pub(super) fn children(process: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).expect("it runs");
    let children = tasks.map(|task| task.expect("a thread").path().join("children"));
    let texts: String = children.filter_map(|file| std::fs::read_to_string(file).ok()).collect();
    texts.split_whitespace().map(|number| number.parse().expect("a number")).collect()
}

/// Returns the process of the running program.
fn process_of(run: &Running) -> Pid {
    Pid::from_raw(children(run.id())[0] as i32)
}

/// If the process is killed, another one replaces it, with the same tables.
#[test]
fn requests_are_answered_while_the_process_is_gone() {
    let directory = directory(&[("customers.p4", CUSTOMERS)]);
    let run = Running::start(&["customers.p4"], directory.path());
    for _ in 0..2 {
        kill(process_of(&run), Signal::SIGKILL).expect("it runs");
        for what in ["counter", "table", "meter"] {
            let output = run.command(&[what, "ls"]);
            assert!(output.status.success(), "{what}: {output:?}");
        }
    }
    run.end();
}

/// The command reports the end of the process unasked, until it has ended too often.
#[tokio::test]
async fn the_end_of_a_process_is_reported() {
    let here = directory(&[("router.p4", ROUTER)]);
    let run = Running::start(&["router.p4"], here.path());
    for _ in 1..BackOff::default().failures {
        kill(process_of(&run), Signal::SIGKILL).expect("it runs");
        assert!(run.told("runs it now").starts_with("kaido: router.p4: "));
    }
    kill(process_of(&run), Signal::SIGKILL).expect("it runs");
    let line = run.told("the program is evicted");
    assert!(line.contains("router.p4: the process ended: signal: 9 (SIGKILL)"), "{line}");
    let output = run.command(&["table", "add", "t", "to=10.0.0.0/8", "via(port=3)"]);
    says(&output, 1, &["failed too often"]);
    reconcile(&run.address).await;
    run.told("a control plane's program: it is running now");
    let add = ["table", "add", "t", "to=10.0.0.0/8", "via(port=3)", "--election-id", "8"];
    says(&run.command(&add), 0, &["added"]);
    assert!(process_of(&run).as_raw() > 0);
    run.end();
}

/// The election id of a controller that is primary.
const ELECTION: Uint128 = Uint128 { high: 0, low: 7 };

/// A controller that tries to be primary until it is dropped.
struct Controller {
    client: P4RuntimeClient<Channel>,
    stream: Streaming<StreamMessageResponse>,
    /// Dropping it ends the stream.
    _out: tokio::sync::mpsc::Sender<StreamMessageRequest>,
}

impl Controller {
    async fn primary(address: &str) -> Self {
        let mut client =
            P4RuntimeClient::connect(format!("http://{address}")).await.expect("it is there");
        let (out, requests) = tokio::sync::mpsc::channel(1);
        let election_id = Some(ELECTION);
        let update = MasterArbitrationUpdate { device_id: 1, election_id, ..Default::default() };
        let update = Some(stream_message_request::Update::Arbitration(update));
        out.send(StreamMessageRequest { update }).await.expect("there is room");
        let stream = client.stream_channel(ReceiverStream::new(requests)).await.expect("a stream");
        Self { client, stream: stream.into_inner(), _out: out }
    }
}

/// Acts like a controller that finds a device without a working program: sets the program again.
async fn reconcile(address: &str) {
    let mut controller = Controller::primary(address).await;
    let Controller { client, stream, .. } = &mut controller;
    stream.message().await.expect("no error").expect("it is primary");
    let get = GetForwardingPipelineConfigRequest { device_id: 1, ..Default::default() };
    let config = client.get_forwarding_pipeline_config(get).await.expect("it has one");
    let set = SetForwardingPipelineConfigRequest {
        device_id: 1,
        election_id: Some(ELECTION),
        action: Action::ReconcileAndCommit.into(),
        config: config.into_inner().config,
        ..Default::default()
    };
    client.set_forwarding_pipeline_config(set).await.expect("it is taken");
}

#[test]
fn people_write_tables() {
    let here = directory(&[("firewall.p4", FIREWALL)]);
    says(&kaido(&["compile", "firewall.p4"], here.path()), 0, &["firewall.o"]);
    // An object contains its P4Info.
    let running = Running::start(&["firewall.o", "--device-id", "3"], here.path());
    let table = |arguments: &[&str]| {
        let mut all = arguments.to_vec();
        all.extend(["--device-id", "3"]);
        running.table(&all)
    };
    let entry = ["src=10.0.0.0/8", "protocol=17", "dport=80..443", "--priority", "10"];
    let with = |first: &[&'static str], last: &[&'static str]| -> Vec<&'static str> {
        [first, &entry, last].concat()
    };
    says(&table(&with(&["add", "rules"], &["allow()"])), 0, &["c.rules: entry added"]);
    says(&table(&with(&["add", "c.rules"], &["allow"])), 2, &["has this entry already"]);
    says(&table(&with(&["modify", "c.rules"], &["deny"])), 0, &["c.rules: entry modified"]);
    let line = "c.rules  10        src=10.0.0.0/8 protocol=17 dport=80..443  c.deny()";
    says(&table(&["ls"]), 0, &[line, "(default)"]);
    let json = table(&["ls", "rules", "--json"]);
    let said = value_of(&["p4", "table", "ls"], &json.stdout);
    assert_eq!(said[0]["match"]["src"], "10.0.0.0/8", "{said}");
    assert_eq!(said[1]["default"], true, "{said}");

    for (arguments, why) in [
        (
            &["add", "rules", "src=10.0.0.1/8", "allow", "--priority", "1"][..],
            "field `src`: `10.0.0.1/8` has bits set after its prefix; 10.0.0.0/8",
        ),
        (
            &["add", "rules", "protocol=256", "allow", "--priority", "1"],
            "field `protocol`: `256` does not fit: 8 bits are expected, 0 to 255",
        ),
        (
            &["add", "rules", "dport=9..1", "allow", "--priority", "1"],
            "field `dport`: `9..1` ends before",
        ),
        (&["add", "rules", "dport=1/8", "allow", "--priority", "1"], "a range, as low..high"),
        (&["add", "rules", "port=1", "allow", "--priority", "1"], "no field `port` (known: `src`"),
        (&["add", "rules", "src=1.2.3.4", "allow"], "need a priority: `priority=10`"),
        (
            &["add", "rules", "src:1.2.3.4", "allow"],
            "neither FIELD=VALUE nor an action; the fields",
        ),
        (&["add", "rules", "src=1.2.3.4", "allow", "priority=x"], "`x` is not a valid priority"),
        (
            &["add", "rules", "src=1.2.3.4", "permit", "--priority", "1"],
            "no action `permit` (known: ",
        ),
        (
            &["add", "rules", "src=1.2.3.4", "allow(1)", "--priority", "1"],
            "takes 0 arguments, 1 are given",
        ),
        (&["add", "rules", "src=1.2.3.4", "--priority", "1"], "an action is missing"),
        (
            &["add", "routes", "src=1.2.3.4", "allow", "--priority", "1"],
            "no table `routes` (known: `c.rules`",
        ),
        (&["add", "rules", "src=1.2.3.4", "allow", "--priority=-1"], "priority"),
        (&["delete", "rules", "src=1.2.3.4", "--priority", "1"], "c.rules"),
    ] {
        says(&table(arguments), 2, &[why]);
    }
    says(&table(&["default", "rules", "allow"]), 1, &["constant"]);
    says(&table(&with(&["delete", "rules"], &[])), 0, &["c.rules: entry deleted"]);
    let json = table(&["ls", "--json"]);
    let said = value_of(&["p4", "table", "ls"], &json.stdout);
    assert_eq!(said.as_array().map(Vec::len), Some(1), "the default action: {said}");
    says(&running.table(&["ls"]), 2, &["device 1"]);
    running.end();
}

#[tokio::test]
async fn a_controller_stays_primary() {
    let here = directory(&[("firewall.p4", FIREWALL)]);
    let running = Running::start(&["firewall.p4"], here.path());
    let add = ["add", "rules", "src=1.2.3.4", "allow", "--priority", "1"];
    // Without another controller the lowest id suffices; it is released when the command ends.
    says(&running.table(&add), 0, &["added"]);
    let mut controller = Controller::primary(&running.address).await;
    let stream = &mut controller.stream;
    let mut standing = async || {
        let next = tokio::time::timeout(Duration::from_secs(10), stream.message()).await;
        match next.expect("within 10 s").expect("no error").and_then(|one| one.update) {
            Some(stream_message_response::Update::Arbitration(one)) => {
                one.status.expect("it has one").code
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(standing().await, 0);
    let add = ["add", "rules", "src=1.2.3.5", "allow", "--priority", "1"];
    let backup = ["election id 7 is primary", "only a backup with 1", "`--election-id 8`"];
    says(&running.table(&add), 1, &backup);
    let same = [&add[..], &["--election-id", "7"]].concat();
    says(&running.table(&same), 1, &["another client has the election id 7"]);
    says(&running.table(&["ls"]), 0, &["src=1.2.3.4"]);
    let takes = [&add[..], &["--election-id", "8"]].concat();
    says(&running.table(&takes), 0, &["added"]);
    assert_ne!(standing().await, 0, "it was told");
    running.end();
}

/// Returns a UDP packet from an address to a port.
fn udp(source: [u8; 4], port: u16) -> Vec<u8> {
    let mut packet = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]].concat();
    packet.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0]);
    packet.extend(source);
    packet.extend([192, 0, 2, 1, 3, 0xe8]);
    packet.extend(port.to_be_bytes());
    packet.extend([0, 8, 0, 0]);
    packet
}

#[test]
fn captures_go_through_programs() {
    let entries = "# who may\nc.rules src=10.0.0.0/8 dport=80..443 allow() priority=10\n\
                   rules src=10.6.6.0/24 deny --priority=20\n";
    let bad = entries.replace("80..443", "80..70000");
    let here = directory(&[
        ("firewall.p4", FIREWALL),
        ("rules.txt", entries),
        ("bad.txt", &bad),
        ("nothing.txt", "priority=3"),
    ]);
    let packets = [
        udp([10, 1, 1, 1], 80),
        udp([10, 6, 6, 6], 80),
        udp([11, 1, 1, 1], 80),
        udp([10, 1, 1, 1], 443),
    ];
    let interface = Interface::default();
    let mut writer = Writer::begin(Vec::new(), &[interface], 0).expect("memory");
    for (at, packet) in (1_u64..).zip(&packets) {
        writer.packet(0, at * 1000, packet, "").expect("memory");
    }
    let bytes = writer.finish().expect("memory");
    std::fs::write(here.path().join("in.pcapng"), bytes).expect("a file");
    let run = |more: &[&str]| {
        let with = ["run", "firewall.p4", "--pcap", "in.pcapng", "--out", "out.pcapng"];
        kaido(&[&with, more].concat(), here.path())
    };
    says(&run(&[]), 0, &["4 packets: 0 passed, 0 redirected, 4 dropped\n"]);
    let filled = run(&["--entries", "rules.txt", "--port", "5"]);
    says(&filled, 0, &["4 packets: 2 passed, 0 redirected, 2 dropped\n"]);
    let out = std::fs::read(here.path().join("out.pcapng")).expect("it was written");
    let contents = read(&out).expect("it is a capture");
    let left: Vec<_> = contents.packets.iter().map(|one| (one.at_ns, &one.bytes)).collect();
    assert_eq!(left, [(1000, &packets[0]), (4000, &packets[3])]);
    assert_eq!(contents.interfaces[0].name, "port 5");
    says(&run(&["--entries", "bad.txt"]), 2, &["bad.txt: line 2: field `dport`: `70000`"]);
    for read in ["./in.pcapng", "firewall.p4", "./rules.txt"] {
        let over = ["run", "firewall.p4", "--pcap", "in.pcapng", "--entries", "rules.txt", "--out"];
        let told = kaido(&[&over[..], &[read]].concat(), here.path());
        says(&told, 2, &["which is read here: write another file"]);
    }
    says(&run(&["--entries", "nothing.txt"]), 2, &["nothing.txt: line 1: no table `priority=3`"]);
    let other = kaido(&["run", "firewall.p4", "--pcap", "rules.txt"], here.path());
    says(&other, 2, &["rules.txt: neither a pcap nor a pcapng file"]);
    // The control plane's own port.
    let own = run(&["--entries", "rules.txt", "--port", "255"]);
    says(&own, 0, &["2 for the control plane"]);
}

#[test]
fn a_file_that_is_not_a_program_does_not_run() {
    let here = directory(&[
        ("firewall.p4", FIREWALL),
        ("other.p4", super::PROGRAM),
        ("empty.txt", ""),
        ("no.o", "no object"),
    ]);
    says(&kaido(&["compile", "firewall.p4"], here.path()), 0, &[]);
    let object = std::fs::read(here.path().join("firewall.o")).expect("it was written");
    let mut other = object.clone();
    other[18..20].copy_from_slice(&62_u16.to_le_bytes());
    std::fs::write(here.path().join("x86.o"), other).expect("a file");
    let mut other = object;
    let call = other.windows(8).position(|eight| eight == [0x85, 0, 0, 0, 1, 0, 0, 0]);
    other[call.expect("it looks something up") + 4] = 99;
    std::fs::write(here.path().join("helper.o"), other).expect("a file");
    for (program, why) in [
        ("no.o", "not a valid ELF file"),
        ("x86.o", "not for eBPF"),
        ("helper.o", "no helper 99"),
        ("none.p4", "cannot read none.p4"),
    ] {
        says(&kaido(&["run", program, "--p4runtime", "none"], here.path()), 2, &[why]);
    }
    // P4Info must name all objects of a program.
    says(&kaido(&["compile", "other.p4"], here.path()), 0, &[]);
    let info = kaido(&["info", "other.p4"], here.path()).stdout;
    std::fs::write(here.path().join("other.txt"), info).expect("a file");
    for (program, info, why) in [
        ("firewall.p4", "empty.txt", "firewall.p4: p4info leaves out table `"),
        ("firewall.o", "empty.txt", "`kaido p4 info PROGRAM` prints"),
        ("firewall.p4", "other.txt", "p4info leaves out table `"),
    ] {
        let arguments = ["run", program, "--p4info", info, "--p4runtime", "none"];
        says(&kaido(&arguments, here.path()), 2, &[why]);
    }
    let nobody = kaido(&["table", "ls", "--address", "127.0.0.1:1", "--insecure-tcp"], here.path());
    says(
        &nobody,
        1,
        &["cannot connect to P4Runtime at 127.0.0.1:1", "`kaido p4 run` serves P4Runtime"],
    );
}
