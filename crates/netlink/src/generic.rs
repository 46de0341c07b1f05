//! Generic netlink: families are resolved by name.

use std::collections::HashMap;

use netlink_packet_core::DecodeError;
use netlink_sys::protocols::NETLINK_GENERIC;

use crate::attribute::{Writer, after, array, each};
use crate::socket::{Request, Socket};
use crate::{Namespace, Result};

// linux/genetlink.h
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// struct genlmsghdr: command, version, two reserved bytes
const HEADER: usize = 4;
const VERSION: u8 = 1;

/// A generic netlink socket in one namespace, for ethtool and SRv6 parameters.
#[derive(Debug)]
pub struct GenericHandle {
    socket: Socket,
    families: HashMap<&'static str, u16>,
}

impl GenericHandle {
    /// A handle on the calling thread's namespace. It stays in that namespace even if the handle
    /// moves to another thread.
    pub fn new() -> Result<Self> {
        Ok(Self { socket: Socket::open(NETLINK_GENERIC)?, families: HashMap::new() })
    }

    /// A handle on `namespace`.
    pub fn within(namespace: &Namespace) -> Result<Self> {
        namespace.run(Self::new)?
    }

    /// Sends `command` to `family` and waits for the ACK.
    pub(crate) fn call(
        &mut self,
        family: &'static str,
        command: u8,
        attributes: &Writer,
        operation: &str,
    ) -> Result<()> {
        let kind = self.family(family)?;
        let request = Request::new(kind, 0, message(command, attributes));
        self.socket.commit(&[(operation.into(), request)])
    }

    /// Sends `command` to `family`; `read` parses the attributes of the reply.
    pub(crate) fn query<T>(
        &mut self,
        family: &'static str,
        command: u8,
        attributes: &Writer,
        operation: &str,
        mut read: impl FnMut(&[u8]) -> Result<T, DecodeError>,
    ) -> Result<T> {
        let kind = self.family(family)?;
        let body = message(command, attributes);
        self.socket.get(operation, kind, &body, |answer| read(after(answer, HEADER)?))
    }

    fn family(&mut self, name: &'static str) -> Result<u16> {
        if let Some(id) = self.families.get(name) {
            return Ok(*id);
        }
        let mut attributes = Writer::default();
        attributes.put_text(CTRL_ATTR_FAMILY_NAME, name);
        let body = message(CTRL_CMD_GETFAMILY, &attributes);
        let operation = format!("find the kernel's {name} interface");
        let id = self.socket.get(&operation, GENL_ID_CTRL, &body, |answer| {
            for attribute in each(after(answer, HEADER)?) {
                let attribute = attribute?;
                if attribute.kind() == CTRL_ATTR_FAMILY_ID {
                    return array(attribute.value(), 0).map(u16::from_ne_bytes);
                }
            }
            Err("no number in it".into())
        })?;
        self.families.insert(name, id);
        Ok(id)
    }
}

fn message(command: u8, attributes: &Writer) -> Vec<u8> {
    let mut body = vec![command, VERSION, 0, 0];
    body.extend_from_slice(&attributes.0);
    body
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::in_namespace;

    #[test]
    fn root_an_unknown_family_is_named() {
        in_namespace(|| {
            let mut handle = GenericHandle::new().unwrap();
            let error = handle.family("nosuch").unwrap_err();
            assert!(error.is_not_found() && error.to_string().contains("nosuch"), "{error}");
            let id = handle.family("ethtool").unwrap();
            assert_eq!(handle.family("ethtool").unwrap(), id);
        });
    }
}
