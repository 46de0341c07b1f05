//! Offloads that XDP cannot keep, switched off and restored.

use netlink::{Handle, Link, Namespace, Offload, has_offload, set_offload};

use crate::other_end;

/// An offload that was on, until it is dropped.
#[derive(Debug)]
pub(crate) struct Off {
    /// Index of the interface, or of the veth whose other end it is. Names may change meanwhile.
    index: u32,
    offload: Offload,
    /// The veth, if the interface is its other end. That is found again when this is dropped: a
    /// descriptor would keep its namespace.
    of: Option<Link>,
}

impl Off {
    /// Switches an offload of an interface off; `None` if it is not on.
    ///
    /// # Errors
    ///
    /// Fails if the driver cannot switch it.
    pub(crate) fn new(interface: &Link, offload: Offload) -> netlink::Result<Option<Self>> {
        Self::within(None, &interface.name, offload, None, interface.index)
    }

    /// Does the same for the other end of a veth.
    pub(crate) fn of_other_end(
        veth: &Link,
        end: &other_end::OtherEnd,
        offload: Offload,
    ) -> netlink::Result<Option<Self>> {
        Self::within(end.namespace.as_ref(), &end.name, offload, Some(veth.clone()), veth.index)
    }

    fn within(
        namespace: Option<&Namespace>,
        interface: &str,
        offload: Offload,
        of: Option<Link>,
        index: u32,
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
        // Not then_some(), which would make a value and drop it.
        Ok(was_on.then(|| Self { index, offload, of }))
    }
}

impl Drop for Off {
    fn drop(&mut self) {
        let restore = |interface: &str| set_offload(interface, self.offload, true);
        let Ok(mut handle) = Handle::new() else { return };
        let Some(veth) = &self.of else {
            // The interface may have been deleted.
            let _ = handle.link_at(self.index).and_then(|link| restore(&link.name));
            return;
        };
        let end = other_end::find(&mut handle, veth);
        let Some(end) = end else { return };
        // It may be deleted meanwhile.
        let _ = match &end.namespace {
            Some(namespace) => namespace.run(|| restore(&end.name)).and_then(|done| done),
            None => restore(&end.name),
        };
    }
}
