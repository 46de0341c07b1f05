//! Interoperability test with `p4runtime-shell`, an independent client.

use std::path::Path;
use std::time::Duration;

use crate::common::*;
use tokio::process::Command;

/// Python interpreter installed by `scripts/deps.sh --lint`.
const PYTHON: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/../tools/p4runtime-shell/bin/python");

const SESSION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shell/session.py");

/// The p4info of the firewall, plus counters and meters that it does not have.
fn firewall() -> p4info::v1::P4Info {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../p4/tests/programs/firewall.p4");
    let mut info = info_of(&std::fs::read_to_string(program).unwrap());
    let rules = info.tables.iter().find_map(|one| one.preamble.as_ref()).unwrap().id;
    add_resources(&mut info, rules);
    info
}

#[tokio::test]
async fn p4runtime_shell_programs_a_firewall() {
    assert!(
        Path::new(PYTHON).exists(),
        "{PYTHON} is not there: `scripts/deps.sh --lint` installs p4runtime-shell"
    );
    let server = server().await;
    let directory = tempfile::tempdir().unwrap();
    let (info, program) = (directory.path().join("p4info.txt"), directory.path().join("program.o"));
    std::fs::write(&info, p4info::text(&firewall())).unwrap();
    std::fs::write(&program, "the program").unwrap();
    let shell = Command::new(PYTHON)
        .arg(SESSION)
        .arg(server.address.to_string())
        .args([&info, &program])
        // Its generated code is too old for protobuf's faster implementations.
        .env("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python")
        .env_remove("PYTHONPATH")
        .current_dir(directory.path())
        .kill_on_drop(true)
        .output();
    let said = tokio::time::timeout(Duration::from_secs(120), shell).await;
    let said = said.expect("it does not end within 120 s").unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(said.status.success(), "{}{}", text(&said.stdout), text(&said.stderr));
    assert!(text(&said.stdout).ends_with("all well\n"), "{}", text(&said.stdout));

    let device = server.device();
    assert_eq!(device.state.program, b"the program");
    assert_eq!(device.state.entries.len(), 1, "what the shell has left");
    assert!(device.batches.contains(&100), "a batch came as one: {:?}", device.batches);
    assert_eq!(device.state.counts[&(COUNTER, 3)].bytes, 500);
    assert_eq!(device.state.meters[&(METER, 1)].unwrap().pir, 2000);
}
