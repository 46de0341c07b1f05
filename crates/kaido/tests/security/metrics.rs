//! Clients of `/metrics`, which need no password, and send nothing.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use testkit::until;

use crate::{Ended, FILE, kaido, node, python};

/// Opens 1,000 connections, reports it, and keeps them until it is killed.
const SILENT: &str = "import resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (1100, 1100))
kept = []
for _ in range(1000):
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex(('127.0.0.1', 9464))
    kept.append(s)
print(len(kept), flush=True)
sys.stdin.read()
";

#[test]
fn root_silent_connections_use_up_no_descriptors() {
    let kaido = kaido();
    let node = node();
    let file = kaido.file("file.yaml", FILE);
    let mut command = Command::new("sh");
    let run = "ulimit -n 400; exec \"$K\" dataplane run --file \"$0\" --metrics 127.0.0.1:9464";
    command.args(["-c", run, &file]).env("K", env!("CARGO_BIN_EXE_kaido"));
    command.env("KAIDO_RUN", kaido.run_directory());
    let daemon = Ended(node.run(|| command.spawn().unwrap()).unwrap());
    let shown = || kaido.run(&["dataplane", "show"]).code.filter(|code| *code == 0);
    until(Duration::from_secs(20), shown, || "the data plane does not respond".into());
    let descriptors = || std::fs::read_dir(format!("/proc/{}/fd", daemon.0.id())).unwrap().count();
    let before = descriptors();

    let mut silent = python(SILENT, &[]);
    silent.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut silent = Ended(node.run(|| silent.spawn().unwrap()).unwrap());
    let mut line = String::new();
    BufReader::new(silent.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "1000\n");
    // 16 connections are accepted; the command above may have held one when the descriptors were
    // counted.
    let taken = || (descriptors() >= before + 12).then_some(());
    until(Duration::from_secs(5), taken, || "no connection is taken".into());
    for _ in 0..3 {
        kaido.ok(&["dataplane", "show"]);
        kaido.ok(&["dataplane", "apply", &file]);
    }
    assert!(descriptors() <= before + 20, "{} of {before}", descriptors());
    drop(silent);

    let scrape = || {
        let mut stream = TcpStream::connect("127.0.0.1:9464").unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = node.run(scrape).unwrap();
    assert!(answer.ends_with("# EOF\n"), "{answer}");
    // One connection of HTTP/2 could hold hundreds of silent streams.
    let http2 = || {
        let mut stream = TcpStream::connect("127.0.0.1:9464").unwrap();
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        // Reset or closed, after an error of HTTP/1 at most.
        let _ = stream.read_to_end(&mut answer);
        answer
    };
    let answer = node.run(http2).unwrap();
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400"), "{answer:?}");
    drop(daemon);
    let _ = nix::mount::umount(&kaido.run_directory().join("dataplane/bpf"));
}
