//! The interface between the service and a device that runs programs.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::data::Data;
use crate::pipeline::Pipeline;
pub use crate::refused::Refused;
use crate::values::Bits;
pub use crate::values::Call;

/// A device that runs a P4 program. All methods are called from one thread and may block: only
/// requests to the same device wait.
pub trait Device: Send + 'static {
    /// A program that is ready to replace the running one.
    type Prepared: Send + 'static;

    /// Performs all steps that can fail, without any effect on packets.
    ///
    /// # Errors
    ///
    /// Fails if `program` is not a program for this device, or not the one that `pipeline`
    /// describes.
    fn prepare(
        &mut self,
        pipeline: &Pipeline,
        program: &[u8],
    ) -> Result<(Self::Prepared, Initial), Refused>;

    /// Replaces the running program between two packets, with `changes` already applied. If `carry`
    /// is set, counters and registers that both programs have keep their values.
    ///
    /// # Errors
    ///
    /// On failure, the old program continues to run unchanged.
    fn commit(
        &mut self,
        prepared: Self::Prepared,
        changes: &[Change],
        carry: bool,
    ) -> Result<(), Refused>;

    /// Applies changes in order and returns one result for each. If `together` is set, no packet
    /// sees only a part of them, and one failure rolls all of them back; changes after the failed
    /// one need not be checked, because they may depend on it. Otherwise the changes are
    /// independent, and no two affect the same object.
    fn apply(&mut self, changes: &[Change], together: bool) -> Vec<Result<(), Refused>>;

    /// Reads cells of a counter.
    ///
    /// # Errors
    ///
    /// Fails if the device cannot read them.
    fn counters(&mut self, counter: u32, cells: Range<u64>) -> Result<Vec<Count>, Refused>;

    /// Reads the direct counters of table entries, in the same order.
    ///
    /// # Errors
    ///
    /// Fails if the device cannot read them.
    fn direct_counters(&mut self, table: u32, of: &[Target]) -> Result<Vec<Count>, Refused>;

    /// Reads cells of a register.
    ///
    /// # Errors
    ///
    /// Fails if the device cannot read them.
    fn registers(&mut self, register: u32, cells: Range<u64>) -> Result<Vec<Data>, Refused>;

    /// Sends a packet-out.
    ///
    /// # Errors
    ///
    /// Fails if the packet cannot be sent.
    fn send(&mut self, packet: Packet) -> Result<(), Refused>;

    /// Receiver of packet-ins and digests; called once, at the start.
    fn events(&mut self) -> mpsc::Receiver<Event>;
}

/// Initial contents of a program's tables.
#[derive(Debug, Clone, Default)]
pub struct Initial {
    /// Entries, each with a flag that is true for `const` entries.
    pub entries: Vec<(Entry, bool)>,
    /// Default actions by table. A table without one has the default action of p4info.
    pub defaults: Vec<(u32, Call)>,
    /// Maximum number of entries that the program has room for, by table. A table without one has
    /// room for as many as p4info says.
    pub room: BTreeMap<u32, u32>,
}

/// Match on a field. Values have the width of the field.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Match {
    /// Exact match.
    Exact(Bits),
    /// Longest-prefix match; a length of 0 matches any value. Bits after the prefix are zero.
    Lpm {
        /// Prefix.
        value: Bits,
        /// Prefix length in bits.
        length: u32,
    },
    /// Ternary match; a mask of zero matches any value. Bits outside the mask are zero.
    Ternary {
        /// Value.
        value: Bits,
        /// Mask.
        mask: Bits,
    },
    /// Range match, inclusive.
    Range {
        /// Lowest value.
        low: Bits,
        /// Highest value.
        high: Bits,
    },
    /// Exact match; `None` matches any value.
    Optional(Option<Bits>),
}

/// Key of a table entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// One match for each field, in p4info order.
    pub matches: Vec<Match>,
    /// Priority, the highest wins; 0 if the table does not use priorities.
    pub priority: i32,
}

/// A table entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Table id.
    pub table: u32,
    /// Match key.
    pub key: Arc<Key>,
    /// Action and arguments.
    pub call: Call,
    /// Direct resources.
    pub direct: Direct,
}

/// Direct resources of an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Direct {
    /// New counter value; if `None`, a new counter starts at zero and an existing one is unchanged.
    pub count: Option<Count>,
    /// Meter configuration; if `None`, all packets are green.
    pub meter: Option<Meter>,
}

/// An entry of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The entry with this key.
    Entry(Arc<Key>),
    /// The default entry.
    Default,
}

/// Value of a counter cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of packets.
    pub packets: u64,
    /// Number of bytes.
    pub bytes: u64,
}

/// Meter configuration of RFC 2698, or of RFC 2697 if p4info says so: rates in units per second,
/// bursts in units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meter {
    /// Committed information rate.
    pub cir: u64,
    /// Committed burst size.
    pub cburst: u64,
    /// Peak information rate.
    pub pir: u64,
    /// Peak burst size.
    pub pburst: u64,
    /// Excess burst size (RFC 2697).
    pub eburst: u64,
}

/// A validated change: ids exist in the running program, and values have the correct types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Inserts an entry; the table has no entry with this key.
    Insert(Entry),
    /// Replaces the entry with this key.
    Modify(Entry),
    /// Deletes an entry.
    Delete {
        /// Table id.
        table: u32,
        /// Key of the entry.
        key: Arc<Key>,
    },
    /// Sets the default action.
    Default {
        /// Table id.
        table: u32,
        /// New default action; `None` restores the initial one.
        call: Option<Call>,
        /// Direct resources of the default entry.
        direct: Direct,
    },
    /// Sets a direct counter.
    DirectCounter {
        /// Table id.
        table: u32,
        /// Entry of the counter.
        of: Target,
        /// New value.
        count: Count,
    },
    /// Sets a direct meter.
    DirectMeter {
        /// Table id.
        table: u32,
        /// Entry of the meter.
        of: Target,
        /// New configuration; `None` for all green.
        meter: Option<Meter>,
    },
    /// Sets counter cells.
    Counter {
        /// Counter id.
        id: u32,
        /// Cell index; `None` for all cells.
        at: Option<u64>,
        /// New value.
        count: Count,
    },
    /// Sets meter cells.
    Meter {
        /// Meter id.
        id: u32,
        /// Cell index; `None` for all cells.
        at: Option<u64>,
        /// New configuration; `None` for all green.
        meter: Option<Meter>,
    },
    /// Sets register cells.
    Register {
        /// Register id.
        id: u32,
        /// Cell index; `None` for all cells.
        at: Option<u64>,
        /// New value.
        data: Data,
    },
    /// Sets the members of a value set.
    ValueSet {
        /// Value set id.
        id: u32,
        /// All members, each with one match for each field.
        members: Vec<Vec<Match>>,
    },
}

/// A packet-in or packet-out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// The complete packet.
    pub payload: Vec<u8>,
    /// Packet metadata: ids and values, in p4info order.
    pub metadata: Vec<(u32, Bits)>,
}

/// Event of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A packet-in.
    Packet(Packet),
    /// One digest message.
    Digest {
        /// Digest id.
        id: u32,
        /// Digest value.
        data: Data,
    },
}
