//! Text that several errors share.

pub(super) fn known_names(known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!(" (known: {})", known.join(", ")) }
}

pub(super) fn said(log: &str) -> String {
    if log.is_empty() { String::new() } else { format!("; its log ends with:\n{log}") }
}

pub(super) fn lines(missing: &[String]) -> String {
    missing.iter().map(|line| format!("\n  {line}")).collect()
}
