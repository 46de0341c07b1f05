//! An interface that is down because its packets would pass without a program.

use std::error::Error;

use netlink::{Handle, set_down, set_up};

/// Returns an error and its causes in one line.
pub(crate) fn in_one_line(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |cause: &&dyn Error| (*cause).source());
    causes.fold(error.to_string(), |line, cause| format!("{line}: {cause}"))
}

/// An interface that is down. On drop, it is as it was before.
pub(crate) struct Closed {
    pub(crate) name: String,
    /// The interface, if it was up.
    lowered: Option<u32>,
}

impl Closed {
    /// Sets an interface down, if it exists.
    pub(crate) fn new(name: &str) -> Self {
        let lower = |mut handle: Handle| {
            let link = handle.link(name)?;
            if link.up {
                handle.request(format!("set {name} down"), set_down(link.index))?;
            }
            Ok(link.up.then_some(link.index))
        };
        // It may be missing.
        let lowered = Handle::new().and_then(lower).unwrap_or_default();
        Self { name: name.to_owned(), lowered }
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        if let Some(index) = self.lowered {
            // It may have been deleted.
            let _ = Handle::new()
                .and_then(|mut one| one.request(format!("set {} up", self.name), set_up(index)));
        }
    }
}
