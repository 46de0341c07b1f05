//! Captures of emulated links are reproduced from the topology file alone.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use serde_json::Value;
use testkit::{Said, value_of};

use crate::{kaido, soon};

const MESSY: &str = "\
name: messy
seed: 7
nodes: {h1: {}, h2: {}}
links:
  - h1-h2: {delay: 20ms, jitter: 3ms normal, loss: {gilbert-elliott: {p: 5%, r: 30%}}, duplicate: 10%,
            corrupt: 10%, reorder: 5%, rate: 20mbit, reverse: {delay: 10ms, loss: 0%}}
";

#[test]
fn root_a_capture_repeats_with_its_seed_and_differs_with_another() {
    let kaido = kaido();
    let lab = kaido.lab_up(MESSY);
    let capture = kaido.directory().join("out.pcapng").display().to_string();
    let ping = ["ping", "-q", "-i", "0.003", "-w", "120", "-s", "300", "10.0.1.2"];
    let mut pinging = lab.start("h1", &ping);
    let said = kaido.ok(&["lab", "capture", "--link", "h2-h1", "-w", &capture, "--count", "400"]);
    assert!(said.contains("h1-h2 from h1: 400 packets entered, "), "{said}");
    let file = kaido.file("again.yaml", MESSY);
    let report: Value = kaido.json(&["lab", "replay", &file, &capture]);
    assert_eq!(report["identical"], true, "{report}");
    assert_eq!(report["entered"], 400, "{report}");
    for key in ["dropped", "copied", "corrupted"] {
        assert!(report[key].as_u64().unwrap() > 10, "{report}");
    }
    let said = kaido.ok(&["lab", "replay", &file, &capture]);
    assert!(said.ends_with("identical\n"), "{said}");
    let other = kaido.file("other.yaml", &MESSY.replace("seed: 7", "seed: 8"));
    let said = kaido.run(&["lab", "replay", &other, &capture]);
    assert!(said.stdout.contains("different: "), "{}", said.stdout);
    said.failed(1, &[]);
    // A topology without the captured link is rejected, and so is a file that is not a capture.
    let less = kaido.file("less.yaml", "name: less\nnodes: {h1: {}, h3: {}}\nlinks: [h1-h3]\n");
    kaido.run(&["lab", "replay", &less, &capture]).failed(2, &["has no emulated link `h1-h2`"]);
    kaido.run(&["lab", "replay", &file, &file]).failed(2, &["neither a pcap nor a pcapng file"]);

    // Many routers, whose routes take memory that grows with the square of their number.
    let nodes: String = (0..8000).map(|n| format!("  r{n}: {{router: virtual}}\n")).collect();
    let many = kaido.file("many.yaml", &format!("name: many\nnodes:\n{nodes}"));
    let mut command = Command::new("prlimit");
    command.arg("--as=1500000000").arg(kaido.program()).args(["lab", "replay", &many, &capture]);
    Said::run(&mut command).failed(2, &["has no emulated link `h1-h2`"]);

    // A file that another user has put there.
    let given = std::process::Command::new("chown").args(["nobody", &capture]).status();
    assert!(given.unwrap().success());
    kaido
        .run(&["lab", "capture", "--link", "h1-h2", "-w", &capture, "--seconds", "1"])
        .failed(1, &["cannot write", "the file belongs to another user"]);
    // Without --seconds a capture runs until SIGINT. A concurrent one is rejected, and changes to
    // the link are reported. The previous file is deleted first, so that it cannot affect the
    // result.
    std::fs::remove_file(&capture).unwrap();
    let capturing =
        kaido.start(&["lab", "capture", "--link", "h1-h2", "--from", "h1", "-w", &capture]);
    let size = || std::fs::metadata(&capture).map_or(0, |found| found.len());
    soon("packets", || size() > 40_000);
    let second = kaido.directory().join("second.pcapng").display().to_string();
    // Also if it names the same file, which must not be truncated.
    kaido
        .run(&["lab", "capture", "--link", "h1-h2", "-w", &capture, "--seconds", "5"])
        .failed(1, &["h1-h2 from h1 is being captured already"]);
    kaido.ok(&["lab", "link", "h1-h2", "set", "delay=30ms"]);
    let before = size();
    soon("more packets", || size() > before + 20_000);
    let process = nix::unistd::Pid::from_raw(capturing.id() as i32);
    nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGINT).unwrap();
    let ended = capturing.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.status.signal()), (Some(0), None));
    let said = kaido.run(&["--json", "lab", "replay", &file, &capture]);
    let report = value_of(&["lab", "replay"], said.stdout.as_bytes());
    assert_eq!(report["difference"], Value::Null, "{report}");
    assert_eq!(report["ends_early"], "the link was changed before", "{report}");
    said.failed(1, &[]);
    pinging.kill().unwrap();
    pinging.wait().unwrap();
    // A capture that is killed leaves no state.
    let mut capturing = kaido.start(&["lab", "capture", "--link", "h1-h2", "-w", &second]);
    soon("a file", || std::fs::metadata(&second).is_ok());
    capturing.kill().unwrap();
    capturing.wait().unwrap();
    let again = || {
        let arguments = ["lab", "capture", "--link", "h1-h2", "-w", &second, "--seconds", "1"];
        kaido.command(&arguments).output().unwrap().status.success()
    };
    soon("room for another", again);
    lab.down();
}
