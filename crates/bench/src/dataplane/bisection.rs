//! Throughput (RFC 2544 section 26.1): the highest rate without loss, found by bisection.

/// Relative distance between the bounds at which the search stops.
const NEAR: f64 = 0.02;
/// Fraction of the highest rate below which the search stops.
const LEAST: f64 = 0.05;
/// Number of failed trials after which a rate has failed. A hypervisor that preempts a CPU
/// makes a device lose frames at any rate.
const TRIES: usize = 10;
/// Three trials suffice if each of them loses more than this fraction.
const FAR_TOO_MUCH: f64 = 0.1;

/// Result of one trial.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trial {
    /// The actual rate, which may be lower than requested.
    pub(super) rate: f64,
    /// Fraction of the frames that did not arrive.
    pub(super) lost: f64,
}

/// Returns the highest rate up to `highest` at which a trial had no loss, or 0 if all trials had
/// loss.
pub(super) fn largest<E>(
    highest: f64,
    mut trial: impl FnMut(f64) -> Result<Trial, E>,
) -> Result<f64, E> {
    let (mut low, mut high, mut found) = (0.0, highest, 0.0);
    while high - low > NEAR * high && high > LEAST * highest {
        let middle = (low + high) / 2.0;
        match passed(|| trial(middle))? {
            Some(rate) => (low, found) = (middle, rate.max(found)),
            None => high = middle,
        }
    }
    Ok(found)
}

/// Returns the rate of the first trial without loss.
fn passed<E>(mut trial: impl FnMut() -> Result<Trial, E>) -> Result<Option<f64>, E> {
    let mut least = f64::INFINITY;
    for tried in 1..=TRIES {
        let Trial { rate, lost } = trial()?;
        if lost == 0.0 {
            return Ok(Some(rate));
        }
        least = least.min(lost);
        if tried >= 3 && least > FAR_TOO_MUCH {
            break;
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// Returns the result for a device of this capacity, and the number of trials. The device has a
    /// little loss in the trials that `disturbed` selects.
    fn found(limit: f64, disturbed: impl Fn(usize) -> bool) -> (f64, usize) {
        let mut trials = 0;
        let rate = largest(8.0, |rate| {
            trials += 1;
            let lost = (1.0 - limit / rate).max(if disturbed(trials) { 0.01 } else { 0.0 });
            Ok::<_, Infallible>(Trial { rate, lost })
        });
        (rate.unwrap(), trials)
    }

    fn assert_near(rate: f64, limit: f64) {
        assert!(rate <= limit && rate > limit * (1.0 - 1.5 * NEAR), "{rate} for {limit}");
    }

    #[test]
    fn the_largest_rate_is_found() {
        for limit in [0.5, 1.19, 4.0, 6.36, 7.99, 9.0] {
            let (rate, trials) = found(limit, |_| false);
            assert_near(rate, limit.min(8.0));
            assert!(trials < 60, "{trials} trials for {limit}");
        }
    }

    #[test]
    fn losses_below_that_rate_are_tried_again() {
        for often in [2, 3, 4] {
            assert_near(found(1.19, |trial| trial % often == 0).0, 1.19);
        }
        // All but every fourth trial is disturbed.
        assert_near(found(1.19, |trial| trial % 4 != 0).0, 1.19);
    }

    #[test]
    fn one_that_loses_much_is_tried_again_too() {
        let mut trials = 0;
        let rate = largest(8.0, |rate| {
            trials += 1;
            let lost = if rate > 1.19 || trials % 3 != 0 { 0.9 } else { 0.0 };
            Ok::<_, Infallible>(Trial { rate, lost })
        });
        assert_near(rate.unwrap(), 1.19);
    }

    #[test]
    fn it_ends_where_every_trial_loses() {
        assert_eq!(found(8.0, |_| true).0, 0.0);
    }

    #[test]
    fn the_result_is_the_sent_rate_and_not_the_requested_one() {
        let ceiling = |rate: f64| Ok::<_, Infallible>(Trial { rate: rate.min(3.0), lost: 0.0 });
        assert_eq!(largest(8.0, ceiling), Ok(3.0));
    }
}
