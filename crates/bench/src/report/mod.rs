//! The demo's report: a single self-contained HTML file.

mod map;
mod plot;

use std::fmt::Write;

use anyhow::Result;
use model::topology::Topology;

use crate::bed::Scale;
use crate::line::{Line, pair};
use crate::scenario::{LEAD, Load, Measured, Run};
use plot::Curve;

const STYLE: &str = "
body { font: 16px/1.5 system-ui, sans-serif; max-width: 1000px; margin: 2em auto; padding: 0 1em;
       color: #1d2733; background: #fff }
h1 { font-size: 1.6em } h2 { font-size: 1.2em; margin-top: 2em }
table { border-collapse: collapse; width: 100%; font-size: .92em }
th, td { text-align: left; padding: .35em .6em; border-bottom: 1px solid #dde3ea }
figure { margin: 1.5em 0 } figcaption { color: #55606e; font-size: .92em }
svg { max-width: 100%; height: auto }
.bar { display: flex; height: 2.2em; border-radius: 4px; overflow: hidden; font-size: .85em }
.bar span { color: #fff; padding: .4em; overflow: hidden; white-space: nowrap }
";

/// Colors of the reaction's stages.
const STAGES: [&str; 6] = ["#3b6ea8", "#7a5195", "#bc5090", "#ef5675", "#ff764a", "#ffa600"];

/// The report.
pub(crate) struct Page {
    /// The complete page without external resources.
    pub(crate) html: String,
    /// Plots as separate SVG images, with names.
    pub(crate) plots: Vec<(&'static str, String)>,
}

/// Creates the report.
pub(crate) fn page(
    topology: &Topology,
    runs: &[Run],
    scale: Scale,
    lines: &[Line],
    differences: &[String],
) -> Result<Page> {
    let mut html = String::new();
    let mut plots = Vec::new();
    write!(
        html,
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <title>Kaido: an application moves itself</title><style>{STYLE}</style>\
         <h1>An application moves itself to the path that covers its demand</h1>\
         <p>Host 3 sends to host 2 and asks for {} Mbit/s. By default it shares the short branch, \
         r1 r3 r5, with host 1. When host 1 fills it, Kaido moves host 3 to the long branch, \
         r1 r2 r4 r5; when host 1 leaves room, it does not.</p>",
        scale.demand()
    )?;
    let moved = pair(runs, Load::Full, Measured::Throughput).map(|(_, with)| with);
    let path = moved.map(|run| run.path.clone()).unwrap_or_default();
    write!(
        html,
        "<figure>{}<figcaption>The network, and the application's path after its \
         move.</figcaption></figure>",
        map::draw(topology, &path)
    )?;
    comparison(&mut html, lines)?;
    if let Some(reaction) = moved.and_then(|run| run.reaction) {
        reaction_bar(&mut html, &reaction)?;
    }
    let figures = [
        (
            Load::Half,
            Measured::Latency,
            "latency-half",
            "Latency under half the load (published: figure 4)",
        ),
        (
            Load::Half,
            Measured::Throughput,
            "throughput-half",
            "Throughput under half the load (published: figure 5)",
        ),
        (Load::Full, Measured::Latency, "latency", "Latency under full load (published: figure 6)"),
        (
            Load::Full,
            Measured::Throughput,
            "throughput",
            "Throughput under full load (published: figure 7)",
        ),
        (
            Load::Tcp,
            Measured::Throughput,
            "throughput-tcp",
            "Throughput when host 1 sends TCP (not published)",
        ),
    ];
    for (load, measured, name, title) in figures {
        let Some((without, with)) = pair(runs, load, measured) else { continue };
        let curves = [
            Curve::new("host 1, without Kaido", plot::GREY, true, &without.of_load),
            Curve::new("host 3, without Kaido", plot::ORANGE, true, &without.of_app),
            Curve::new("host 1, with Kaido", plot::GREY, false, &with.of_load),
            Curve::new("host 3, with Kaido", plot::BLUE, false, &with.of_app),
        ];
        let unit = if measured == Measured::Latency { "ms" } else { "Mbit/s" };
        let moved = with.reaction.map(|reaction| LEAD as f64 + reaction.seconds());
        let svg = plot::draw(&curves, unit, moved)?;
        write!(
            html,
            "<h2>{title}</h2><figure>{svg}<figcaption>Host 1 begins after {LEAD} s and sends {}. \
             With Kaido the application made {}.</figcaption></figure>",
            load.words(scale),
            if with.moves == 1 { "1 move".to_owned() } else { format!("{} moves", with.moves) }
        )?;
        plots.push((name, svg));
    }
    html.push_str("<h2>Where this differs from what was published</h2><ul>");
    for difference in differences {
        write!(html, "<li>{}</li>", escaped(difference))?;
    }
    html.push_str("</ul></html>\n");
    Ok(Page { html, plots })
}

fn comparison(html: &mut String, lines: &[Line]) -> std::fmt::Result {
    html.push_str(
        "<h2>Beside the published figures</h2><table><tr><th>what<th>published\
         <th>without Kaido<th>with Kaido</tr>",
    );
    for line in lines {
        write!(
            html,
            "<tr><td>{}<td>{}<td>{}<td>{}</tr>",
            escaped(&line.what),
            escaped(&line.published),
            escaped(&line.without),
            escaped(&line.with)
        )?;
    }
    html.push_str("</table>");
    Ok(())
}

fn reaction_bar(html: &mut String, reaction: &crate::reaction::Reaction) -> std::fmt::Result {
    write!(
        html,
        "<h2>The reaction: {:.0} ms (published: 24 s)</h2><p>From host 1's first packet at r1 to \
         the application's first packet at r2, both captured.</p><div class=\"bar\">",
        reaction.seconds() * 1e3
    )?;
    let stages = reaction.stages();
    for ((name, seconds), color) in stages.iter().zip(STAGES) {
        // Make short stages visible.
        let share = (seconds / reaction.seconds() * 100.0).max(0.5);
        write!(
            html,
            "<span style=\"flex:{share:.2};background:{color}\" title=\"{name}\">{name}</span>"
        )?;
    }
    html.push_str("</div><table><tr><th>stage<th>since the one before</tr>");
    for ((name, seconds), color) in stages.iter().zip(STAGES) {
        write!(
            html,
            "<tr><td><span style=\"color:{color}\">&#9632;</span> {name}<td>{:.2} ms</tr>",
            seconds * 1e3
        )?;
    }
    html.push_str("</table>");
    Ok(())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
