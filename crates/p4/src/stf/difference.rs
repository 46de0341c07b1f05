//! Formats packets, and the difference of two.

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Shows both packets, with marks below the digits that differ.
pub(super) fn difference(what: &str, wanted: &super::Pattern, packet: &[u8]) -> String {
    let (wanted, found) = (wanted.to_string(), hex(packet));
    let mut others = found.chars();
    let marks: String = wanted
        .chars()
        .map(|wanted| match (wanted, others.next()) {
            ('*', Some(_)) | ('$', None) => ' ',
            (wanted, Some(found)) if wanted == found => ' ',
            _ => '^',
        })
        .collect();
    format!("{what}\n  expected {wanted}\n  found    {found}\n           {marks}")
}
