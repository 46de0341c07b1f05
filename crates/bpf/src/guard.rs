//! What this node's own packets meet at its interfaces, while it has service functions: answers to
//! their packets leave by their own way back, or not at all.

use std::path::Path;

use crate::front::{put_in_front, take_off};
use crate::tc::Point;
use crate::{Error, Srv6};

impl Srv6 {
    /// Puts the guard on an interface, in place of an earlier program's. `link_header`: whether its
    /// frames have one. It outlives this process: by `pin`, or on Linux before 6.6 by the clsact
    /// discipline.
    pub fn guard(&self, interface: u32, link_header: bool, at: &Path) -> Result<(), Error> {
        put_in_front(self.guard_program(link_header), interface, Point::Egress, at)
            .map_err(|source| Error::Guard { interface, source })
    }
}

/// Takes the guard off an interface, any program's, if it is there.
pub fn unguard(interface: u32, at: &Path) -> Result<(), Error> {
    take_off(interface, Point::Egress, at).map_err(|source| Error::Guard { interface, source })
}
