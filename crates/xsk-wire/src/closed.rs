//! Interfaces that are down because their packets would pass without a program.

use std::error::Error;

use netlink::{Handle, set_down, set_up};

/// Returns an error and its causes in one line.
pub(crate) fn in_one_line(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |cause: &&dyn Error| (*cause).source());
    causes.fold(error.to_string(), |line, cause| format!("{line}: {cause}"))
}

/// Names of interfaces, those of all ports. An interface with such a name and without a program is set down
/// whenever it is up: it takes none, or was created later, in place of a renamed or deleted port. On drop,
/// those that exist are up again.
#[derive(Default)]
pub(crate) struct Closed(Vec<Unjudged>);

/// An interface without a program.
struct Unjudged {
    name: String,
    /// Index of the interface that this process has set down.
    lowered: Option<u32>,
    /// True after an error has been reported.
    is_reported: bool,
}

impl Closed {
    /// Adds a name.
    pub(crate) fn add(&mut self, name: &str) {
        self.0.push(Unjudged { name: name.to_owned(), lowered: None, is_reported: false });
    }

    /// Sets the interfaces down that are up and not `judged` by a program. Errors are reported once, and the
    /// next call tries again.
    pub(crate) fn set_down(&mut self, handle: &mut Handle, judged: &[u32], tell: &dyn Fn(&str)) {
        for one in &mut self.0 {
            match one.set_down(handle, judged) {
                Ok(()) => one.is_reported = false,
                Err(_) if one.is_reported => {}
                Err(why) => {
                    let (name, why) = (&one.name, in_one_line(&why));
                    tell(&format!("{name} is up without a program, and cannot be set down: {why}"));
                    one.is_reported = true;
                }
            }
        }
    }
}

impl Unjudged {
    fn set_down(&mut self, handle: &mut Handle, judged: &[u32]) -> Result<(), netlink::Error> {
        let link = match handle.link(&self.name) {
            Err(why) if why.is_not_found() => return Ok(()),
            link => link?,
        };
        if link.up && !judged.contains(&link.index) {
            match handle.request(format!("set {} down", self.name), set_down(link.index)) {
                // Deleted meanwhile.
                Err(why) if why.is_not_found() => return Ok(()),
                done => done?,
            }
            self.lowered = Some(link.index);
        }
        Ok(())
    }

    fn set_up(&self) -> Result<(), netlink::Error> {
        let Some(index) = self.lowered else { return Ok(()) };
        let mut handle = Handle::new()?;
        // Another interface may have the index.
        if handle.link_at(index)?.name == self.name {
            handle.request(format!("set {} up", self.name), set_up(index))?;
        }
        Ok(())
    }
}

impl Drop for Unjudged {
    fn drop(&mut self) {
        // It may have been deleted.
        let _ = self.set_up();
    }
}
