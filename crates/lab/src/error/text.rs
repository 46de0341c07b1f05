//! Text that several errors share.

pub(super) fn there_are(known: &[String]) -> String {
    match known {
        [] => String::new(),
        [one] => format!(": there is {one}"),
        many => format!(": there are {}", many.join(", ")),
    }
}

pub(super) fn said(log: &str) -> String {
    if log.is_empty() { String::new() } else { format!("; its log ends with:\n{log}") }
}

pub(super) fn lines(missing: &[String]) -> String {
    missing.iter().map(|line| format!("\n  {line}")).collect()
}
