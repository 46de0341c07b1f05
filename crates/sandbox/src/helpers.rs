//! Helper functions. Addresses passed by a program are subject to the same bounds checks as its own
//! accesses. Work beyond a few instructions is charged to the meter.

use std::mem::MaybeUninit;

use p4_object::cells::{Color, MeterCell};
use p4_object::vm;
use p4_object::{MAX_DIGEST, MAX_KEY, helper, lookup3_of};

use crate::address::PACKET;
use crate::maps::MapError;
use crate::outcome::FaultKind;
use crate::state::State;

/// Result of a helper, or the limit that it exceeded.
type Answer = Result<u64, FaultKind>;

const _: () = assert!(MAX_DIGEST <= MAX_KEY);

/// Error codes of map operations as the program sees them: negated Linux errno values.
mod errno {
    pub(super) const NO_ENTRY: u64 = -2_i64 as u64;
    pub(super) const FULL: u64 = -7_i64 as u64;
    pub(super) const INVALID: u64 = -22_i64 as u64;
    pub(super) const NOT_SUPPORTED: u64 = -95_i64 as u64;
}

/// Calls a helper. The verifier has checked its number.
pub(crate) fn call(state: &mut State, number: i32, arguments: [u64; 5]) -> Answer {
    let [first, second, third, ..] = arguments;
    match number {
        helper::MAP_LOOKUP => map_lookup(state, first, second),
        helper::MAP_UPDATE => map_update(state, first, second, third),
        helper::MAP_DELETE => map_delete(state, first, second),
        helper::MAP_ADD => map_add(state, first),
        helper::TIME_GET_NS => Ok(state.now),
        helper::HASH => hash(state, first, second, third),
        helper::PRINTF => {
            state.printed += 1;
            Ok(0)
        }
        helper::ADJUST_HEAD => adjust_head(state, second),
        helper::PACKET_DATA => Ok(PACKET),
        helper::TRUNCATE => truncate(state, second),
        helper::GET_VM_INFO => Ok(get_vm_info(state, first, second)),
        helper::METER => meter(state, first, second, third),
        helper::DIGEST => digest(state, first, second, third),
        _ => Err(FaultKind::Bounds),
    }
}

/// Private copy of a key or a digest. Packet memory is shared and may change at any time. A key
/// that changed between hashing and comparison would be a key that no map contains.
struct Copied([MaybeUninit<u8>; MAX_KEY as usize]);

impl Copied {
    fn new() -> Self {
        Self([MaybeUninit::uninit(); MAX_KEY as usize])
    }

    /// Copies `size` bytes from a program address. The buffer has room for the longest key and
    /// digest.
    fn read(&mut self, state: &mut State, address: u64, size: usize) -> Result<&[u8], FaultKind> {
        let from = state.reach(address, size as u64)?;
        assert!(size <= self.0.len(), "verified: it has at most {MAX_KEY} bytes");
        let to = self.0.as_mut_ptr().cast::<u8>();
        // SAFETY: `reach` has checked that `size` bytes are readable, and the buffer has room for
        // them. The slice covers only bytes that have just been written.
        unsafe {
            match size {
                // Common key sizes, without a call to memcpy.
                4 => to.copy_from_nonoverlapping(from.as_ptr(), 4),
                8 => to.copy_from_nonoverlapping(from.as_ptr(), 8),
                16 => to.copy_from_nonoverlapping(from.as_ptr(), 16),
                _ => to.copy_from_nonoverlapping(from.as_ptr(), size),
            }
            Ok(std::slice::from_raw_parts(to, size))
        }
    }
}

/// `void *map_lookup(map, key)`: address of the value, or 0.
fn map_lookup(state: &mut State, map: u64, key: u64) -> Answer {
    let index = map.wrapping_sub(crate::address::MAPS) as usize;
    let store = state.map(map)?;
    let (size, cost) = (store.key_size, store.cost());
    state.pay(cost)?;
    let mut copy = Copied::new();
    let key = copy.read(state, key, size)?;
    let store = state.map(map)?;
    Ok(match store.find(key) {
        Some(entry) => crate::address::values_of(index) + store.values.offset(entry),
        None => 0,
    })
}

/// `int map_update(map, key, value)`: 0, or a negative error code.
fn map_update(state: &mut State, map: u64, key: u64, value: u64) -> Answer {
    let store = state.map(map)?;
    let (size, value_size, cost) = (store.key_size, store.values.size(), store.cost());
    state.pay(cost + value_size as u64 / 8)?;
    let mut copy = Copied::new();
    let key = copy.read(state, key, size)?;
    let value = state.reach(value, value_size as u64)?;
    let store = state.map(map)?;
    Ok(match store.make(key) {
        Ok(entry) => {
            // SAFETY: `reach` has checked that a whole value is readable.
            unsafe { store.values.copy(entry, value.as_ptr()) };
            0
        }
        Err(why) => number(why),
    })
}

/// `int map_delete(map, key)`: 0, or a negative error code. The value of a deleted entry stays
/// accessible, and may by then belong to another entry.
fn map_delete(state: &mut State, map: u64, key: u64) -> Answer {
    let store = state.map(map)?;
    let (size, cost) = (store.key_size, store.cost());
    state.pay(cost)?;
    let mut copy = Copied::new();
    let key = copy.read(state, key, size)?;
    Ok(state.map(map)?.remove(key).map_or_else(number, |()| 0))
}

/// `int map_add(map, value)` is for maps without keys (counting Bloom filters in P4rt-OVS). No
/// such maps exist here.
fn map_add(state: &mut State, map: u64) -> Answer {
    state.map(map)?;
    Ok(errno::NOT_SUPPORTED)
}

fn number(why: MapError) -> u64 {
    match why {
        MapError::Full(_) => errno::FULL,
        MapError::Absent => errno::NO_ENTRY,
        MapError::Kind => errno::NOT_SUPPORTED,
        _ => errno::INVALID,
    }
}

/// `uint32_t hash(bytes, length, seed)`: lookup3. The seed is ignored: programs of p4c do not pass
/// one.
fn hash(state: &mut State, bytes: u64, length: u64, _seed: u64) -> Answer {
    state.pay(length / 4)?;
    let bytes = state.reach(bytes, length)?;
    // Packet memory is shared and may be written concurrently, so no reference to it is created.
    let read = |at: usize, part: &mut [u8]| {
        // SAFETY: `reach` has checked all of the bytes, and each part ends within the length.
        unsafe { bytes.add(at).as_ptr().copy_to(part.as_mut_ptr(), part.len()) };
    };
    Ok(u64::from(lookup3_of(length as usize, read)))
}

/// `void *adjust_head(context, int32_t by)`: prepends `by` zero bytes (encapsulation), or removes
/// the first `-by` bytes (decapsulation), as in the runtimes of p4c and P4rt-OVS. Returns the
/// address of the packet, which is unchanged; offsets from it now refer to the new start.
/// Insufficient room is a fault, because programs of p4c do not check the result.
fn adjust_head(state: &mut State, by: u64) -> Answer {
    // SAFETY: the instance sets the buffer before a run, and it is not otherwise used during the
    // run.
    let buffer = unsafe { &mut *state.buffer };
    if !buffer.adjust_head(by as u32 as i32) {
        return Err(FaultKind::Room);
    }
    state.show(buffer);
    // The whole packet may have moved.
    state.pay(state.length / 64)?;
    Ok(PACKET)
}

/// `uint32_t truncate(context, int32_t length)`: truncates the packet and returns the number of
/// bytes removed. A negative length removes none.
fn truncate(state: &mut State, length: u64) -> Answer {
    let Ok(length) = u32::try_from(length as u32 as i32) else { return Ok(0) };
    // SAFETY: as in `adjust_head`.
    let buffer = unsafe { &mut *state.buffer };
    let cut = buffer.truncate(length);
    state.show(buffer);
    Ok(u64::from(cut))
}

/// `uint64_t get_vm_info(uint64_t key, uint64_t part)`: one part (`p4_object::vm::part`) of the value that
/// the tenant's VM publishes under a key. An unknown key reads as unpublished.
fn get_vm_info(state: &State, key: u64, part: u64) -> u64 {
    let reading = usize::try_from(key).ok().and_then(|key| state.vm.get(key)).copied().flatten();
    vm::get(reading, part, state.now)
}

/// Cost of updating two token buckets, in instructions.
const METER_COST: u64 = 16;

/// `uint32_t meter(void *cell, uint64_t units, uint32_t color)`: executes a meter cell for a
/// packet of `units` units and an initial color; consumes tokens and returns the packet's color.
fn meter(state: &mut State, cell: u64, units: u64, color: u64) -> Answer {
    state.pay(METER_COST)?;
    let place =
        state.reach(cell, u64::from(MeterCell::SIZE))?.cast::<[u8; MeterCell::SIZE as usize]>();
    // SAFETY: `reach` has checked the size of a cell, and there is no reference to these bytes.
    let bytes = unsafe { place.read_unaligned() };
    let Some(mut meter) = MeterCell::from_bytes(&bytes) else { return Err(FaultKind::Bounds) };
    let color = meter.execute(state.now, units, Color::from_number(color & 0xffff_ffff));
    // SAFETY: as above.
    unsafe { place.write_unaligned(meter.to_bytes()) };
    Ok(color as u64)
}

/// `void digest(uint32_t id, void *data, uint32_t length)`: emits a digest for the control plane.
/// The id has to be one of the program's digests, and the length its declared size.
fn digest(state: &mut State, id: u64, data: u64, length: u64) -> Answer {
    let (id, length) = (id & 0xffff_ffff, length & 0xffff_ffff);
    if state.digests.size(id).is_none_or(|size| u64::from(size) != length) {
        return Err(FaultKind::Bounds);
    }
    state.pay(8 + length / 8)?;
    let mut copy = Copied::new();
    let data = copy.read(state, data, length as usize)?;
    state.digests.push(id as u32, data);
    Ok(0)
}
