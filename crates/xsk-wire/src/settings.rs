//! Offloads that XDP cannot keep, switched off and restored.

use netlink::{Handle, Link, Namespace, Offload, has_offload, set_offload};

use crate::other_end::{self, OtherEnd};

/// An offload that was on, until it is dropped.
#[derive(Debug)]
pub(crate) struct Off {
    target: Target,
    offload: Offload,
}

/// The interface of an offload. It may have another name when it is restored.
#[derive(Debug)]
enum Target {
    /// An interface with this index.
    Own(u32),
    /// The other end of the veth with this index, which is found again: a descriptor would keep its
    /// namespace, and the namespace's ID can become that of another one.
    OtherEnd(u32),
}

impl Off {
    /// Switches an offload of an interface off; `None` if it is not on.
    ///
    /// # Errors
    ///
    /// Fails if the driver cannot switch it.
    pub(crate) fn new(interface: &Link, offload: Offload) -> netlink::Result<Option<Self>> {
        let was_on = switch_off(&interface.name, offload)?;
        // Not then_some(), which would make a value and drop it.
        Ok(was_on.then(|| Self { target: Target::Own(interface.index), offload }))
    }

    /// Does the same for the other end of a veth.
    pub(crate) fn of_other_end(
        veth: &Link,
        end: &OtherEnd,
        offload: Offload,
    ) -> netlink::Result<Option<Self>> {
        let was_on = within(end.namespace.as_ref(), || switch_off(&end.name, offload))?;
        Ok(was_on.then(|| Self { target: Target::OtherEnd(veth.index), offload }))
    }
}

/// Returns true if the offload was on.
fn switch_off(interface: &str, offload: Offload) -> netlink::Result<bool> {
    // A driver that does not know an offload has it off.
    let is_on = has_offload(interface, offload).unwrap_or(false);
    if is_on {
        set_offload(interface, offload, false)?;
    }
    Ok(is_on)
}

fn within<T: Send>(
    namespace: Option<&Namespace>,
    run: impl FnOnce() -> netlink::Result<T> + Send,
) -> netlink::Result<T> {
    match namespace {
        Some(namespace) => namespace.run(run)?,
        None => run(),
    }
}

impl Drop for Off {
    fn drop(&mut self) {
        let restore = |interface: &str| set_offload(interface, self.offload, true);
        let Ok(mut handle) = Handle::new() else { return };
        // The interface may have been deleted.
        let _ = match &self.target {
            Target::Own(index) => handle.link_at(*index).and_then(|link| restore(&link.name)),
            Target::OtherEnd(veth) => {
                let Ok(veth) = handle.link_at(*veth) else { return };
                let Some(end) = other_end::find(&mut handle, &veth) else { return };
                within(end.namespace.as_ref(), || restore(&end.name))
            }
        };
    }
}
