//! What runs a program: the trait that a device is, and what it is told.

use std::ops::Range;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::data::Data;
use crate::pipeline::Pipeline;
use crate::values::Bits;

/// Something that runs a P4 program. Its methods are called from one thread, and may take their
/// time: nobody else waits meanwhile but those who ask for the same device.
pub trait Device: Send + 'static {
    /// A program that is ready to take the place of the one at work.
    type Prepared: Send + 'static;

    /// Makes everything ready that can go wrong, and changes nothing for packets.
    ///
    /// # Errors
    ///
    /// If `program` is none of this device's, or not the one that `pipeline` describes.
    fn prepare(
        &mut self,
        pipeline: &Pipeline,
        program: &[u8],
    ) -> Result<(Self::Prepared, Initial), Refused>;

    /// Puts a program to work between two packets, with `changes` made to it already. If `carry`,
    /// counters and registers that both programs have keep their values.
    ///
    /// # Errors
    ///
    /// The old program is still at work then, as it was.
    fn commit(
        &mut self,
        prepared: Self::Prepared,
        changes: &[Change],
        carry: bool,
    ) -> Result<(), Refused>;

    /// Makes changes in their order, and answers each. If `together`, a packet meets all of them or
    /// none, and one refusal means that none is made; those behind it may rest on it, and need no look.
    /// Otherwise each is for itself, and no two are about the same thing.
    fn apply(&mut self, changes: &[Change], together: bool) -> Vec<Result<(), Refused>>;

    /// What cells of a counter have counted.
    ///
    /// # Errors
    ///
    /// If the device cannot tell.
    fn counters(&mut self, counter: u32, cells: Range<u64>) -> Result<Vec<Count>, Refused>;

    /// What the counters of a table's entries have counted, in the same order.
    ///
    /// # Errors
    ///
    /// If the device cannot tell.
    fn direct_counters(&mut self, table: u32, of: &[Target]) -> Result<Vec<Count>, Refused>;

    /// What cells of a register hold.
    ///
    /// # Errors
    ///
    /// If the device cannot tell.
    fn registers(&mut self, register: u32, cells: Range<u64>) -> Result<Vec<Data>, Refused>;

    /// Takes a packet of the control plane's.
    ///
    /// # Errors
    ///
    /// If it goes nowhere.
    fn send(&mut self, packet: Packet) -> Result<(), Refused>;

    /// Where packets and digests for the control plane come from; asked for once, at the start.
    fn events(&mut self) -> mpsc::Receiver<Event>;
}

/// Why a device does not do something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Not this program, or not with these values.
    #[error("{0}")]
    Invalid(String),
    /// There is no room left.
    #[error("no room: {0}")]
    Full(String),
    /// It cannot do this at all.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// It is not at work.
    #[error("not at work: {0}")]
    Away(String),
    /// Another change of the same batch was refused.
    #[error("not done, since another part of the batch was refused")]
    WithOthers,
}

/// What a program's tables have from the start.
#[derive(Debug, Clone, Default)]
pub struct Initial {
    /// Entries, and whether they are constant.
    pub entries: Vec<(Entry, bool)>,
    /// Default actions by table. What p4info says of them holds where this says nothing.
    pub defaults: Vec<(u32, Call)>,
}

/// What a field of a packet is compared with. Values are as wide as the field.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Match {
    /// This value.
    Exact(Bits),
    /// These first bits; any value if there are none. The others of the value are zero.
    Lpm {
        /// The value.
        value: Bits,
        /// How many bits count.
        length: u32,
    },
    /// These bits; any value if the mask is zero. The others of the value are zero.
    Ternary {
        /// The value.
        value: Bits,
        /// The bits that count.
        mask: Bits,
    },
    /// From the first to the second, both included.
    Range {
        /// The lowest value.
        low: Bits,
        /// The highest.
        high: Bits,
    },
    /// This value, or any.
    Optional(Option<Bits>),
}

/// By what an entry is known in its table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// One for each field, in p4info's order.
    pub matches: Vec<Match>,
    /// The highest one wins; 0 if the table needs none.
    pub priority: i32,
}

/// An action and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The action's id.
    pub action: u32,
    /// In p4info's order.
    pub arguments: Vec<Bits>,
}

/// A table's entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The table's id.
    pub table: u32,
    /// Which packets.
    pub key: Arc<Key>,
    /// What to do with them.
    pub call: Call,
    /// Its own counter and meter.
    pub direct: Direct,
}

/// The counter and the meter of an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Direct {
    /// What its counter is set to; without, a new one begins at zero and an old one stays.
    pub count: Option<Count>,
    /// What its meter is set to; without, everything is green.
    pub meter: Option<Meter>,
}

/// One entry of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The one of this key.
    Entry(Arc<Key>),
    /// What packets get that none matches.
    Default,
}

/// What a counter has counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// RFC 2698, or RFC 2697 if p4info says so: rates in units a second, bursts in units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meter {
    /// Committed rate.
    pub cir: u64,
    /// Committed burst.
    pub cburst: u64,
    /// Peak rate.
    pub pir: u64,
    /// Peak burst.
    pub pburst: u64,
    /// Excess burst of RFC 2697.
    pub eburst: u64,
}

/// One change. All ids are of the program at work, all values fit it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A new entry; the table has none of this key.
    Insert(Entry),
    /// The entry of this key becomes this one.
    Modify(Entry),
    /// The entry of this key goes.
    Delete {
        /// The table.
        table: u32,
        /// The entry.
        key: Arc<Key>,
    },
    /// What packets get that no entry matches.
    Default {
        /// The table.
        table: u32,
        /// Without one, what the program says.
        call: Option<Call>,
        /// Its own counter and meter.
        direct: Direct,
    },
    /// Sets an entry's counter.
    DirectCounter {
        /// The table.
        table: u32,
        /// The entry.
        of: Target,
        /// To this.
        count: Count,
    },
    /// Sets an entry's meter.
    DirectMeter {
        /// The table.
        table: u32,
        /// The entry.
        of: Target,
        /// To this; without, everything is green.
        meter: Option<Meter>,
    },
    /// Sets cells of a counter.
    Counter {
        /// The counter.
        id: u32,
        /// The cell; without, all.
        at: Option<u64>,
        /// To this.
        count: Count,
    },
    /// Sets cells of a meter.
    Meter {
        /// The meter.
        id: u32,
        /// The cell; without, all.
        at: Option<u64>,
        /// To this; without, everything is green.
        meter: Option<Meter>,
    },
    /// Sets cells of a register.
    Register {
        /// The register.
        id: u32,
        /// The cell; without, all.
        at: Option<u64>,
        /// To this.
        data: Data,
    },
    /// The members of a value set.
    ValueSet {
        /// The set.
        id: u32,
        /// All of them, each with one match for each field.
        members: Vec<Vec<Match>>,
    },
}

/// A packet from or to the control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// All of it.
    pub payload: Vec<u8>,
    /// What goes along with it: ids and values, in p4info's order.
    pub metadata: Vec<(u32, Bits)>,
}

/// What a device has to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A packet for the control plane.
    Packet(Packet),
    /// What one call of a digest was made with.
    Digest {
        /// The digest.
        id: u32,
        /// The value.
        data: Data,
    },
}
