//! Arbitrary texts.

use proptest::prelude::*;

use super::super::good_input::EVERYTHING;
use super::super::parse;
use super::lab;

#[test]
fn thousands_of_problems_take_little_time() {
    let mut text = String::from("name: a\nnodes: {h1: {}}\nlinks:\n");
    for n in 0..20_000 {
        text += &format!("  - h1-x{n}\n");
    }
    let problems = parse("lab.yaml", &text).unwrap_err();
    // The others are only counted.
    assert_eq!(problems.problems.len(), 1000);
    assert!(problems.to_string().ends_with("… and 19950 more problems"));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC*") {
        if let Err(problems) = parse("x", &text) {
            prop_assert!(!problems.problems.is_empty());
            problems.render(true);
        }
    }

    #[test]
    fn no_yaml_makes_it_panic(text in "([a-z&*<{}\\[\\],:|>?!%'\"#-]|: |- |\n|  ){0,80}") {
        if let Err(problems) = parse("x", &text) {
            problems.render(false);
        }
    }

    #[test]
    fn no_change_of_a_good_file_makes_it_panic(
        at in 0..EVERYTHING.len(),
        cut in 0_usize..40,
        insert in "[a-z0-9{}\\[\\],:/ \n.*&<-]{0,6}",
    ) {
        let end = (at + cut).min(EVERYTHING.len());
        let text = format!("{}{insert}{}", &EVERYTHING[..at], &EVERYTHING[end..]);
        match parse("x", &text) {
            Ok(topology) => prop_assert!(serde_json::to_string(&topology).is_ok()),
            Err(problems) => prop_assert!(problems.to_string().contains("error: ")),
        }
    }

    #[test]
    fn any_number_makes_an_address_or_a_problem(
        length4 in 0_u8..=32, length6 in 0_u8..=128, address4: u32, address6: u128, mtu: u16,
    ) {
        let v4 = ipnet::Ipv4Net::new(address4.into(), length4).unwrap().trunc();
        let v6 = ipnet::Ipv6Net::new(address6.into(), length6).unwrap().trunc();
        for keys in [
            format!("links:\n  - r1-r2: {{ipv4: '{v4}', ipv6: '{v6}', mtu: {mtu}}}"),
            format!("addresses: {{ipv4: '{v4}', ipv6: '{v6}'}}\nlinks: [r1-r2, h1-r1]"),
            format!("addresses: {{loopbacks4: '{v4}', loopbacks6: '{v6}'}}\nlinks: [r1-r2, h1-r1]"),
            format!("srv6: {{block: '{v6}'}}\nlinks: [r1-r2, h1-r1]"),
        ] {
            if let Ok(topology) = parse("x", &lab(&keys)) {
                let interfaces = topology.nodes.iter().flat_map(|node| &node.interfaces);
                for interface in interfaces {
                    let segment = &topology.segments[interface.segment];
                    prop_assert!(segment.ipv4.contains(&interface.ipv4.addr()));
                    prop_assert!(segment.ipv6.contains(&interface.ipv6.addr()));
                }
            }
        }
    }
}
