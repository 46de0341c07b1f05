use std::net::Ipv4Addr;

use testkit::Said;
use testkit::kxdpgun::{Load, Server};

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
