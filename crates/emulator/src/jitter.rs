//! Delay variation.

use std::sync::Arc;

use crate::Nanos;

/// Delay distribution around the mean.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// Uniform distribution from `-spread` to `+spread`.
    Uniform,
    /// Normal distribution with the spread as standard deviation, truncated at eight standard
    /// deviations.
    Normal,
    /// Pareto distribution with exponent 3, and with the mean and standard deviation of the normal
    /// one: a few packets are very late. Truncated at ten standard deviations.
    Pareto,
    /// Quantiles of an arbitrary distribution in units of the spread, ascending, with linear
    /// interpolation in between.
    Quantiles(Arc<[f64]>),
}

/// A distribution and its width.
#[derive(Debug, Clone, PartialEq)]
pub struct Jitter {
    /// Width of the distribution; see [`Shape`].
    pub spread: Nanos,
    /// Shape of the distribution.
    pub shape: Shape,
}

impl Jitter {
    /// Returns the deviation from the mean delay in nanoseconds, positive or negative, given a
    /// random number.
    pub(crate) fn sample(&self, roll: u64) -> i64 {
        // Use the midpoint of one of 2^53 intervals: neither 0 nor 1, because some quantiles are
        // infinite there.
        let part = ((roll >> 11) as f64 + 0.5) / 9_007_199_254_740_992.0;
        (self.shape.quantile(part) * self.spread as f64).round() as i64
    }
}

impl Shape {
    /// Returns the quantile for a fraction of all packets, in units of the spread relative to the
    /// mean.
    pub fn quantile(&self, part: f64) -> f64 {
        match self {
            Self::Uniform => 2.0 * part - 1.0,
            Self::Normal => normal(part).clamp(-8.0, 8.0),
            Self::Pareto => pareto(part).min(10.0),
            Self::Quantiles(quantiles) => between(quantiles, part),
        }
    }
}

/// Quantile of the Pareto distribution with exponent 3 and scale 1, minus its mean 3/2, divided by
/// its standard deviation sqrt(3/4).
fn pareto(part: f64) -> f64 {
    (1.0 / libm::cbrt(1.0 - part) - 1.5) / libm::sqrt(0.75)
}

/// Quantile of the standard normal distribution: Newton's method on the complementary error
/// function, starting from the quantile of the logistic distribution. Uses `libm` because the
/// platform's own functions may differ between machines.
fn normal(part: f64) -> f64 {
    let (tail, sign) = if part < 0.5 { (part, -1.0) } else { (1.0 - part, 1.0) };
    let root = libm::sqrt(2.0);
    let mut x = libm::log((1.0 - tail) / tail) / 1.702;
    for _ in 0..40 {
        let above = 0.5 * libm::erfc(x / root);
        let density = libm::exp(-0.5 * x * x) / libm::sqrt(2.0 * std::f64::consts::PI);
        // Take the step on the logarithm, because its slope changes little: in the tail the plain
        // step would overshoot by far.
        let step = above * libm::log(above / tail) / density;
        x += step;
        if step.abs() < 1e-12 {
            break;
        }
    }
    sign * x
}

/// Interpolates linearly between `quantiles`; returns 0 if there are none.
fn between(quantiles: &[f64], part: f64) -> f64 {
    let Some(last) = quantiles.len().checked_sub(1) else { return 0.0 };
    let at = part * last as f64;
    let below = (at as usize).min(last);
    let above = (below + 1).min(last);
    quantiles[below] + (quantiles[above] - quantiles[below]) * (at - below as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_the_normal_distribution_are_those_of_tables() {
        for (part, quantile) in [
            (0.5, 0.0),
            (0.841_344_746_068_543, 1.0),
            (0.975, 1.959_963_984_540_054),
            (1e-9, -5.997_807_015),
        ] {
            assert!((normal(part) - quantile).abs() < 1e-8, "{part}: {}", normal(part));
        }
    }

    #[test]
    fn the_rarest_rolls_are_numbers() {
        for shape in [Shape::Uniform, Shape::Normal, Shape::Pareto, Shape::Quantiles([].into())] {
            let jitter = Jitter { spread: 1000, shape };
            let [least, most] = [0, u64::MAX].map(|roll| jitter.sample(roll));
            assert!((-8300..=0).contains(&least) && (0..=10_000).contains(&most), "{jitter:?}");
        }
    }

    #[test]
    fn quantiles_are_joined_by_straight_lines() {
        let shape = Shape::Quantiles([-1.0, 0.0, 3.0].into());
        let jitter = Jitter { spread: 1000, shape };
        let samples = [0, 1 << 62, 1 << 63, 3 << 62, u64::MAX].map(|roll| jitter.sample(roll));
        assert_eq!(samples, [-1000, -500, 0, 1500, 3000]);
    }
}
