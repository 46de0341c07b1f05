//! Interfaces of a client that no tenant has.

use std::collections::BTreeSet;

/// Maximum number of interfaces that are named: a client chooses the names.
const MAX: usize = 64;

/// Interfaces of sockets without a tenant. One of them may be a misspelled port.
#[derive(Debug, Default)]
pub(crate) struct Unjudged {
    named: BTreeSet<String>,
    is_refused: bool,
}

impl Unjudged {
    /// Refuses such sockets from now on.
    pub(crate) fn refuse(&mut self) {
        self.is_refused = true;
    }

    /// Opens a socket of an interface without a tenant, and reports it, or returns why it is refused.
    pub(crate) fn open(&mut self, interface: &str, tell: &dyn Fn(&str)) -> Result<(), String> {
        if self.is_refused {
            return Err(
                "no tenant has this port, and its packets would pass without a program".into()
            );
        }
        self.message(interface).inspect(|it| tell(it));
        Ok(())
    }

    /// Returns a message for the operator if the interface is new.
    fn message(&mut self, interface: &str) -> Option<String> {
        let is_new = self.named.len() < MAX && self.named.insert(interface.to_owned());
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

    #[test]
    fn a_socket_without_a_tenant_is_refused_if_each_must_have_one() {
        let mut unjudged = Unjudged::default();
        unjudged.open("eth1", &|_| {}).unwrap();
        unjudged.refuse();
        let why = unjudged.open("eth1", &|_| {}).unwrap_err();
        assert!(why.starts_with("no tenant has this port"), "{why}");
    }
}
