//! `kaido p4`: tenants' programs.

mod program;
mod run;
mod table;
mod vm;

pub use program::{
    CheckedProgram, CodeLine, CompiledProgram, Diagnostic, ExplainedProgram, Label, Location,
    MapKind, ObjectDigest, ObjectMap, P4Info, P4TestFailure, P4TestOutcome, Related, Severity,
};
pub use run::{EndedProgram, Packets, RunningProgram};
pub use table::{
    CounterCell, DefaultAction, DigestData, DigestValue, Done, MeterCell, SetCounter, SetMeter,
    TableEntry, WrittenEntry,
};
pub use vm::{PublicationState, Published, PublishedKey, Publishing};
