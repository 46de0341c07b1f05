//! Options of a link: Mininet's numbers -> values with units.

use std::time::Duration;

use document::{Outline, Problems};
use model::Bandwidth;

use crate::draft::{Draft, Options, Source};

/// Traffic control options of a link.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Shaping {
    /// Rate in Mbit/s.
    rate: Option<f64>,
    delay: Option<Duration>,
    jitter: Option<Duration>,
    /// Loss in percent.
    loss: Option<f64>,
    /// Queue limit in packets.
    queue: Option<u32>,
}

/// Parses the options, and notes those that cannot be represented.
pub(super) fn shaping(
    draft: &mut Draft,
    source: &Source<'_>,
    options: Option<&Outline>,
) -> Result<Shaping, Problems> {
    let mut out = Shaping::default();
    for (key, value) in options.map(Outline::entries).unwrap_or_default() {
        let Some(word) = value.word() else { continue };
        let wrong = |help: &str| {
            Err(source.wrong(value.line, &format!("`{word}` is not a valid `{key}`"), help))
        };
        match key.as_str() {
            "bw" => match word.parse::<f64>() {
                Ok(rate) if (0.001..=1e6).contains(&rate) => out.rate = Some(rate),
                Ok(0.0) => {}
                _ => return wrong("write Mbit/s, such as 10"),
            },
            "loss" => match word.parse::<f64>() {
                Ok(0.0) => {}
                Ok(loss) if loss > 0.0 && loss <= 100.0 => out.loss = Some(loss),
                _ => return wrong("write percent, 0 to 100"),
            },
            "delay" | "jitter" => {
                let Some(time) = time(word) else { return wrong("write a time, such as 5ms") };
                let of = if key == "delay" { &mut out.delay } else { &mut out.jitter };
                *of = Some(time).filter(|time| !time.is_zero());
            }
            "max_queue_size" => match word.parse::<u32>() {
                Ok(0) => {}
                Ok(packets) if packets <= 1_000_000 => out.queue = Some(packets),
                _ => return wrong("write packets, such as 100"),
            },
            _ => draft.left_out(&format!("`{key}` of a link"), value),
        }
    }
    if out.queue.is_some() && out.rate.is_none() {
        let line = options.map_or(1, |options| options.line);
        draft.note(line, "`max_queue_size` without `bw` is not carried over");
        out.queue = None;
    }
    if let Some(jitter) = out.jitter.filter(|&jitter| jitter > out.delay.unwrap_or_default()) {
        let line = options.map_or(1, |options| options.line);
        draft.note(
            line,
            format!("a jitter of {jitter:?}, more than the delay, is not carried over"),
        );
        out.jitter = None;
    }
    Ok(out)
}

/// Parses a time such as `5ms`; without a unit it is in microseconds, as in tc. The maximum is a
/// minute.
fn time(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let seconds = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "us" | "usec" | "usecs" => 1e-6,
        "ms" | "msec" | "msecs" => 1e-3,
        "s" | "sec" | "secs" => 1.0,
        _ => return None,
    } * digits.trim().parse::<f64>().ok()?;
    (0.0..=60.0).contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

impl Shaping {
    pub(super) fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The options in the topology file's syntax.
    pub(super) fn options(&self) -> Options {
        let mut out = Options::new();
        if let Some(rate) = self.rate {
            let rate = Bandwidth::from_bps((rate * 1e6).round() as u64);
            out.push(("rate", rate.to_string()));
        }
        if let Some(packets) = self.queue {
            out.push(("queue", format!("{packets}p")));
        }
        if let Some(delay) = self.delay {
            out.push(("delay", micros(delay)));
        }
        if let Some(jitter) = self.jitter {
            out.push(("jitter", micros(jitter)));
        }
        if let Some(loss) = self.loss {
            out.push(("loss", format!("{loss}%")));
        }
        out
    }

    /// The options as text, for notes.
    pub(super) fn words(&self) -> String {
        let options = self.options();
        let words: Vec<String> = options.iter().map(|(k, v)| format!("{k} {v}")).collect();
        words.join(", ")
    }

    /// Options of two such links in series. The jitter is that of the sum of two independent ones.
    pub(super) fn twice(&self) -> Self {
        let loss = self.loss.map(|loss| {
            let twice = 2.0 * loss - loss * loss / 100.0;
            (twice * 1e6).round() / 1e6
        });
        Self {
            delay: self.delay.map(|delay| delay * 2),
            jitter: self.jitter.map(|jitter| jitter.mul_f64(std::f64::consts::SQRT_2)),
            loss,
            ..self.clone()
        }
    }
}

fn micros(time: Duration) -> String {
    let micros = time.as_micros();
    if micros.is_multiple_of(1000) { format!("{}ms", micros / 1000) } else { format!("{micros}us") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_tc_has_them() {
        assert_eq!(time("5ms"), Some(Duration::from_millis(5)));
        assert_eq!(time("250"), Some(Duration::from_micros(250)));
        assert_eq!(time("1.5s"), Some(Duration::from_millis(1500)));
        for bad in ["", "ms", "5 parsecs", "-1ms", "1e9s", "nan", "infs"] {
            assert_eq!(time(bad), None, "{bad}");
        }
    }

    #[test]
    fn two_links_are_one() {
        let one = Shaping {
            rate: Some(10.0),
            delay: Some(Duration::from_millis(5)),
            loss: Some(10.0),
            ..Shaping::default()
        };
        assert_eq!(one.twice().words(), "rate 10mbit, delay 10ms, loss 19%");
    }
}
