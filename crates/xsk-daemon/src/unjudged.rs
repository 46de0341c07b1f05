//! Interfaces of a client that no tenant has.

use std::collections::BTreeSet;

/// Maximum number of interfaces that are named: a client chooses the names.
const MAX: usize = 64;

/// Interfaces of sockets without a tenant. One of them may be a misspelled port.
#[derive(Debug, Default)]
pub(crate) struct Unjudged(BTreeSet<String>);

impl Unjudged {
    /// Returns a message for the operator if the interface is new.
    pub(crate) fn message(&mut self, interface: &str) -> Option<String> {
        let is_new = self.0.len() < MAX && self.0.insert(interface.to_owned());
        is_new.then(|| {
            format!("{interface}: no tenant has this port, its packets pass without a program")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_named_once_and_a_client_does_not_flood_the_operator() {
        let mut unjudged = Unjudged::default();
        assert!(unjudged.message("eth1").is_some());
        assert_eq!(unjudged.message("eth1"), None);
        let named = (0..1000).filter(|number| unjudged.message(&format!("x{number}")).is_some());
        assert_eq!(named.count(), MAX - 1);
    }
}
