//! Offloads that XDP cannot keep, switched off and restored.

use netlink::{Namespace, Offload, has_offload, set_offload};

/// An offload that was on, until it is dropped.
#[derive(Debug)]
pub(crate) struct Off {
    interface: String,
    offload: Offload,
    /// Namespace of the interface; the process's own if absent.
    namespace: Option<Namespace>,
}

impl Off {
    /// Switches an offload of an interface off; `None` if it is not on.
    ///
    /// # Errors
    ///
    /// Fails if the driver cannot switch it.
    pub(crate) fn new(
        namespace: Option<&Namespace>,
        interface: &str,
        offload: Offload,
    ) -> netlink::Result<Option<Self>> {
        let switch = || -> netlink::Result<bool> {
            // A driver that does not know an offload has it off.
            let is_on = has_offload(interface, offload).unwrap_or(false);
            if is_on {
                set_offload(interface, offload, false)?;
            }
            Ok(is_on)
        };
        let was_on = match namespace {
            Some(namespace) => namespace.run(switch)??,
            None => switch()?,
        };
        let (interface, namespace) = (interface.to_owned(), namespace.cloned());
        // Not then_some(), which would make a value and drop it.
        Ok(was_on.then(|| Self { interface, offload, namespace }))
    }
}

impl Drop for Off {
    fn drop(&mut self) {
        let restore = || set_offload(&self.interface, self.offload, true);
        // The interface may have been deleted.
        let _ = match &self.namespace {
            Some(namespace) => namespace.run(restore).and_then(|done| done),
            None => restore(),
        };
    }
}
