//! Files that are small beside the memory and the time that they could take.

use std::fmt::Write;

use super::super::parse;
use super::expect;

#[test]
fn a_link_has_a_limited_number_of_filters() {
    let lab = |count: usize| {
        let filters = vec!["{ports: 1, protocol: tcp}"; count].join(", ");
        format!("name: a\nnodes: {{a: {{}}, b: {{}}}}\nlinks: [a-b: {{filter: [{filters}]}}]\n")
    };
    assert!(parse("a", &lab(64)).is_ok());
    expect(&lab(65), &[("3:15", "a link has 65 filters", "at most 64")]);
}

#[test]
fn help_lists_a_limited_number_of_names() {
    let nodes: String = (0..100).map(|node| format!("  h{node}: {{}}\n")).collect();
    let members = (0..100).map(|node| format!("h{node}")).collect::<Vec<_>>().join(", ");
    let text = format!(
        "name: a\nnodes:\n{nodes}  z: {{}}\nlinks: [lan: [{members}], z-h0]\nevents: [{{at: 1s, link: lan, \
         from: z, set: {{delay: 1ms}}}}]\n"
    );
    let help = "name one of h0, h1, h2, h3, h4, h5, h6, h7, h8, h9 and 90 more";
    expect(&text, &[("105:36", "`z` is not on `lan`", help)]);
}

#[test]
fn rip_has_a_limited_number_of_routers() {
    let mut text = "name: a\nrouting: [rip]\nnodes:\n".to_owned();
    for router in 0..=1000 {
        let _ = writeln!(text, "  r{router}: {{router: frr}}");
    }
    let links = (1..=1000).map(|router| format!("r0-r{router}"));
    let _ = writeln!(text, "links: [{}]", links.collect::<Vec<_>>().join(", "));
    expect(&text, &[("2:1", "more than 1000 routers run RIP", "another protocol")]);
}

/// Each event was compared with all links, and each link with all events.
#[test]
fn many_links_have_many_events() {
    let (mut links, mut events) = (String::new(), String::new());
    let mut nodes = "  hub: {}\n".to_owned();
    for link in 0..4000 {
        let _ = writeln!(nodes, "  h{link}: {{}}");
        let _ = writeln!(links, "  - hub-h{link}: {{delay: 1ms}}");
        let _ = writeln!(events, "  - {{at: {link}s, link: h{link}-hub, set: {{delay: 2ms}}}}");
    }
    let text = format!("name: a\nnodes:\n{nodes}links:\n{links}events:\n{events}");
    let topology = parse("a", &text).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(topology.events.len(), 4000);
    assert_eq!(topology.events[3999].link, "hub-h3999");
}
