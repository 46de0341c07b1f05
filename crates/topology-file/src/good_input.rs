//! Valid files: their results, which are deterministic, and their conformance to the schema.

use std::time::Duration;

use document::{Tree, Value, load};
use model::topology::{
    Discipline, Function, Jitter, Loss, Node, NodeKind, Queue, RouterKind, Routing, SRV6_HEADROOM,
    SegmentKind, Shape, Share, Topology,
};
use model::{Bandwidth, Destination};

use super::*;

pub(crate) const EVERYTHING: &str = "\
name: srv6-wan
seed: 42
mtu: 1500
routing: [ospf, ospf6]
ospf: {hello: 2s, dead: 8s}
srv6: {block: fd00::/32}
addresses: {ipv4: 10.0.0.0/8, ipv6: fd02::/32, loopbacks4: 10.255.0.0/16, loopbacks6: fd01::/64}
nodes:
  h1: {}
  h2: {dataplane: kernel}
  h3: {srv6: false}
  r1: {router: frr, srv6: {locator: fd00:0:9::/48}, routing: [ospf], config: \"log stdout\\n\"}
  r2: {router: linux, loopback: [10.255.0.1, fd01::1]}
  r3: {router: frr, srv6: false}
links:
  - h1-r1
  - r1-r2: {rate: 1gbit, queue: 250p, cost: 10, mtu: 9000, ipv4: 10.0.3.0/24, ipv6: fd02:9::/64,
            reverse: {rate: 100mbit}}
  - r2-r1:
      cost: 20
  - lan0: [r2, h2, h3]
  - lan1: {nodes: [r2, r3, r1], rate: 1gbit, queue: 64kb drop-tail}
applications:
  backup: {from: h3, to: h2, protocol: tcp, ports: 5201, source-ports: 1000-2000, dscp: ef,
           demand: 50mbit, class: bandwidth}
  voice: {from: h1, to: 10.0.5.0/24, class: low-latency}
tests:
  - {from: h1, ping: h2, rtt: 40ms..48ms, within: 30s}
  - {from: h1, to: h2, throughput: 90mbit..100mbit}
  - {on: r1, route: 10.0.5.0/24, present: false, within: 10s}
";

fn good(text: &str) -> Topology {
    parse("lab.yaml", text).unwrap_or_else(|problems| panic!("{problems}"))
}

/// The segment's prefixes, and each end as `node interface address`.
fn lines(topology: &Topology) -> Vec<String> {
    let segments = topology.segments.iter().map(|segment| {
        let ends = segment.ends.iter().map(|end| {
            let node = &topology.nodes[end.node];
            let interface = &node.interfaces[end.interface];
            format!("{}:{} {} {}", node.name, interface.name, interface.ipv4, interface.ipv6)
        });
        format!("{}: {}", segment.name, ends.collect::<Vec<_>>().join(", "))
    });
    segments.collect()
}

#[test]
fn a_router_has_the_labs_data_plane_unless_it_says_otherwise() {
    let text = "name: x\ndataplane: xdp\nnodes:\n  h1: {}\n  r1: {router: linux}\n  \
         r2: {router: frr, dataplane: kernel}\n  r3: {router: frr, srv6: false}\n\
         links: [h1-r1, h1-r2]\n";
    let of = |text: &str| good(text).nodes.iter().map(Node::runs_xdp).collect::<Vec<_>>();
    assert_eq!(of(text), [false, true, false, false]);
    let other = text.replace("dataplane: xdp\n", "").replace("kernel", "xdp");
    assert_eq!(of(&other), [false, false, true, false]);
}

#[test]
fn the_same_file_always_gets_the_same_addresses() {
    let topology = good(
        "name: a\nnodes: {h1: {}, r1: {router: linux}, r2: {router: linux}}\n\
         links: [h1-r1, r1-r2, r2-r1]\n",
    );
    assert_eq!(
        lines(&topology),
        [
            "h1-r1: h1:r1 10.0.1.1/24 fd02:0:0:1::1/64, r1:h1 10.0.1.2/24 fd02:0:0:1::2/64",
            "r1-r2: r1:r2 10.0.2.1/24 fd02:0:0:2::1/64, r2:r1 10.0.2.2/24 fd02:0:0:2::2/64",
            "r2-r1_2: r2:r1_2 10.0.3.1/24 fd02:0:0:3::1/64, r1:r2_2 10.0.3.2/24 fd02:0:0:3::2/64",
        ]
    );
    let routers = topology.nodes.iter().filter(|node| node.is_router()).map(|node| {
        let (v4, v6) = (node.loopback4.unwrap(), node.loopback6.unwrap());
        format!("{} {v4} {v6} {}", node.name, node.locator.unwrap())
    });
    assert_eq!(
        routers.collect::<Vec<_>>(),
        ["r1 10.255.0.1 fd01::1 fd00:0:1::/48", "r2 10.255.0.2 fd01::2 fd00:0:2::/48"]
    );
    // All links of a lab with SRv6 have headroom, including the hosts' links.
    assert_eq!(SRV6_HEADROOM, 240);
    assert!(topology.nodes.iter().flat_map(|node| &node.interfaces).all(|i| i.mtu == 1740));
    assert_eq!(topology.mtu, 1500);
}

#[test]
fn the_number_of_a_segment_is_in_its_prefixes() {
    let nodes: String = (0..300).map(|n| format!("  n{n}: {{}}\n")).collect();
    let links: String = (1..300).map(|n| format!("  - n0-n{n}\n")).collect();
    let topology = good(&format!("name: star\nnodes:\n{nodes}links:\n{links}"));
    let last = &topology.segments[298];
    assert_eq!(
        (last.ipv4.to_string(), last.ipv6.to_string()),
        ("10.1.43.0/24".into(), "fd02:0:0:12b::/64".into())
    );
    // Without routers there is no SRv6, and no headroom.
    assert_eq!(topology.nodes[0].interfaces[0].mtu, 1500);
}

#[test]
fn the_whole_grammar() {
    let topology = good(EVERYTHING);
    assert_eq!((topology.seed, topology.timers.ospf.hello), (Some(42), Duration::from_secs(2)));
    assert_eq!(
        lines(&topology),
        [
            "h1-r1: h1:r1 10.0.1.1/24 fd02:0:0:1::1/64, r1:h1 10.0.1.2/24 fd02:0:0:1::2/64",
            "r1-r2: r1:r2 10.0.3.1/24 fd02:9::1/64, r2:r1 10.0.3.2/24 fd02:9::2/64",
            // 10.0.3.0/24 is taken by the link above, so this link's prefix follows those of all
            // others.
            "r2-r1_2: r2:r1_2 10.0.6.1/24 fd02:0:0:3::1/64, r1:r2_2 10.0.6.2/24 fd02:0:0:3::2/64",
            "lan0: r2:lan0 10.0.4.1/24 fd02:0:0:4::1/64, h2:lan0 10.0.4.2/24 fd02:0:0:4::2/64, \
             h3:lan0 10.0.4.3/24 fd02:0:0:4::3/64",
            "lan1: r2:lan1 10.0.5.1/24 fd02:0:0:5::1/64, r3:lan1 10.0.5.2/24 fd02:0:0:5::2/64, \
             r1:lan1 10.0.5.3/24 fd02:0:0:5::3/64",
        ]
    );
    let node = |name: &str| topology.node(name).unwrap();
    let (r1, r2, r3) = (node("r1"), node("r2"), node("r3"));
    assert_eq!(
        (r1.ipv4_routing, r1.ipv6_routing, r3.ipv6_routing, r2.ipv6_routing),
        (Routing::Ospf, Routing::Static, Routing::Ospf, Routing::Static)
    );
    assert_eq!(r1.extra_config.as_deref(), Some("log stdout\n"));
    // r2's address is the one that r1 would have been assigned.
    assert_eq!(r1.loopback4, Some("10.255.0.4".parse().unwrap()));
    assert_eq!(r1.locator.unwrap().to_string(), "fd00:0:9::/48");
    assert_eq!(r3.locator, None);
    assert_eq!((node("h1").kind, r2.kind), (NodeKind::Host, NodeKind::Router(RouterKind::Linux)));

    let there = r1.interface("r2").unwrap();
    let back = r2.interface("r1").unwrap();
    assert_eq!(
        (there.rate, back.rate),
        (Some(Bandwidth::from_mbps(1000)), Some(Bandwidth::from_mbps(100)))
    );
    // Options that the reverse direction omits are copied from the forward direction.
    assert_eq!(
        (there.queue, back.queue, back.cost),
        (Queue::Packets(250), Queue::Packets(250), 10)
    );
    assert_eq!((there.mtu, r1.interface("h1").unwrap().mtu), (9240, 1740));
    assert_eq!(r1.interface("r2_2").unwrap().cost, 20);

    let numbers = |node: &Node| -> Vec<(String, u16)> {
        let all = node.interfaces.iter().flat_map(|i| &i.adjacencies);
        all.map(|a| (topology.nodes[a.node].name.clone(), a.number)).collect()
    };
    let named = |list: &[(&str, u16)]| -> Vec<(String, u16)> {
        list.iter().map(|(name, number)| ((*name).into(), *number)).collect()
    };
    assert_eq!(numbers(r1), named(&[("r2", 0), ("r2", 1), ("r2", 2), ("r3", 3)]));
    assert_eq!(numbers(node("h1")), []);
    let second = &r1.interface("r2_2").unwrap().adjacencies[0];
    assert_eq!(r1.end_x(second).unwrap().to_string(), "fd00:0:9:e001::");
    assert_eq!(r3.end_x(second), None);
    assert_eq!(topology.nodes[second.node].interfaces[second.interface].name, "r1_2");

    assert_eq!(topology.segment("r2-r1").unwrap().name, "r1-r2");
    assert_eq!(topology.segment("r1-r2_2").unwrap().name, "r2-r1_2");
    assert_eq!(topology.segment("lan0").unwrap().kind, SegmentKind::Lan);
    assert!(topology.segment("r1-r9").is_none());

    let backup = &topology.applications[0];
    assert_eq!(backup.to, Destination::Node("h2".into()));
    assert_eq!((backup.dst_ports.unwrap().first, backup.src_ports.unwrap().last), (5201, 2000));
    assert_eq!(topology.applications[1].to.to_string(), "10.0.5.0/24");
    assert_eq!(topology.tests.len(), 3);
}

#[test]
fn the_network_is_written_as_json() {
    let json = serde_json::to_value(good(EVERYTHING)).unwrap();
    assert_eq!(json["ospf"]["dead"], "8s");
    assert_eq!(json["nodes"][3]["kind"]["router"], "frr");
    assert_eq!(json["nodes"][3]["interfaces"][1]["ipv4"], "10.0.3.1/24");
    assert_eq!(json["nodes"][3]["interfaces"][1]["rate"], "1gbit");
    assert_eq!(json["tests"][0]["ping"]["rtt"]["to"], "48ms");
}

#[test]
fn small_prefixes_serve_two_nodes() {
    let topology = good(
        "name: a\nnodes: {h1: {}, h2: {}}\nlinks:\n  - h1-h2: {ipv4: 10.9.0.0/31, ipv6: 'fd02:9::/127'}\n",
    );
    assert_eq!(
        lines(&topology),
        ["h1-h2: h1:h2 10.9.0.0/31 fd02:9::/127, h2:h1 10.9.0.1/31 fd02:9::1/127"]
    );
}

#[test]
fn anchors_save_repetition() {
    let topology = good(
        "name: a\nnodes: {h1: {}, h2: {}, h3: {}}\nlinks:\n  - h1-h2: &wan {rate: 5mbit}\n  \
         - h2-h3: *wan\n  - h1-h3: {<<: *wan, cost: 7}\n",
    );
    let last = topology.node("h1").unwrap().interface("h3").unwrap();
    assert_eq!((last.rate, last.cost), (Some(Bandwidth::from_mbps(5)), 7));
}

#[test]
fn the_value_none_equals_an_absent_option() {
    let of = |options: &str| {
        let link = format!("r1-r2: {{{options}reverse: {{delay: none, rate: none}}}}");
        let text = format!(
            "name: a\nnodes: {{r1: {{router: linux}}, r2: {{router: linux}}}}\nlinks: [{link}]\n"
        );
        let topology = parse("a.yaml", &text).unwrap();
        [0, 1].map(|at| topology.nodes[at].interfaces[0].impairments.clone())
    };
    let none = "delay: none, jitter: none, loss: none, reorder: none, queue: none, corrupt: none, ";
    assert_eq!(of(none), of(""));
    let [there, back] = of("delay: 5ms, rate: 1mbit, loss: 1%, ");
    assert_eq!((there.delay, back.delay), (Duration::from_millis(5), Duration::ZERO));
    assert_eq!(there.loss, back.loss);
}

#[test]
fn every_file_in_labs_is_right_and_fits_the_schema() {
    let schema = json_schema();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let labs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../labs");
    let mut texts = vec![EVERYTHING.to_owned()];
    for entry in std::fs::read_dir(labs).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            texts.push(std::fs::read_to_string(&path).unwrap());
        }
    }
    assert!(texts.len() >= 3, "labs/ has files");
    for text in &texts {
        good(text);
        let value = json(&load(text).0.unwrap());
        let errors: Vec<_> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}\n{text}");
    }
}

#[test]
fn the_schema_agrees_with_the_grammar() {
    let schema = json_schema();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let bad = [
        "name: a\nnodes: {}\nlnks: []\n",
        "nodes: {}\n",
        "name: A\nnodes: {}\n",
        "name: a\nnodes: {h1: {router: cisco}}\n",
        "name: a\nnodes: {}\nlinks: [r1]\n",
        "name: a\nnodes: {}\nlinks: [{r1-r2: {rate: 100}}]\n",
        "name: a\nnodes: {}\nlinks: [{r1-r2: {delay: 20}}]\n",
        "name: a\nnodes: {}\nmtu: 100\n",
    ];
    for text in bad {
        assert!(!validator.is_valid(&json(&load(text).0.unwrap())), "{text}");
        assert!(parse("x", text).is_err(), "{text}");
    }
}

/// The tree as an editor's YAML plug-in sees it.
fn json(tree: &Tree) -> serde_json::Value {
    match &tree.value {
        Value::Scalar { text, plain: true } => {
            serde_json::from_str(text).unwrap_or_else(|_| text.as_str().into())
        }
        Value::Scalar { text, .. } => text.as_str().into(),
        Value::List(items) => items.iter().map(json).collect(),
        Value::Map(entries) => entries.iter().map(|e| (e.key.clone(), json(&e.value))).collect(),
    }
}

#[test]
fn functions_have_sids_with_their_marks() {
    let topology = good(
        "name: x\nnodes:\n  h1: {}\n  r1: {router: linux}\n  r2:\n    router: linux\n    functions:\n      \
         fw: {mark: 0x1111, rules: \"flush ruleset\", health: {run: \"true\"}}\n      ids: {bits: 0, \
         file: ids.nft}\n      old: {bits: 32, mark: 4294967295}\n  r3: {router: linux, srv6: {locator: \
         \"fd00:0:3:4:5:6::/96\"}, functions: {fw: {mark: 7}}}\nlinks: [h1-r1, r1-r2, r2-r3]\napplications:\n  \
         a: {from: h1, to: r1, demand: 1mbit, functions: [ids, fw]}\n",
    );
    let (r2, r3) = (topology.node("r2").unwrap(), topology.node("r3").unwrap());
    let text = |function: &Function| format!("{} in {}", function, function.prefix);
    assert_eq!(
        r2.functions.iter().chain(&r3.functions).map(text).collect::<Vec<_>>(),
        [
            "fw by fd00:0:2:f000::1111 in fd00:0:2:f000::/112",
            "ids by fd00:0:2:f001:: in fd00:0:2:f001::/128",
            "old by fd00:0:2:f002::ffff:ffff in fd00:0:2:f002::/96",
            // The maximum number of bits.
            "fw by fd00:0:3:4:5:6:f000:7 in fd00:0:3:4:5:6:f000:0/112",
        ]
    );
    assert!(r2.runs_xdp() && !topology.node("r1").unwrap().runs_xdp());
    assert_eq!(r2.functions[0].rules.as_deref(), Some("flush ruleset"));
    assert_eq!(r2.functions[0].health.as_ref().unwrap().run, ["true"]);
    assert_eq!(r2.functions[1].file.as_deref(), Some("ids.nft"));
    assert_eq!(topology.applications[0].functions, ["ids", "fw"]);
}

#[test]
fn impairments_are_each_directions_own() {
    let options = "delay: 20ms, jitter: 2ms pareto, loss: {gilbert-elliott: {p: 0.1%, r: 20%}}, \
        reorder: 1%, duplicate: 2%, corrupt: 0.5%, rate: 10mbit, queue: 250p codel, \
        filter: [{to: 10.0.0.0/8, protocol: udp, ports: 53}], \
        reverse: {delay: 40ms, loss: 1%, queue: 10p}";
    let text = format!("name: a\nnodes: {{h1: {{}}, h2: {{}}}}\nlinks: [h1-h2: {{{options}}}]\n");
    let topology = parse("a.yaml", &text).unwrap();
    let side = |node: usize| &topology.nodes[node].interfaces[0].impairments;
    let share = |percent| Share::from_percent(percent).unwrap();
    let (there, back) = (side(0), side(1));
    assert_eq!(there.delay, Duration::from_millis(20));
    let jitter = Jitter { spread: Duration::from_millis(2), shape: Shape::Pareto };
    assert_eq!((there.jitter, back.jitter), (Some(jitter), Some(jitter)));
    let (bad, good) = (Share::ALL, Share::NONE);
    let bursts = Loss::GilbertElliott { p: share(0.1), r: share(20.0), bad, good };
    assert_eq!((there.loss, back.loss), (bursts, Loss::Independent(share(1.0))));
    assert_eq!([there.reorder, there.duplicate, there.corrupt], [1.0, 2.0, 0.5].map(share));
    assert_eq!((there.discipline, back.discipline), (Discipline::Codel, Discipline::DropTail));
    assert_eq!(there.filters[0].protocol, Some(model::Protocol::Udp));
    assert_eq!(back.delay, Duration::from_millis(40));
    assert!(topology.is_emulated(&topology.segments[0]));
}

#[test]
fn links_with_nothing_but_a_rate_are_the_kernels() {
    let text = "name: a\nnodes: {h1: {}, h2: {}}\nlinks: [h1-h2: {rate: 1gbit, delay: 0ms}]\n";
    let topology = parse("a.yaml", text).unwrap();
    assert!(!topology.is_emulated(&topology.segments[0]));
}

#[test]
fn virtual_and_attached_nodes_are_the_emulators() {
    let text = "name: lab\nnodes:\n  h: {}\n  x: {router: virtual}\n  a: {attach: eth1}\n  \
                b: {attach: eth2, via: nfqueue, prefixes: [192.0.2.0/24, 2001:db8::/64]}\n\
                links: [h-x, a-x, {b-x: {rate: 10mbit}}]";
    let topology = super::parse("lab", text).unwrap();
    let [h, x, a, b] = ["h", "x", "a", "b"].map(|name| topology.node(name).unwrap());
    assert!(h.has_namespace());
    for node in [x, a, b] {
        assert!(!node.has_namespace() && node.locator.is_none());
    }
    assert!(x.is_virtual() && x.loopback4.is_some());
    assert!(a.is_host() && a.takes_frames() && a.prefixes().is_empty());
    assert!(b.is_virtual() && b.is_router() && b.prefixes().len() == 2);
    assert!(topology.segments.iter().all(|segment| topology.is_emulated(segment)));
    assert!(!topology.has_srv6());
}

#[test]
fn a_bgp_router_has_a_system_of_its_own_unless_it_says_another() {
    let topology = good(
        "name: x\nrouting: [bgp]\nnodes:\n  h1: {}\n  r1: {router: frr}\n  \
         r2: {router: frr, as: 65001}\n  r3: {router: frr, routing: [ospf]}\n  \
         r4: {router: frr}\n  r5: {router: linux}\n",
    );
    let systems: Vec<_> = topology.nodes.iter().map(|node| node.asn).collect();
    assert_eq!(systems, [None, Some(4_200_000_001), Some(65_001), None, Some(4_200_000_004), None]);
}

#[test]
fn protocols_route_the_families_that_they_are_for() {
    use Routing::{Bgp, Isis, Ospf, Rip, Static};
    for (list, families) in [
        ("[rip, static]", (Rip, Static)),
        ("[ripng]", (Static, Rip)),
        ("[rip, ospf6]", (Rip, Ospf)),
        ("[isis]", (Isis, Isis)),
        ("[bgp, static]", (Bgp, Bgp)),
        ("[]", (Static, Static)),
    ] {
        let text = format!("name: x\nrouting: {list}\nnodes: {{r1: {{router: frr}}}}\n");
        let node = &good(&text).nodes[0];
        assert_eq!((node.ipv4_routing, node.ipv6_routing), families, "{list}");
    }
}

#[test]
fn timers_have_the_proportions_of_their_protocols() {
    let timers = |text: &str| good(&format!("name: x\n{text}\nnodes: {{h1: {{}}}}\n")).timers;
    let seconds = |times: [Duration; 3]| times.map(|time| time.as_secs());
    let rip = |text: &str| {
        let rip = timers(text).rip;
        seconds([rip.update, rip.timeout, rip.garbage])
    };
    assert_eq!(rip(""), [5, 30, 20]);
    assert_eq!(rip("rip: {update: 30s}"), [30, 180, 120]);
    let bgp = timers("bgp: {keepalive: 20s, bfd: false}").bgp;
    assert_eq!((bgp.keepalive.as_secs(), bgp.hold.as_secs(), bgp.bfd), (20, 60, false));
    let isis = timers("isis: {hello: 3s}").isis;
    assert_eq!((isis.hello.as_secs(), isis.hold.as_secs(), isis.bfd), (3, 12, false));
}

#[test]
fn the_first_example_of_the_documentation_is_one() {
    let page = include_str!("../../../docs/topology.md");
    let example = page.split("```").nth(1).and_then(|block| block.strip_prefix("yaml\n")).unwrap();
    good(example);
}

#[test]
fn links_of_a_switch_are_one_lan() {
    let text = "name: a\nnodes:\n  sw:\n    switch:\n      kind: openvswitch\n      tenants:\n        \
                red: {program: f.p4, ports: {h2: 3, r1: 0}, cpu: 50}\n  h1: {}\n  h2: {}\n  \
                r1: {router: linux}\nlinks: [h1-sw, h1-r1, sw-h2, r1-sw: {cost: 3}]\n";
    let topology = parse("a.yaml", text).unwrap();
    assert_eq!(topology.segments.len(), 2);
    let lan = topology.segment("sw").unwrap();
    let names: Vec<_> = lan.ends.iter().map(|end| &*topology.nodes[end.node].name).collect();
    assert_eq!((names.as_slice(), lan.switch), (["h1", "h2", "r1"].as_slice(), Some(0)));
    assert_eq!(topology.interface_names(0), ["h1", "h2", "r1"]);
    assert_eq!(topology.interface_names(1), ["sw", "r1"]);
    let sw = &topology.nodes[0];
    assert!(sw.is_switch() && !sw.is_router() && !sw.is_host() && sw.has_namespace());
    assert!(sw.interfaces.is_empty() && sw.locator.is_none() && sw.loopback4.is_none());
    let red = &sw.tenants[0];
    assert_eq!(red.ports, [("h2".to_owned(), 3), ("r1".to_owned(), 0)]);
    assert_eq!((red.device, red.cpu), (1, Some(50)));
    let cost = |node: &str| topology.node(node).unwrap().interface("sw").unwrap().cost;
    assert_eq!((cost("h1"), cost("r1")), (10, 3));
    // A switch is not counted among the routers.
    assert_eq!(topology.node("r1").unwrap().loopback4.unwrap().to_string(), "10.255.0.1");
}
