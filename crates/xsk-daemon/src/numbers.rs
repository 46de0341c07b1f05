//! Port numbers of tenants.

use crate::error::Error;
use crate::tenant::{TRANSMITTED, Tenant};

impl Tenant {
    /// Returns the number of a new port: the given one, or the lowest one that is free.
    ///
    /// # Errors
    ///
    /// Fails if another port has the number, or if all are taken.
    pub(crate) fn number(&self, given: Option<u32>) -> Result<u32, Error> {
        let owner = |number| self.ports.iter().find(|port| port.number == number);
        let Some(number) = given else {
            let free = (1..TRANSMITTED).chain([0]).find(|number| owner(*number).is_none());
            return free.ok_or_else(|| Error::Full(self.name.clone()));
        };
        match owner(number) {
            None => Ok(number),
            Some(port) => Err(Error::NumberTaken {
                number,
                interface: port.interface.clone(),
                tenant: self.name.clone(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sandbox::process::Config;

    use super::*;
    use crate::tenant::Port;

    #[test]
    fn a_new_port_gets_a_free_number() {
        let port = |number: u32| Port { interface: format!("eth{number}"), number };
        let mut tenant = Tenant {
            name: "blue".to_owned(),
            device: 1,
            ports: vec![port(1), port(2), port(7)],
            config: Config::default(),
            hold: Duration::ZERO,
            is_inline: false,
            kernel: None,
            vm: None,
        };
        assert_eq!((tenant.number(None), tenant.number(Some(0))), (Ok(3), Ok(0)));
        let taken = tenant.number(Some(7)).unwrap_err().to_string();
        assert_eq!(taken, "`eth7` is port 7 of tenant `blue`: choose another number");
        tenant.ports = (1..256).map(port).collect();
        assert_eq!(tenant.number(None), Ok(0));
        tenant.ports.push(port(0));
        assert_eq!(tenant.number(None), Err(Error::Full("blue".to_owned())));
    }
}
