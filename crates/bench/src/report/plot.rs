//! Time series plots in SVG.

use anyhow::{Result, anyhow};
use plotters::prelude::*;

use crate::series::Series;

pub(super) const GREY: RGBColor = RGBColor(120, 130, 142);
pub(super) const ORANGE: RGBColor = RGBColor(217, 119, 6);
pub(super) const BLUE: RGBColor = RGBColor(29, 95, 180);

/// A curve with its name.
pub(super) struct Curve<'s> {
    name: &'static str,
    color: RGBColor,
    dashed: bool,
    series: &'s Series,
}

impl<'s> Curve<'s> {
    pub(super) fn new(
        name: &'static str,
        color: RGBColor,
        dashed: bool,
        series: &'s Series,
    ) -> Self {
        Self { name, color, dashed, series }
    }
}

/// Draws curves over time in seconds, with a line at the time of the move.
pub(super) fn draw(curves: &[Curve<'_>], unit: &str, moved: Option<f64>) -> Result<String> {
    let points = || curves.iter().flat_map(|curve| &curve.series.0);
    let end = points().map(|(t, _)| *t).fold(1.0, f64::max);
    // Leave room for the legend above the curves.
    let top = points().map(|(_, v)| *v).fold(0.0, f64::max).max(1e-3) * 1.4;
    let mut svg = String::new();
    {
        let failed = |error: DrawingAreaErrorKind<_>| anyhow!("cannot draw: {error}");
        let area = SVGBackend::with_string(&mut svg, (960, 380)).into_drawing_area();
        area.fill(&WHITE).map_err(failed)?;
        let mut chart = ChartBuilder::on(&area)
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..end, 0.0..top)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .bold_line_style(RGBColor(230, 234, 239))
            .x_desc("seconds")
            .y_desc(unit)
            .label_style(("sans-serif", 14))
            .draw()
            .map_err(failed)?;
        for curve in curves {
            let style = curve.color.stroke_width(2);
            let points = curve.series.0.iter().copied();
            let drawn = if curve.dashed {
                chart.draw_series(DashedLineSeries::new(points, 6, 5, style)).map_err(failed)?
            } else {
                chart.draw_series(LineSeries::new(points, style)).map_err(failed)?
            };
            let mut legend = style;
            if curve.dashed {
                legend = curve.color.mix(0.5).stroke_width(2);
            }
            drawn
                .label(curve.name)
                .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 24, y)], legend));
        }
        if let Some(at) = moved {
            let line = [(at, 0.0), (at, top)];
            chart
                .draw_series(LineSeries::new(line, RED.mix(0.6).stroke_width(1)))
                .map_err(failed)?
                .label("the application moves")
                .legend(|(x, y)| PathElement::new(vec![(x, y), (x + 24, y)], RED.mix(0.6)));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.85))
            .border_style(RGBColor(210, 216, 224))
            .label_font(("sans-serif", 14))
            .draw()
            .map_err(failed)?;
        area.present().map_err(failed)?;
    }
    Ok(svg)
}
