//! Counters for Prometheus.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use super::{Running, kaido, run};

#[test]
fn counters_are_served_to_prometheus() {
    let kaido = kaido();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let why = format!("cannot listen on {address} for Prometheus");
    run(&kaido, &["--metrics", &address], &["true"]).failed(1, &[&why]);
    drop(taken);
    let _running = Running::start(&kaido, "default", &["--metrics", &address]);
    let mut stream = TcpStream::connect(&address).expect("it listens");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("it reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    for line in [
        "kaido_xsk_program_up{tenant=\"blue\"} 1",
        "kaido_xsk_program_up{tenant=\"red\"} 1",
        "kaido_xsk_program_failures_total{tenant=\"red\"} 0",
        "# EOF",
    ] {
        assert!(text.lines().any(|one| one == line), "{line}\n{text}");
    }
}
