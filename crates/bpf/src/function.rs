//! Where inner packets of service functions enter the kernel and leave it.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::fd::{AsFd, BorrowedFd};

use libbpf_rs::{TC_EGRESS, TC_INGRESS, TcAttachPoint, TcHookBuilder};

use crate::{Error, Srv6};

/// Where the programs sit on their interfaces, which are the data plane's own.
const PRIORITY: u32 = 1;
const HANDLE: u32 = 1;

/// The two ends of a veth, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionEnds {
    /// The end by which inner packets come into the kernel.
    pub inwards: u32,
    /// The end by which they leave it.
    pub outwards: u32,
}

impl Srv6 {
    /// Leads inner packets by the two ends: puts the programs there that give marks and outer
    /// headers, in place of those of an earlier program.
    pub fn attach_functions(&self, ends: FunctionEnds) -> Result<(), Error> {
        let control = self.control.at(0);
        // SAFETY: the pointers are into the mapping, each is one word, and this is their only writer.
        unsafe {
            (&raw mut (*control).function_in).write_volatile(ends.inwards);
            (&raw mut (*control).function_out).write_volatile(ends.outwards);
        }
        self.function_devices.set(&0, &ends.outwards)?;
        let [inwards, outwards] = self.function_programs();
        attach("function_out", outwards, ends.outwards, TC_EGRESS)?;
        attach("function_in", inwards, ends.inwards, TC_INGRESS)
    }
}

fn attach(
    name: &'static str,
    program: BorrowedFd<'_>,
    interface: u32,
    point: TcAttachPoint,
) -> Result<(), Error> {
    let interface = interface as i32;
    let mut hook = TcHookBuilder::new(program.as_fd())
        .ifindex(interface)
        .replace(true)
        .handle(HANDLE)
        .priority(PRIORITY)
        .hook(point);
    // It fails when the clsact discipline is there already, and libbpf prints that: attaching tells
    // what matters.
    let before = libbpf_rs::set_print(None);
    let _ = hook.create();
    libbpf_rs::set_print(before);
    let attached = hook.attach();
    attached.map(drop).map_err(|source| Error::Attach { program: name, interface, source })
}

/// What is in front of a tag: 15 bits that are hard to guess, not 0. That the tag is a packet's own its
/// slot says.
pub(crate) fn magic() -> u32 {
    (random() & 0x7fff).max(1)
}

/// A number that is hard to guess.
pub(crate) fn random() -> u32 {
    RandomState::new().build_hasher().finish() as u32
}
