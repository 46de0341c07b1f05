use std::net::Ipv4Addr;

use testkit::kxdpgun::{Load, Server};
use testkit::{Hosts, Launch, Said};

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

#[test]
fn root_kxdpgun_is_answered() {
    let hosts = Hosts::new();
    let _server = Server::start(&hosts.h1, SERVER);
    // The program asks no neighbor for its MAC address.
    Said::of_words(&hosts.switch, "ip addr add 10.0.0.9/24 dev p1").ok();
    Said::of_words(&hosts.switch, "ping -n -c 1 -W 5 10.0.0.1").ok();
    let load = Load { interface: "p1".into(), server: SERVER, rate: 2000, seconds: 1 };
    for launch in [Launch::default(), Launch::through(["env"])] {
        let queries = load.run(&hosts.switch, &launch);
        println!("{queries:?}");
        assert!(queries.sent >= 1000, "{queries:?}");
        // A busy machine may answer the last ones too late.
        assert!(queries.answered * 100 >= queries.sent * 95, "{queries:?}");
    }
}
