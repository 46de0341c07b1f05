//! Result rows of all benchmarks.

pub use output::bench::BenchRow as Row;

/// Direction in which a result improves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Better {
    /// A rate: more is better.
    More,
    /// A time: less is better.
    Less,
    /// Closer to the given value is better.
    Near(f64),
}

/// Summarizes several runs in one row.
pub(crate) fn row(
    name: &str,
    unit: &'static str,
    runs: &[f64],
    better: Better,
    baseline: Option<f64>,
) -> Row {
    let value = median(runs);
    let ratio = baseline.map(|baseline| match better {
        Better::More => value / baseline,
        Better::Less => baseline / value,
        Better::Near(wanted) => (wanted - baseline).abs() / (wanted - value).abs(),
    });
    let fold = |pick: fn(f64, f64) -> f64| runs.iter().copied().reduce(pick).unwrap_or(0.0);
    Row {
        name: name.into(),
        value,
        unit,
        baseline,
        // The ratio is undefined for a count of zero, and for a value that matches exactly.
        ratio: ratio.filter(|ratio| ratio.is_finite()),
        low: fold(f64::min),
        high: fold(f64::max),
    }
}

/// Returns the median, or 0 for an empty slice.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_better_whichever_way_the_figure_goes() {
        let time = row("up/100", "s", &[3.0, 1.0, 2.0], Better::Less, Some(20.0));
        assert_eq!((time.value, time.ratio, time.low, time.high), (2.0, Some(10.0), 1.0, 3.0));
        let rate = row("tcp/after", "Mbit/s", &[4.0, 2.0], Better::More, Some(2.0));
        assert_eq!((rate.value, rate.ratio), (3.0, Some(1.5)));
        let none = row("moves", "moves", &[0.0], Better::Less, Some(0.0));
        assert_eq!(none.ratio, None);
        let near = |value| row("delay", "ms", &[value], Better::Near(600.0), Some(606.0)).ratio;
        assert_eq!([601.0, 598.0, 600.0].map(near), [Some(6.0), Some(3.0), None]);
    }
}
