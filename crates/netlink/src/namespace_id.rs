//! IDs by which a namespace refers to others (linux/net_namespace.h).

use std::os::fd::{AsFd, AsRawFd};

use crate::attribute::{after, each, u32_at};
use crate::{Handle, Namespace, Result};

const RTM_GETNSID: u16 = 90;
const NETNSA_NSID: u16 = 1;
const NETNSA_FD: u16 = 3;
/// Length of `struct rtgenmsg`, padded.
const HEADER: usize = 4;

impl Handle {
    /// The ID of another namespace in this handle's, as in `Link::peer_namespace`; `None` if it has
    /// none.
    pub fn namespace_id(&mut self, namespace: &Namespace) -> Result<Option<u32>> {
        let mut body = vec![0; HEADER];
        body.extend(8_u16.to_ne_bytes());
        body.extend(NETNSA_FD.to_ne_bytes());
        body.extend(namespace.as_fd().as_raw_fd().to_ne_bytes());
        let id = self.socket.get("look up a namespace's ID", RTM_GETNSID, &body, |answer| {
            for attribute in each(after(answer, HEADER)?) {
                let attribute = attribute?;
                if attribute.kind() == NETNSA_NSID {
                    return u32_at(attribute.value(), 0).map(Some);
                }
            }
            Ok(None)
        })?;
        // NETNSA_NSID_NOT_ASSIGNED is -1.
        Ok(id.filter(|id| *id != u32::MAX))
    }
}
