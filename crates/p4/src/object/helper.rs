//! Helpers: what a program calls of whoever runs it, by numbers. Up to 11 they are those of p4c's uBPF run
//! time; those from 20 on are ours.

/// `void *map_lookup(map, void *key)`: a value's address, or 0.
pub const MAP_LOOKUP: i32 = 1;
/// `int map_update(map, void *key, void *value)`
pub const MAP_UPDATE: i32 = 2;
/// `int map_delete(map, void *key)`
pub const MAP_DELETE: i32 = 3;
/// `int map_add(map, void *value)`
pub const MAP_ADD: i32 = 4;
/// `uint64_t time_get_ns()`: the time since the machine began.
pub const TIME_GET_NS: i32 = 5;
/// `uint32_t hash(void *data, uint64_t length, uint32_t seed)`: lookup3.
pub const HASH: i32 = 6;
/// `void printf(char *format, ...)`
pub const PRINTF: i32 = 7;
/// `void *adjust_head(void *context, int32_t by)`: puts `by` zeros in front of the packet, or takes `-by`
/// bytes off its front. Where it begins then; too little room is a fault.
pub const ADJUST_HEAD: i32 = 8;
/// `void *packet_data(void *context)`: where the packet begins.
pub const PACKET_DATA: i32 = 9;
/// `uint32_t truncate(void *context, int32_t length)`: cuts the packet to so many bytes, and says how many
/// that are less. A negative length cuts nothing.
pub const TRUNCATE: i32 = 11;
/// `uint64_t get_vm_info(uint64_t key, uint64_t part)`: a part of a value that the tenant's VM publishes
/// ([`crate::vm::part`]). The key is a place in [`Object::keys`](super::Object::keys).
pub const GET_VM_INFO: i32 = 20;
/// `uint32_t meter(void *cell, uint64_t units, uint32_t colour)`: the colour of a packet, by a cell of
/// [`crate::cells::MeterCell`].
pub const METER: i32 = 30;
/// `void digest(uint32_t id, void *data, uint32_t length)`: a value for the control plane, of one of the
/// object's digests.
pub const DIGEST: i32 = 31;

/// What a program may call: numbers and names.
pub const HELPERS: [(i32, &str); 13] = [
    (MAP_LOOKUP, "map_lookup"),
    (MAP_UPDATE, "map_update"),
    (MAP_DELETE, "map_delete"),
    (MAP_ADD, "map_add"),
    (TIME_GET_NS, "time_get_ns"),
    (HASH, "hash"),
    (PRINTF, "printf"),
    (ADJUST_HEAD, "adjust_head"),
    (PACKET_DATA, "packet_data"),
    (TRUNCATE, "truncate"),
    (GET_VM_INFO, "get_vm_info"),
    (METER, "meter"),
    (DIGEST, "digest"),
];
