//! Parameters of the decisions, with the reasons for their values.

use std::time::Duration;

/// The conditions under which an application moves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// The part of the demand that may be missing before it counts as not covered. Measured rates
    /// always fluctuate a little.
    pub tolerance: f64,
    /// The time a violation must last: three samples of 100 ms. A single sample can be a burst, or
    /// a host counter that lags behind its router's. With two samples, a busy machine had one
    /// unjustified move in five minutes.
    pub confirm: Duration,
    /// The time after a move during which the application counts on both paths: the averaging
    /// window of the nodes plus two samples.
    pub settle: Duration,
    /// The time after which an application is evaluated again if the headend does not confirm a
    /// move.
    pub unconfirmed: Duration,
    /// The time that a merely better path must stay better.
    pub hold: Duration,
    /// The time that an application stays on a path before it moves to a merely better one; doubled
    /// for each recent move.
    pub dwell: Duration,
    /// The age up to which a move counts as recent.
    pub memory: Duration,
    /// The relative improvement required of a merely better path.
    pub gain: f64,
    /// The part of the demand below which an application counts as not served, regardless of the
    /// counters, if its path is congested for [`Config::starve`].
    pub shortfall: f64,
    /// See [`Config::shortfall`].
    pub starve: Duration,
    /// The maximum number of moves in one round, so that their effect is visible before the next.
    pub moves_a_round: usize,
    /// The maximum number of paths in an explanation.
    pub alternatives: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            tolerance: 0.05,
            confirm: Duration::from_millis(300),
            settle: Duration::from_millis(500),
            unconfirmed: Duration::from_secs(5),
            hold: Duration::from_secs(10),
            dwell: Duration::from_secs(30),
            memory: Duration::from_secs(300),
            gain: 0.1,
            shortfall: 0.8,
            starve: Duration::from_secs(2),
            moves_a_round: 8,
            alternatives: 16,
        }
    }
}
