//! Drawing of the experiment's network with a path.

use std::fmt::Write;

use model::topology::Topology;

/// Positions of the nodes: hosts outside, the long branch at the top, the short one at the bottom.
const PLACES: [(&str, i32, i32); 8] = [
    ("h1", 60, 70),
    ("h3", 60, 230),
    ("r1", 220, 150),
    ("r2", 400, 50),
    ("r4", 600, 50),
    ("r3", 500, 250),
    ("r5", 780, 150),
    ("h2", 930, 150),
];

/// Draws `topology` with `path`. Nodes without a position are omitted.
pub(super) fn draw(topology: &Topology, path: &[String]) -> String {
    let mut svg = String::from(
        "<svg viewBox=\"0 0 990 300\" width=\"960\" xmlns=\"http://www.w3.org/2000/svg\" \
         font-family=\"system-ui, sans-serif\">",
    );
    // Writing to a string cannot fail.
    let _ = links(&mut svg, topology, path);
    let _ = nodes(&mut svg, topology, path);
    svg.push_str("</svg>");
    svg
}

fn place(name: &str) -> Option<(i32, i32)> {
    PLACES.iter().find(|(node, _, _)| *node == name).map(|&(_, x, y)| (x, y))
}

fn links(svg: &mut String, topology: &Topology, path: &[String]) -> std::fmt::Result {
    for segment in &topology.segments {
        let name = |at: usize| topology.nodes[segment.ends[at].node].name.as_str();
        let (a, b) = (name(0), name(1));
        let (Some((x1, y1)), Some((x2, y2))) = (place(a), place(b)) else { continue };
        let on_path = path.windows(2).any(|p| (p[0] == a && p[1] == b) || (p[0] == b && p[1] == a));
        let (color, width) = if on_path { ("#1d5fb4", 6) } else { ("#c3ccd6", 3) };
        write!(
            svg,
            "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"{color}\" \
             stroke-width=\"{width}\"/>"
        )?;
        let end = segment.ends[0];
        if let Some(rate) = topology.nodes[end.node].interfaces[end.interface].rate {
            let (x, y) = ((x1 + x2) / 2, (y1 + y2) / 2 + 5);
            write!(
                svg,
                "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" font-size=\"14\" \
                 fill=\"#3a4552\" paint-order=\"stroke\" stroke=\"#fff\" \
                 stroke-width=\"5\">{rate}</text>"
            )?;
        }
    }
    Ok(())
}

fn nodes(svg: &mut String, topology: &Topology, path: &[String]) -> std::fmt::Result {
    for node in &topology.nodes {
        let Some((x, y)) = place(&node.name) else { continue };
        let stroke = if path.contains(&node.name) { "#1d5fb4" } else { "#7a8694" };
        // Hosts are square, routers round.
        let radius = if node.is_host() { 5 } else { 24 };
        write!(
            svg,
            "<rect x=\"{}\" y=\"{}\" width=\"48\" height=\"48\" rx=\"{radius}\" fill=\"#fff\" \
             stroke=\"{stroke}\" stroke-width=\"3\"/><text x=\"{x}\" y=\"{}\" \
             text-anchor=\"middle\" font-size=\"16\" fill=\"#1d2733\">{}</text>",
            x - 24,
            y - 24,
            y + 6,
            node.name
        )?;
    }
    Ok(())
}
