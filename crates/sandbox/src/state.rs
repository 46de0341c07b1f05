//! Run-time state shared by native code and helpers. Native code depends on the field offsets.

use std::mem::offset_of;
use std::ptr::{self, NonNull};

use p4_object::vm::Reading;

use crate::address::{
    MAPS, METADATA, METADATA_SIZE, PACKET, REGION_BITS, STACK, STACK_SIZE, VALUES,
};
use crate::digests::Waiting;
use crate::maps::Store;
use crate::outcome::FaultKind;
use crate::packet::PacketBuffer;

/// View of a map's values for native code.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct View {
    /// Address of the first value.
    pub(crate) values: *mut u8,
}

/// Run-time state shared by native code and helpers.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct State {
    #[cfg(test)]
    pub(crate) before: Margin,
    /// Address of the packet.
    pub(crate) packet: *mut u8,
    /// For accesses of 1, 2, 4 and 8 bytes: one more than the highest valid offset in the packet.
    pub(crate) limits: [u64; 4],
    /// Views of the map values.
    pub(crate) views: *const View,
    /// Remaining fuel.
    pub(crate) meter: i64,
    /// Current time in nanoseconds.
    pub(crate) now: u64,
    /// Number of lines printed by the program.
    pub(crate) printed: u64,
    /// Zero, or the number of a [`FaultKind`].
    pub(crate) fault: u32,
    /// Faulting instruction.
    pub(crate) fault_at: u32,
    /// Result of the last address lookup; null if the address is outside all regions.
    pub(crate) found: *mut u8,
    pub(crate) metadata: Metadata,
    pub(crate) stack: Stack,
    // The remaining fields are used only by helpers.
    pub(crate) length: u64,
    pub(crate) maps: *mut [Store],
    pub(crate) buffer: *mut PacketBuffer<'static>,
    /// Values published by the tenant's VM, by key index.
    pub(crate) vm: Vec<Option<Reading>>,
    /// Digests pending for the control plane.
    pub(crate) digests: Waiting,
    #[cfg(test)]
    pub(crate) after: Margin,
}

/// Guard bytes, verified by tests.
#[cfg(test)]
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Margin([u64; 512]);

#[cfg(test)]
impl Margin {
    pub(crate) const UNTOUCHED: Self = Self([0xa5a5_a5a5_a5a5_a5a5; 512]);
}

/// `struct standard_metadata`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C, align(8))]
pub(crate) struct Metadata {
    pub(crate) input_port: u32,
    pub(crate) packet_length: u32,
    pub(crate) output_action: u32,
    pub(crate) output_port: u32,
    pub(crate) clone: u8,
    pub(crate) unused: [u8; 3],
    pub(crate) clone_port: u32,
}

const _: () = {
    use p4_object::metadata as layout;
    assert!(
        size_of::<Metadata>() == METADATA_SIZE as usize && layout::SIZE == METADATA_SIZE as usize
    );
    assert!(offset_of!(Metadata, input_port) == layout::INPUT_PORT as usize);
    assert!(offset_of!(Metadata, packet_length) == layout::PACKET_LENGTH as usize);
    assert!(offset_of!(Metadata, output_action) == layout::OUTPUT_ACTION as usize);
    assert!(offset_of!(Metadata, output_port) == layout::OUTPUT_PORT as usize);
    assert!(offset_of!(Metadata, clone) == layout::CLONE as usize);
    assert!(offset_of!(Metadata, clone_port) == layout::CLONE_PORT as usize);
};

#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Stack(pub(crate) [u8; STACK_SIZE as usize]);

impl State {
    pub(crate) fn new(digests: Waiting) -> Box<Self> {
        Box::new(Self {
            #[cfg(test)]
            before: Margin::UNTOUCHED,
            packet: ptr::null_mut(),
            limits: [0; 4],
            views: ptr::null(),
            meter: 0,
            now: 0,
            printed: 0,
            fault: 0,
            fault_at: 0,
            found: ptr::null_mut(),
            metadata: Metadata::default(),
            stack: Stack([0; STACK_SIZE as usize]),
            length: 0,
            maps: ptr::slice_from_raw_parts_mut(NonNull::dangling().as_ptr(), 0),
            buffer: ptr::null_mut(),
            vm: Vec::new(),
            digests,
            #[cfg(test)]
            after: Margin::UNTOUCHED,
        })
    }

    /// Updates the address and the length of the packet.
    pub(crate) fn show(&mut self, packet: &PacketBuffer<'_>) {
        self.packet = packet.data();
        self.length = u64::from(packet.length);
        for (power, limit) in self.limits.iter_mut().enumerate() {
            *limit = (self.length + 1).saturating_sub(1 << power);
        }
    }

    /// Translates a program address. Returns `None` unless all `size` bytes are in one region and,
    /// for maps, in one value.
    pub(crate) fn resolve(&mut self, address: u64, size: u64) -> Option<NonNull<u8>> {
        let offset = address & ((1 << REGION_BITS) - 1);
        let fits = |length: u64| offset <= length && size <= length - offset;
        const PACKET_REGION: u64 = PACKET >> REGION_BITS;
        const METADATA_REGION: u64 = METADATA >> REGION_BITS;
        const STACK_REGION: u64 = STACK >> REGION_BITS;
        let base = match address >> REGION_BITS {
            PACKET_REGION => fits(self.length).then_some(self.packet),
            METADATA_REGION => fits(METADATA_SIZE).then_some((&raw mut self.metadata).cast::<u8>()),
            STACK_REGION => fits(STACK_SIZE).then_some((&raw mut self.stack).cast::<u8>()),
            region => {
                let map = region.checked_sub(VALUES >> REGION_BITS)?;
                return self.maps().get_mut(usize::try_from(map).ok()?)?.place(offset, size);
            }
        }?;
        // SAFETY: the offset is within the region that starts at `base`, or at its end.
        NonNull::new(unsafe { base.add(offset as usize) })
    }

    /// Like [`State::resolve`], but an invalid address is a fault.
    pub(crate) fn reach(&mut self, address: u64, size: u64) -> Result<NonNull<u8>, FaultKind> {
        self.resolve(address, size).ok_or(FaultKind::Bounds)
    }

    /// Map of a handle.
    pub(crate) fn map(&mut self, handle: u64) -> Result<&mut Store, FaultKind> {
        let map = usize::try_from(handle.wrapping_sub(MAPS)).ok();
        map.and_then(|map| self.maps().get_mut(map)).ok_or(FaultKind::Map)
    }

    fn maps(&mut self) -> &mut [Store] {
        // SAFETY: the instance does not move its maps and does not lend them out while a program
        // runs. The returned borrow ends with the borrow of the state.
        unsafe { &mut *self.maps }
    }

    /// Deducts `cost` from the meter.
    pub(crate) fn pay(&mut self, cost: u64) -> Result<(), FaultKind> {
        let left = i64::try_from(cost).ok().and_then(|cost| self.meter.checked_sub(cost));
        match left.filter(|left| *left >= 0) {
            Some(left) => {
                self.meter = left;
                Ok(())
            }
            None => Err(FaultKind::Meter),
        }
    }
}
