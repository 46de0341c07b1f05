//! The figure: utilization with both thresholds at the top, forwarded packets at the bottom.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

use super::{OFF_BELOW, ON_ABOVE, STEP_MS, Step};

const BLUE: RGBColor = RGBColor(29, 95, 180);
const ORANGE: RGBColor = RGBColor(217, 119, 6);
const GREEN: RGBColor = RGBColor(34, 139, 87);
const GREY: RGBColor = RGBColor(120, 130, 142);
const MESH: RGBColor = RGBColor(230, 234, 239);
/// Background while the filter is on.
const SHADE: RGBColor = RGBColor(253, 232, 215);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// Times and values.
type Points = Vec<(f64, f64)>;

/// A curve with its name.
struct Curve {
    name: &'static str,
    color: RGBColor,
    points: Points,
}

/// Draws both panels as SVG.
pub(super) fn draw(steps: &[Step]) -> Result<String> {
    let seconds = |at: usize| at as f64 * f64::from(STEP_MS) / 1000.0;
    let points = |value: &dyn Fn(&Step) -> f64| -> Points {
        steps.iter().enumerate().map(|(at, step)| (seconds(at), value(step))).collect()
    };
    let rate = |packets: u32| f64::from(packets) * 1000.0 / f64::from(STEP_MS);
    let used = points(&|step| f64::from(step.used) / 10.0);
    let (load, protected) = (points(&|step| rate(step.load)), points(&|step| rate(step.protected)));
    let end = seconds(steps.len());
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (960, 560)).into_drawing_area();
        area.fill(&WHITE).map_err(failed)?;
        let (above, below) = area.split_vertically(290);
        let on = shaded(steps, &seconds);
        let network = Curve { name: "network of the VM", color: BLUE, points: used };
        let limits = [(ON_ABOVE, "on above 30 %"), (OFF_BELOW, "off below 10 %")];
        panel(&above, ("% used", end, 70.0), &on, &[network], &limits)?;
        let load = Curve { name: "load (port 9000)", color: ORANGE, points: load };
        let protected = Curve { name: "protected (port 8000)", color: GREEN, points: protected };
        panel(&below, ("packets/s that pass", end, 4200.0), &on, &[load, protected], &[])?;
        area.present().map_err(failed)?;
    }
    Ok(svg)
}

fn failed<E: std::error::Error + Send + Sync>(error: DrawingAreaErrorKind<E>) -> anyhow::Error {
    anyhow!("cannot draw: {error}")
}

/// Returns the periods in which the filter was on.
fn shaded(steps: &[Step], seconds: &dyn Fn(usize) -> f64) -> Vec<(f64, f64)> {
    let mut all: Vec<(f64, f64)> = Vec::new();
    let is_on = |step: &Step| step.on == Some(true);
    for (at, step) in steps.iter().enumerate().filter(|(_, step)| is_on(step)) {
        debug_assert!(step.load == 0);
        match all.last_mut() {
            Some((_, end)) if *end == seconds(at) => *end = seconds(at + 1),
            _ => all.push((seconds(at), seconds(at + 1))),
        }
    }
    all
}

fn panel(
    area: &Area<'_>,
    (unit, end, top): (&str, f64, f64),
    on: &[(f64, f64)],
    curves: &[Curve],
    limits: &[(u32, &str)],
) -> Result<()> {
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..end, 0.0..top)
        .map_err(failed)?;
    let shades =
        on.iter().map(|(from, to)| Rectangle::new([(*from, 0.0), (*to, top)], SHADE.filled()));
    chart
        .draw_series(shades)
        .map_err(failed)?
        .label("the filter is on")
        .legend(|(x, y)| Rectangle::new([(x, y - 5), (x + 24, y + 5)], SHADE.filled()));
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(MESH)
        .x_desc("seconds")
        .y_desc(unit)
        .label_style(("sans-serif", 14))
        .draw()
        .map_err(failed)?;
    for (at, name) in limits {
        let at = f64::from(*at) / 10.0;
        let line = [(0.0, at), (end, at)];
        chart
            .draw_series(DashedLineSeries::new(line, 6, 5, GREY.stroke_width(1)))
            .map_err(failed)?;
        let text = Text::new(
            (*name).to_owned(),
            (0.1, at + top / 16.0),
            ("sans-serif", 13).into_font().color(&GREY),
        );
        chart.draw_series([text]).map_err(failed)?;
    }
    for Curve { name, color, points } in curves {
        let style = color.stroke_width(2);
        chart
            .draw_series(LineSeries::new(points.iter().copied(), style))
            .map_err(failed)?
            .label(*name)
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 24, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.85))
        .border_style(RGBColor(210, 216, 224))
        .label_font(("sans-serif", 14))
        .draw()
        .map_err(failed)
}
