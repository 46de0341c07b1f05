//! Figures for readers: units of a readable size, three digits, thousands separated.

use anyhow::{Context, bail};

/// Units of one quantity, smallest first, with their sizes.
const LADDERS: [&[(&str, f64)]; 4] = [
    &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)],
    &[("ns/packet", 1.0), ("us/packet", 1e3), ("ms/packet", 1e6)],
    &[("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9)],
    &[("KiB", 1.0), ("MiB", 1024.0), ("GiB", 1024.0 * 1024.0)],
];

/// Units whose values are whole numbers, shown in full.
const COUNTS: [&str; 4] = ["hooks", "instructions", "moves", "packets"];

/// Digits of a value, and most digits if its runs differ only in the last ones.
const DIGITS: i32 = 3;
const MAX_DIGITS: i32 = 5;

/// A value that is a power of ten after this factor rounds up to it.
const ROUNDS_UP: f64 = 1.0005;

/// Formats a median, and in brackets the lowest and the highest run if they look different.
pub(crate) fn spread(value: f64, low: f64, high: f64, unit: &str) -> String {
    let (factor, shown) = scale(value, unit);
    let figures = [value * factor, low * factor, high * factor];
    let decimals = decimals(figures, unit);
    let [value, low, high] = figures.map(|figure| fixed(figure, decimals));
    if low == value && high == value {
        format!("{value}{shown}")
    } else {
        format!("{value}{shown} ({low} to {high})")
    }
}

/// Formats one value with its unit.
pub(crate) fn single(value: f64, unit: &str) -> String {
    spread(value, value, value, unit)
}

/// Formats a ratio: two decimals, fewer if it is large, two digits if it is small.
pub(crate) fn ratio(value: f64) -> String {
    let magnitude = magnitude(value);
    fixed(value, if magnitude < -1 { 1 - magnitude } else { 2 - magnitude.max(0) })
}

/// Converts a value with its unit, such as `5 Gbit/s`, to another unit of the same quantity.
pub(crate) fn convert(text: &str, unit: &str) -> anyhow::Result<f64> {
    let (number, from) = text.trim().split_once(' ').unwrap_or((text.trim(), "1"));
    let number: f64 = number.parse().with_context(|| format!("`{number}` is not a number"))?;
    if from == unit {
        return Ok(number);
    }
    let size = |unit: &str, ladder: &[(&str, f64)]| {
        ladder.iter().find(|(name, _)| *name == unit).map(|(_, size)| *size)
    };
    for ladder in LADDERS {
        if let (Some(from), Some(to)) = (size(from, ladder), size(unit, ladder)) {
            return Ok(number * from / to);
        }
    }
    bail!("`{text}` has the unit {from}, but the row has {unit}")
}

/// Returns the factor to a unit in which the value is between 1 and 1000, and that unit's text.
fn scale(value: f64, unit: &str) -> (f64, String) {
    let find = |ladder: &&&[(&str, f64)]| ladder.iter().any(|(name, _)| *name == unit);
    let Some(ladder) = LADDERS.iter().find(find) else {
        return match unit {
            "1" => (1.0, String::new()),
            "Mverdicts/s" => (1.0, " million verdicts/s".into()),
            _ => (1.0, format!(" {unit}")),
        };
    };
    let size = ladder.iter().find(|(name, _)| *name == unit).map_or(1.0, |(_, size)| *size);
    let absolute = value.abs() * size * ROUNDS_UP;
    let fits = ladder.iter().rev().find(|(_, size)| absolute >= *size).unwrap_or(&ladder[0]);
    // Zero has no size of its own.
    if value == 0.0 { (1.0, format!(" {unit}")) } else { (size / fits.1, format!(" {}", fits.0)) }
}

/// Returns the decimals of a median and its runs: negative ones round before the point.
fn decimals([value, low, high]: [f64; 3], unit: &str) -> i32 {
    if COUNTS.contains(&unit) {
        return 0;
    }
    if value.abs() < 1000.0 && [value, low, high].iter().all(|figure| figure.fract() == 0.0) {
        return 0;
    }
    let magnitude = magnitude(value);
    let usual = DIGITS - 1 - magnitude;
    if high <= low {
        return usual;
    }
    let visible = -((high - low).log10().floor() as i32);
    usual.max(visible.min(MAX_DIGITS - 1 - magnitude))
}

/// Returns the power of ten of the first digit.
fn magnitude(value: f64) -> i32 {
    if value == 0.0 { 0 } else { (value.abs() * ROUNDS_UP).log10().floor() as i32 }
}

/// Formats with a number of decimals, and commas between thousands.
fn fixed(value: f64, decimals: i32) -> String {
    let step = 10f64.powi((-decimals).max(0));
    let value = if step > 1.0 { (value / step).round() * step } else { value };
    let text = format!("{value:.*}", decimals.max(0) as usize);
    let (sign, text) = text.strip_prefix('-').map_or(("", &*text), |rest| ("-", rest));
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_have_a_readable_size() {
        assert_eq!(single(1230.69, "ns"), "1.23 us");
        assert_eq!(single(0.011099, "s"), "11.1 ms");
        assert_eq!(single(0.000247, "s"), "247 us");
        assert_eq!(single(13873.0, "Mbit/s"), "13.9 Gbit/s");
        assert_eq!(single(1466.69, "MiB"), "1.43 GiB");
        assert_eq!(single(2613.5, "ns/packet"), "2.61 us/packet");
        assert_eq!(single(0.98621, "1"), "0.986");
        assert_eq!(single(26.94, "Mverdicts/s"), "26.9 million verdicts/s");
        assert_eq!(single(0.7042, "Mpps"), "0.704 Mpps");
        assert_eq!(single(999.6, "us"), "1.00 ms");
        assert_eq!(single(0.1 - 1e-17, "%"), "0.100 %");
    }

    #[test]
    fn runs_have_the_medians_unit_and_digits() {
        assert_eq!(spread(119.98, 71.9, 138.7, "ns"), "120 ns (72 to 139)");
        assert_eq!(spread(0.26, 0.162, 1.4508, "s"), "260 ms (162 to 1,451)");
        assert_eq!(spread(29.0, -612.0, 1413.0, "ns"), "29 ns (-612 to 1,413)");
        assert_eq!(spread(30.0, 20.0, 33.0, "ns"), "30 ns (20 to 33)");
    }

    #[test]
    fn small_differences_stay_visible_and_equal_runs_have_no_brackets() {
        assert_eq!(spread(600.078, 600.04, 600.1, "ms"), "600.08 ms (600.04 to 600.10)");
        assert_eq!(spread(27.078, 27.078, 27.078, "%"), "27.1 %");
        assert_eq!(spread(0.0, 0.0, 0.0604, "%"), "0.00 % (0.00 to 0.06)");
        assert_eq!(spread(0.0, 0.0, 0.0, "packets"), "0 packets");
    }

    #[test]
    fn counts_are_whole_and_thousands_are_separated() {
        let exact = spread(12266.79, 12266.78, 12266.8, "instructions");
        assert_eq!(exact, "12,267 instructions");
        assert_eq!(single(380_340.0, "packets/s"), "380,000 packets/s");
    }

    #[test]
    fn ratios_have_two_decimals_at_most() {
        let shown = [0.04588, 0.9996, 1.26, 52.397, 999.7, 104_200.0].map(ratio);
        assert_eq!(shown, ["0.046", "1.00", "1.26", "52.4", "1,000", "104,000"]);
    }

    #[test]
    fn values_convert_within_a_quantity() {
        assert_eq!(convert("5 Gbit/s", "Mbit/s").unwrap(), 5000.0);
        assert_eq!(convert("50 ms", "ms").unwrap(), 50.0);
        assert_eq!(convert("0", "1").unwrap(), 0.0);
        let wrong = convert("5 Gbit/s", "ns").unwrap_err().to_string();
        assert_eq!(wrong, "`5 Gbit/s` has the unit Gbit/s, but the row has ns");
        assert!(convert("five ms", "ms").is_err());
    }
}
