//! Programs in virtual machines, without KVM where there is none.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sandbox::Maps;
use sandbox::process::{
    Arena, BackOff, Config, Decision, Isolation, Kernel, Sandbox, StartError, VmFeed,
};
use vminfo::{Key, Unit, Writer};

use super::common::*;

/// Boot time of a machine without KVM, on a busy host.
const BOOT: Duration = Duration::from_secs(120);

fn config() -> Config {
    let back_off = BackOff { first: Duration::from_millis(1), ..BackOff::default() };
    let requires = Isolation::REQUIRED_OF_VM;
    Config { requires, load_time: BOOT, answer_time: BOOT, deadline: BOOT, back_off, ..patient() }
}

fn start(object: &[u8], feed: Option<VmFeed>) -> Result<Sandbox, StartError> {
    let kernel = Kernel::open(&kernel()).expect("a kernel");
    let arena = Arc::new(Arena::new(FRAMES, FRAME).expect("memory"));
    Sandbox::start_with(launcher().in_vm(&kernel), config(), arena, object, feed)
}

fn kernel() -> std::path::PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), Into::into);
    let kernel = target.join("guest/kernel/vmlinuz");
    assert!(kernel.exists(), "{}: `scripts/guest/kernel.sh` fetches it", kernel.display());
    kernel
}

/// Needs root, as the other parts of the isolation do.
#[test]
fn root_a_program_judges_packets_in_a_virtual_machine() {
    let mut sandbox = start(&counting(1), None).expect("it starts");
    let isolation = sandbox.status().isolation;
    assert!(isolation.has(Isolation::MACHINE.with(Isolation::OWN_USER)), "{isolation}");
    let mut traffic = Traffic::new();
    for _ in 0..3 {
        traffic.step(&mut sandbox);
    }
    traffic.drain(&mut sandbox);
    let seen = sandbox.get(0, &p4_object::Key::Bytes(vec![0; 4])).unwrap().unwrap();
    assert_eq!(u64::from_ne_bytes(seen.try_into().unwrap()), traffic.answered);
    // Another machine replaces one that ends, with the tables.
    let process = sandbox.status().process.expect("QEMU");
    kill(Pid::from_raw(process as i32), Signal::SIGKILL).expect("it is there");
    sandbox.submit(packet(0)).expect("a free frame");
    sandbox.flush();
    let begin = std::time::Instant::now();
    while sandbox.status().process.is_none_or(|now| now == process) {
        assert!(begin.elapsed() < BOOT, "{:?}", sandbox.status());
        sandbox.poll(&mut Vec::new());
    }
    assert_eq!(sandbox.counters().crashed_processes, 1);
}

/// The clock of the guest is the host's, so that values become stale at the right time.
#[test]
fn root_a_program_in_a_virtual_machine_sees_values_while_they_are_fresh() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("vm");
    let mut writer = Writer::create(&path).expect("nobody else writes");
    writer.add(Key::new("port", Unit::Number, Duration::from_secs(2)).unwrap()).unwrap();
    let feed = VmFeed::watch(&path, Duration::from_millis(1));
    let mut sandbox = start(&by_vm("port"), Some(feed)).expect("it starts");
    until("the value is seen", || {
        writer.set_value(0, 7);
        writer.beat().unwrap();
        decision(&mut sandbox) == Decision::Redirect(7)
    });
    // The writer is silent.
    until("the value is stale", || decision(&mut sandbox) == Decision::Drop);
}

#[test]
fn a_file_that_is_not_a_kernel_is_refused() {
    let said = |file: &str| Kernel::open(Path::new(file)).map(drop).unwrap_err().to_string();
    assert_eq!(said("/no/vmlinuz"), "No such file or directory (os error 2)");
    assert_eq!(said("/etc/passwd"), "it is not a bzImage of Linux");
    assert_eq!(said("/dev/null"), "it is not a regular file");
}
