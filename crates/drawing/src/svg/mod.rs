//! Renders a topology as a drawing.

mod layout;

use std::collections::HashMap;
use std::fmt::Write;

use layout::{Place, layout};
use model::topology::{End, Node, NodeKind, RouterKind, Segment, SegmentKind, Topology};

const MARGIN: f64 = 70.0;
/// Distance between the curves of parallel links.
const BEND: f64 = 36.0;

/// Draws `topology` as SVG: squares for hosts, circles for routers, small shapes for LANs, and
/// links with their rates and delays. Every element has a label, and a title with its other
/// properties.
pub fn svg(topology: &Topology) -> String {
    let count = topology.nodes.len();
    let is_lan = |segment: &&Segment| segment.kind == SegmentKind::Lan;
    // LANs' indexes follow the nodes'.
    let lans: Vec<&Segment> = topology.segments.iter().filter(is_lan).collect();
    let mut edges = Vec::new();
    for segment in topology.segments.iter().filter(|segment| !is_lan(segment)) {
        edges.push((segment.ends[0].node, segment.ends[1].node));
    }
    let mut all = count;
    let mut hubs = Vec::with_capacity(lans.len());
    for lan in &lans {
        // A switch stands for its LAN.
        let hub = lan.switch.unwrap_or(all);
        all += usize::from(hub == all);
        hubs.push(hub);
        edges.extend(lan.ends.iter().map(|end| (end.node, hub)));
    }
    let mut places = layout(all, &edges);
    for place in &mut places {
        *place = Place { x: place.x + MARGIN, y: place.y + MARGIN };
    }
    let width = places.iter().map(|place| place.x).fold(0.0, f64::max) + MARGIN;
    let height = places.iter().map(|place| place.y).fold(0.0, f64::max) + MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" font-family=\"system-ui, sans-serif\" \
         text-anchor=\"middle\">\n<title>{}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        topology.name
    );
    // Writing to a string cannot fail.
    let _ = links(&mut svg, topology, &places);
    for (lan, hub) in lans.iter().zip(hubs) {
        let _ = draw_lan(&mut svg, topology, lan, places[hub], &places);
    }
    for (node, place) in topology.nodes.iter().zip(&places) {
        let _ = draw_node(&mut svg, node, *place);
    }
    svg.push_str("</svg>\n");
    svg
}

fn links(svg: &mut String, topology: &Topology, places: &[Place]) -> std::fmt::Result {
    let mut labels = Vec::new();
    let between = |segment: &Segment| {
        let (a, b) = (segment.ends[0].node, segment.ends[1].node);
        (a.min(b), a.max(b))
    };
    let is_link = |segment: &&Segment| segment.kind == SegmentKind::PointToPoint;
    let mut parallel: HashMap<(usize, usize), (usize, usize)> = HashMap::new();
    for segment in topology.segments.iter().filter(is_link) {
        parallel.entry(between(segment)).or_default().1 += 1;
    }
    for segment in topology.segments.iter().filter(is_link) {
        let pair = between(segment);
        let (drawn, all) = parallel.entry(pair).or_default();
        let bend = (*drawn as f64 - (*all as f64 - 1.0) / 2.0) * BEND;
        *drawn += 1;
        let (a, b) = (places[pair.0], places[pair.1]);
        let (x, y) = (b.x - a.x, b.y - a.y);
        let length = x.hypot(y).max(1.0);
        let middle = Place {
            x: f64::midpoint(a.x, b.x) - y / length * bend,
            y: f64::midpoint(a.y, b.y) + x / length * bend,
        };
        // A quadratic curve is half as far from its chord as its control point.
        let (cx, cy) =
            (2.0 * middle.x - f64::midpoint(a.x, b.x), 2.0 * middle.y - f64::midpoint(a.y, b.y));
        let dashes = if topology.is_emulated(segment) { " stroke-dasharray=\"7 3\"" } else { "" };
        let ends = &segment.ends;
        let (there, back) = (label(topology, ends[0]), label(topology, ends[1]));
        writeln!(
            svg,
            "<g><title>{}: {}</title><path d=\"M{:.1} {:.1}Q{cx:.1} {cy:.1} {:.1} {:.1}\" \
             fill=\"none\" stroke=\"#8794a3\" stroke-width=\"2\"{dashes}/></g>",
            segment.name,
            escaped(&titles(topology, segment)),
            a.x,
            a.y,
            b.x,
            b.y
        )?;
        let text = if there == back { there } else { format!("{there} / {back}") };
        labels.push((middle, text));
    }
    // Draw the labels last, on top of all lines.
    labels.iter().try_for_each(|(at, text)| write_text(svg, at.x, at.y + 4.0, 12, text))
}

fn draw_lan(
    svg: &mut String,
    topology: &Topology,
    lan: &Segment,
    at: Place,
    places: &[Place],
) -> std::fmt::Result {
    let dashes = if topology.is_emulated(lan) { " stroke-dasharray=\"7 3\"" } else { "" };
    writeln!(svg, "<g><title>{}: {}</title>", lan.name, escaped(&titles(topology, lan)))?;
    for end in &lan.ends {
        let Place { x, y } = places[end.node];
        writeln!(
            svg,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{y:.1}\" stroke=\"#5c8f6b\" \
             stroke-width=\"2\"{dashes}/>",
            at.x, at.y
        )?;
    }
    if lan.switch.is_some() {
        return writeln!(svg, "</g>");
    }
    let width = box_width(&lan.name);
    writeln!(
        svg,
        "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"20\" fill=\"#e6f2e9\" \
         stroke=\"#5c8f6b\" stroke-width=\"2\"/></g>",
        at.x - width / 2.0,
        at.y - 10.0
    )?;
    write_text(svg, at.x, at.y + 5.0, 13, &lan.name)?;
    let text = label(topology, lan.ends[0]);
    write_text(svg, at.x, at.y + 24.0, 11, &text)
}

fn draw_node(svg: &mut String, node: &Node, at: Place) -> std::fmt::Result {
    let (kind, fill, stroke, radius) = match node.kind {
        _ if node.attachment.is_some() => ("attached", "#fdf3e1", "#c0842b", 3),
        NodeKind::Switch => ("switch", "#e6f2e9", "#5c8f6b", 0),
        NodeKind::Host => ("host", "#f4f6f8", "#5b6673", 3),
        NodeKind::Router(RouterKind::Frr) => ("router (FRR)", "#e3eefb", "#1d5fb4", 18),
        NodeKind::Router(RouterKind::Linux) => ("router", "#fff", "#1d5fb4", 18),
        NodeKind::Router(RouterKind::Virtual) => ("virtual router", "#f1e9fa", "#7446a8", 18),
    };
    let xdp = if node.runs_xdp() { ", XDP" } else { "" };
    let width = box_width(&node.name);
    writeln!(
        svg,
        "<g><title>{}: {kind}{xdp}</title><rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" \
         height=\"36\" rx=\"{radius}\" fill=\"{fill}\" stroke=\"{stroke}\" stroke-width=\"2\"/></g>",
        node.name,
        at.x - width / 2.0,
        at.y - 18.0
    )?;
    write_text(svg, at.x, at.y + 5.0, 14, &node.name)
}

fn box_width(name: &str) -> f64 {
    24.0 + 8.5 * name.len() as f64
}

/// Writes text with a white outline, to separate it from lines behind it.
fn write_text(svg: &mut String, x: f64, y: f64, size: u8, text: &str) -> std::fmt::Result {
    if text.is_empty() {
        return Ok(());
    }
    writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" fill=\"#1d2733\" \
         paint-order=\"stroke\" stroke=\"#fff\" stroke-width=\"5\">{}</text>",
        escaped(text)
    )
}

/// Rate and delay of the direction that `end` sends.
fn label(topology: &Topology, end: End) -> String {
    let interface = &topology.nodes[end.node].interfaces[end.interface];
    let delay = interface.impairments.delay;
    let delay = (!delay.is_zero()).then(|| format!("{delay:?}"));
    let rate = interface.rate.map(|rate| rate.to_string());
    rate.into_iter().chain(delay).collect::<Vec<_>>().join(" ")
}

/// Tooltip that describes the segment's ends.
fn titles(topology: &Topology, segment: &Segment) -> String {
    let end = |end: &End| {
        let node = &topology.nodes[end.node];
        let interface = &node.interfaces[end.interface];
        let mut text = format!("{} {} {}", node.name, interface.ipv4, interface.ipv6);
        if let Some(rate) = interface.rate {
            text += &format!(" {rate}");
        }
        if !interface.impairments.is_none() {
            text += &format!(" {}", interface.impairments);
        }
        text
    };
    segment.ends.iter().map(end).collect::<Vec<_>>().join("; ")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
name: all
nodes:
  h1: {}
  r1: {router: frr}
  r2: {router: frr}
  r3: {router: linux}
  x1: {router: virtual}
  sw: {switch: openvswitch}
links:
  - h1-r1: {rate: 10mbit}
  - r1-r2: {rate: 1gbit, delay: 20ms, reverse: {rate: 5mbit}}
  - r1-r2
  - r3-x1
  - lan0: {nodes: [r3, h1], delay: 7ms}
  - sw-h1
  - r3-sw
";

    /// True if every element has a matching end tag.
    fn is_well_formed(drawn: &str) -> bool {
        let mut open = Vec::new();
        for piece in drawn.split('<').skip(1) {
            let Some((tag, text)) = piece.split_once('>') else { return false };
            let is_right = tag.matches('"').count().is_multiple_of(2) && !text.contains('>');
            let name = tag.split_whitespace().next().unwrap_or_default();
            match name.strip_prefix('/') {
                Some(name) if open.pop() != Some(name) => return false,
                None if !tag.ends_with('/') => open.push(name),
                _ => {}
            }
            if !is_right {
                return false;
            }
        }
        open.is_empty()
    }

    #[test]
    fn everything_is_named_and_drawn_the_same_twice() {
        let topology = topology_file::parse("all.yaml", FILE).unwrap();
        let drawn = svg(&topology);
        assert!(is_well_formed(&drawn), "{drawn}");
        assert!(!is_well_formed("<g><a></g></a>") && !is_well_formed("<g>"));
        for node in &topology.nodes {
            assert!(drawn.contains(&format!("<title>{}: ", node.name)), "{drawn}");
            assert!(drawn.contains(&format!(">{}</text>", node.name)), "{drawn}");
        }
        for segment in &topology.segments {
            assert!(drawn.contains(&format!("<title>{}: ", segment.name)), "{drawn}");
        }
        for label in [">10mbit<", ">1gbit 20ms / 5mbit 20ms<", ">7ms<", ">lan0<"] {
            assert!(drawn.contains(label), "{label}: {drawn}");
        }
        assert_eq!(drawn, svg(&topology));
    }

    #[test]
    fn words_of_files_stay_text() {
        assert_eq!(escaped("a<b>&c"), "a&lt;b&gt;&amp;c");
    }
}
