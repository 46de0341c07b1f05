//! Helpers: functions of the execution environment that a program calls by number. Numbers up to 11
//! are those of p4c's uBPF run time; numbers from 20 on are Kaido's.

/// `void *map_lookup(map, void *key)`: returns the address of the value, or 0.
pub const MAP_LOOKUP: i32 = 1;
/// `int map_update(map, void *key, void *value)`
pub const MAP_UPDATE: i32 = 2;
/// `int map_delete(map, void *key)`
pub const MAP_DELETE: i32 = 3;
/// `int map_add(map, void *value)`
pub const MAP_ADD: i32 = 4;
/// `uint64_t time_get_ns()`: returns the time since the machine started.
pub const TIME_GET_NS: i32 = 5;
/// `uint32_t hash(void *data, uint64_t length, uint32_t seed)`: lookup3.
pub const HASH: i32 = 6;
/// `void printf(char *format, ...)`
pub const PRINTF: i32 = 7;
/// `void *adjust_head(void *context, int32_t by)`: inserts `by` zero bytes at the front of the
/// packet, or removes `-by` bytes from it. Returns the new start of the packet. It faults if there
/// is not enough room.
pub const ADJUST_HEAD: i32 = 8;
/// `void *packet_data(void *context)`: returns the start of the packet.
pub const PACKET_DATA: i32 = 9;
/// `uint32_t truncate(void *context, int32_t length)`: truncates the packet to `length` bytes and
/// returns the number of bytes removed. A negative length removes nothing.
pub const TRUNCATE: i32 = 11;
/// `uint64_t get_vm_info(uint64_t key, uint64_t part)`: returns a part of a value that the tenant's
/// VM publishes ([`crate::vm::part`]). The key is an index into
/// [`Object::keys`](super::Object::keys).
pub const GET_VM_INFO: i32 = 20;
/// `uint32_t meter(void *cell, uint64_t units, uint32_t color)`: meters a packet with a cell of
/// [`crate::cells::MeterCell`] and returns its color.
pub const METER: i32 = 30;
/// `void digest(uint32_t id, void *data, uint32_t length)`: sends one of the object's digests to
/// the control plane.
pub const DIGEST: i32 = 31;

/// Helpers that a program may call: numbers and names.
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
