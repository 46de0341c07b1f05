use std::net::Ipv4Addr;
use std::time::Duration;

use testkit::knotd::Knotd;
use testkit::kxdpgun::{Load, Server};
use testkit::{Said, until};

use crate::bed::Bed;

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

#[test]
fn root_kxdpgun_is_answered_under_programs() {
    let bed = Bed::new("");
    let _server = Server::start(&bed.hosts.h1, SERVER);
    Said::of_words(&bed.hosts.switch, "ip addr add 10.0.0.9/24 dev p1").ok();
    Said::of_words(&bed.hosts.switch, "ping -n -c 1 -W 5 10.0.0.1").ok();
    let load = Load { interface: "p1".into(), server: SERVER, rate: 2000, seconds: 1 };
    let queries = load.run(&bed.hosts.switch, &bed.launch());
    println!("{queries:?}");
    assert!(queries.sent >= 1000, "{queries:?}");
    assert!(queries.answered * 100 >= queries.sent * 95, "{queries:?}");
}

/// A name server that receives and transmits by AF_XDP, and waits for its sockets by epoll(7).
#[test]
fn root_knotd_answers_under_programs() {
    let bed = Bed::new("");
    let address = Ipv4Addr::new(10, 0, 0, 9);
    Said::of_words(&bed.hosts.switch, "ip addr add 10.0.0.9/24 dev p1").ok();
    let knotd = Knotd::start(&bed.hosts.switch, "p1", &bed.launch());
    let answered = || knotd.queries(&bed.hosts.h1, address, 200);
    assert_eq!(answered(), 200, "{}", knotd.log());
    // Each query and each answer.
    let stats = || bed.kaido.json(&["xsk", "stats"])["sockets"].clone();
    let passed = || {
        let all = stats();
        let sockets = all.as_array().expect("a list").iter();
        let each = |one: &serde_json::Value| one["passed"].as_u64() >= Some(200);
        (sockets.filter(|one| each(one)).count() == 2).then_some(())
    };
    until(Duration::from_secs(10), passed, || format!("{:#}", stats()));
    bed.table(&["add", "filter", "input_port=1", "type=0x0800", "drop()"]);
    assert_eq!(knotd.queries(&bed.hosts.h1, address, 3), 0);
    bed.table(&["delete", "filter", "input_port=1", "type=0x0800"]);
    assert_eq!(answered(), 200, "{}", knotd.log());
}
