//! Text and output of the health of service functions, and the limit of listed entries.

use api::v1;
use output::dataplane::FunctionHealth;

/// Maximum number of entries shown on a terminal: the busiest ones.
pub(super) const MAX_SHOWN: usize = 40;

/// Formats a health state: `up for 12 s`, `down for 3 s, 15 failures in a row: exit status 1: no
/// table`.
pub(super) fn health(health: Option<&v1::DataplaneHealth>) -> String {
    let Some(health) = health else { return "-".into() };
    let state = if health.up { "up" } else { "down" };
    let text = format!("{state} for {} s", health.for_ms / 1000);
    let times = health.in_a_row;
    match &health.failure {
        Some(why) => format!("{text}, {times} failed in a row: {why}"),
        None if health.up => text,
        None if health.runs == 0 => format!("{text}, not checked yet"),
        None => format!("{text}, {times} succeeded in a row"),
    }
}

pub(super) fn health_output(health: &v1::DataplaneHealth) -> FunctionHealth {
    FunctionHealth {
        up: health.up,
        for_ms: health.for_ms,
        in_a_row: health.in_a_row,
        runs: health.runs,
        failures: health.failures,
        not_started: health.not_started,
        failure: health.failure.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_says_how_long_and_why() {
        let down = v1::DataplaneHealth {
            for_ms: 3200,
            in_a_row: 15,
            runs: 20,
            failure: Some("exit status 1: no table".into()),
            ..Default::default()
        };
        let said = health(Some(&down));
        assert_eq!(said, "down for 3 s, 15 failed in a row: exit status 1: no table");
        let coming = v1::DataplaneHealth { in_a_row: 2, failure: None, ..down.clone() };
        assert_eq!(health(Some(&coming)), "down for 3 s, 2 succeeded in a row");
        let up = v1::DataplaneHealth { up: true, ..coming };
        assert_eq!(health(Some(&up)), "up for 3 s");
        let new = v1::DataplaneHealth::default();
        assert_eq!(health(Some(&new)), "down for 0 s, not checked yet");
        assert_eq!(health(None), "-");
    }
}
