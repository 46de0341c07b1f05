//! Syntax of names.

/// True if `text` is a valid name of a lab or an application: `[a-z][a-z0-9-]{0,30}`.
pub fn is_lab_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    text.len() <= 31
        && bytes.next().is_some_and(|b| b.is_ascii_lowercase())
        && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// True if the kernel accepts `text` as the name of an interface: `dev_valid_name` of
/// net/core/dev.c.
pub fn is_interface_name(text: &str) -> bool {
    let odd = |c: char| c == '/' || c == ':' || c.is_whitespace();
    (1..=15).contains(&text.len()) && !text.contains(odd) && !matches!(text, "." | "..")
}

/// Names that the kernel itself assigns to interfaces, or rejects, in a new namespace.
const RESERVED: [&str; 12] = [
    "lo", "all", "default", "sit0", "tunl0", "ip6tnl0", "gre0", "gretap0", "erspan0", "ip6gre0",
    "ip_vti0", "ip6_vti0",
];

/// Names of a lab's own daemons, besides its nodes' daemons.
const DAEMONS: [&str; 3] = ["controller", "emulator", "supervisor"];

/// True if `text` names a daemon of a lab, which makes it unavailable to nodes.
pub fn is_daemon_name(text: &str) -> bool {
    DAEMONS.contains(&text)
}

/// True if `text` is a valid name of a node or a LAN: `[A-Za-z][A-Za-z0-9_]{0,10}`, not ending in
/// `_` and digits, which parallel links append, and not a name that the kernel reserves.
///
/// Interfaces are named after nodes and LANs. Linux limits the name of an interface to 15 bytes: 11
/// for the node, 4 for `_` and the number of a parallel link.
pub fn is_node_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    let well_formed = text.len() <= 11
        && bytes.next().is_some_and(|b| b.is_ascii_alphabetic())
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_');
    well_formed && split_parallel(text).1.is_none() && !RESERVED.contains(&text)
}

/// `r2_3` -> (`r2`, 3): splits the name of a parallel link or its interface into base name and
/// number.
pub(crate) fn split_parallel(text: &str) -> (&str, Option<u32>) {
    match text.rsplit_once('_') {
        Some((name, digits)) if digits.bytes().all(|b| b.is_ascii_digit()) => {
            digits.parse().map_or((text, None), |number| (name, Some(number)))
        }
        _ => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lab_names() {
        assert!(is_lab_name("srv6-wan") && is_lab_name("a"));
        for bad in ["", "1a", "-a", "A", "a_b", "a b", "é", &"a".repeat(32)] {
            assert!(!is_lab_name(bad), "{bad}");
        }
    }

    #[test]
    fn interface_names() {
        assert!(is_interface_name("eth1.100") && is_interface_name(&"a".repeat(15)));
        for bad in ["", ".", "..", "a/b", "a:b", "a b", "a\t", &"a".repeat(16)] {
            assert!(!is_interface_name(bad), "{bad}");
        }
    }

    #[test]
    fn node_names() {
        assert!(is_node_name("r1") && is_node_name("Tokyo_East") && is_node_name("a_b2"));
        for bad in ["", "1r", "_r", "r-1", "r.1", "r1_2", "lo", "all", "twelve_chars", "é", "r 1"]
        {
            assert!(!is_node_name(bad), "{bad}");
        }
        assert_eq!(split_parallel("r2_3"), ("r2", Some(3)));
        assert_eq!(split_parallel("r_a"), ("r_a", None));
    }
}
