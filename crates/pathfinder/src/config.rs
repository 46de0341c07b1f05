//! The knobs of the decisions, with the reasons for their values.

use std::time::Duration;

/// When an application moves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// How much of the demand may be missing before it counts as not covered: rates and demands
    /// are measured on a wire that is never quite still.
    pub tolerance: f64,
    /// How long a violation must last. Three samples of 100 ms: one alone may be a burst, or a
    /// host's counter that is behind its router's; with two, a busy machine had one move in five
    /// minutes that nothing asked for.
    pub confirm: Duration,
    /// How long after a move the application counts on both paths: the window over which nodes
    /// average, and two samples more.
    pub settle: Duration,
    /// How long after a move that the headend does not confirm the application is judged anew.
    pub unconfirmed: Duration,
    /// How long a merely better path must stay better.
    pub hold: Duration,
    /// How long an application stays on a path before it leaves for a merely better one; doubled
    /// for each recent move.
    pub dwell: Duration,
    /// How far back a move counts as recent.
    pub memory: Duration,
    /// How much better a merely better path must be.
    pub gain: f64,
    /// Under this part of its demand, on a congested path, for [`Config::starve`], an application
    /// is not served, whatever the counters say.
    pub shortfall: f64,
    /// See [`Config::shortfall`].
    pub starve: Duration,
    /// The most moves in one round, so that their effect is seen before the next.
    pub moves_a_round: usize,
    /// How many paths an explanation looks at.
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
