//! A program in a virtual machine of its own: `isolation: vm`.
//!
//! ```text
//! switch -- control socket --> QEMU's serial port --> init of the guest: the program
//!        == rings, frames ===> two ivshmem devices ==> mapped from sysfs
//! ```
//!
//! The process that the switch starts builds an initramfs of its own executable, isolates itself, and
//! becomes QEMU ([`start`]). The guest's only process is this executable again ([`run`]). It polls the
//! rings, since ivshmem has no interrupts; the switch does too. The protocol is that of a process,
//! after the greeting, which the guest gets with its kernel's command line.

mod filter;
mod guest;
mod initramfs;
mod kernel;
mod serial;
mod start;

use serde::{Deserialize, Serialize};

use super::isolation::Isolation;
use super::message::Hello;

pub(super) use guest::run;
pub use kernel::Kernel;
pub use start::QEMU;
pub(super) use start::start;

/// Last argument of a process that becomes a virtual machine, with the kernel as standard error.
pub(super) const START: &str = "start-vm";
/// Argument of the guest's process; an [`Order`] follows.
pub(super) const RUN: &str = "run-in-vm";

/// PCI slots of the devices with the rings and the frames.
const RINGS: u8 = 0x10;
const FRAMES: u8 = 0x11;

/// Memory of the guest in MiB, beside that of a process: kernel, initramfs, compiler.
const GUEST_MIB: u64 = 320;
/// Memory of QEMU itself in MiB: devices, and translated code without KVM.
const QEMU_MIB: u64 = 192;
/// Memory of a virtual machine in bytes, in addition to that of a process.
pub(super) const MEMORY: u64 = (GUEST_MIB + QEMU_MIB) << 20;

/// Parameters of the guest, which it needs before it can receive messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Order {
    hello: Hello,
    /// Isolation of QEMU.
    isolation: Isolation,
}

impl Order {
    /// Encodes an order in hexadecimal digits.
    fn encode(&self) -> String {
        let bytes = postcard::to_stdvec(self).expect("writing to memory does not fail");
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn decode(text: &str) -> Option<Self> {
        let digits = text.as_bytes().chunks(2);
        let byte = |digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok();
        postcard::from_bytes(&digits.map(byte).collect::<Option<Vec<_>>>()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::VERSION;
    use super::*;

    #[test]
    fn an_order_is_the_same_after_encoding() {
        let (places, queues, frames, frame_size) = (512, 17, 8704, 6144);
        let hello =
            Hello { version: VERSION, places, queues, frames, frame_size, spin_us: 50, memory: 1 };
        let order = Order { hello, isolation: Isolation::REQUIRED };
        assert_eq!(Order::decode(&order.encode()), Some(order));
        assert_eq!(Order::decode("0"), None);
        assert_eq!(Order::decode("xy"), None);
    }
}
