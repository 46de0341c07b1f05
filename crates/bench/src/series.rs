//! Time series.

/// Times in seconds, and values.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Series(pub(crate) Vec<(f64, f64)>);

impl Series {
    /// Returns the median of the values between two times.
    pub(crate) fn median_between(&self, from: f64, to: f64) -> f64 {
        let inside: Vec<f64> =
            self.0.iter().filter(|(t, _)| (from..to).contains(t)).map(|(_, v)| *v).collect();
        crate::median(&inside)
    }
}
