//! The metrics for Prometheus.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use crate::net::{Net, ip};

const FILE: &str = "\
source: \"fd00:1::\"
locators: [\"fd00:1::/48\"]
ports: { l: {tenant: blue}, r: {} }
tenants: { blue: { table: 254, routes: { fd00:99::/64: [fd00:2::d6] } } }
sids: { fd00:1::d6: {behavior: End.DT6, tenant: blue} }
";

fn scrape(net: &Net, path: &str) -> String {
    let ask = || {
        let mut stream = TcpStream::connect("127.0.0.1:9464").unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    net.node.run(ask).unwrap()
}

#[test]
fn root_prometheus_gets_the_counters() {
    let mut net = Net::new();
    ip(&net.node, &["link set lo up"]);
    ip(&net.right, &["addr add fd00:99::1/128 dev lo"]);
    net.start(&["--metrics", "127.0.0.1:9464"]);
    net.apply(FILE);
    let ping = "ping -6 -q -c 3 -i 0.05 -W 2 fd00:99::1".split(' ').collect::<Vec<_>>();
    let run = || std::process::Command::new(ping[0]).args(&ping[1..]).output().unwrap();
    assert!(net.left.run(run).unwrap().status.success());
    let answer = scrape(&net, "/metrics");
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.contains("content-type: application/openmetrics-text"), "{answer}");
    let tenant =
        "kaido_dataplane_tenant_packets_total{tenant=\"blue\",direction=\"encapsulated\"} ";
    let line = answer.lines().find_map(|line| line.strip_prefix(tenant)).unwrap();
    assert!(line.parse::<u64>().unwrap() >= 2, "{answer}");
    assert!(answer.ends_with("# EOF\n"), "{answer}");
    assert!(scrape(&net, "/").starts_with("HTTP/1.1 404"));
    let shown = net.show();
    assert_eq!(shown["tenants"][0]["name"], "blue", "{shown}");
    net.end();

    // A port that is already in use.
    let taken = net.node.run(|| TcpListener::bind("127.0.0.1:9464").unwrap()).unwrap();
    let run = ["dataplane", "run", "--metrics", "127.0.0.1:9464"];
    let mut command = net.kaido.command(&run);
    let output = net.node.run(|| command.output().unwrap()).unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("cannot listen on 127.0.0.1:9464 for Prometheus"), "{said}");
    drop(taken);
}
