//! An interface that is down because its packets would pass without a program.

use std::error::Error;

use netlink::{Handle, set_down, set_up};

/// Returns an error and its causes in one line.
pub(crate) fn in_one_line(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |cause: &&dyn Error| (*cause).source());
    causes.fold(error.to_string(), |line, cause| format!("{line}: {cause}"))
}

/// An interface that has been set down. On drop, it is up again.
pub(crate) struct Closed {
    name: String,
    index: u32,
}

impl Closed {
    /// Sets an interface down. Returns `None` if it does not exist, or is down.
    pub(crate) fn new(name: &str) -> Result<Option<Self>, netlink::Error> {
        let mut handle = Handle::new()?;
        let link = match handle.link(name) {
            Err(why) if why.is_not_found() => return Ok(None),
            link => link?,
        };
        if !link.up {
            return Ok(None);
        }
        handle.request(format!("set {name} down"), set_down(link.index))?;
        Ok(Some(Self { name: name.to_owned(), index: link.index }))
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        // It may have been deleted.
        let _ = Handle::new()
            .and_then(|mut one| one.request(format!("set {} up", self.name), set_up(self.index)));
    }
}
