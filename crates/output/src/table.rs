//! The commands and the types of their output.

use model::topology::Topology;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use crate::app::{ApplicationStatus, Decision, Explanation, RemovedApplication};
use crate::bench::{BenchRow, DemoOutcome};
use crate::capture::CapturedLink;
use crate::dataplane::{
    CheckedFile, DataplaneChanges, DataplaneState, DetachedDataplane, ServiceFunction, TracedPacket,
};
use crate::doctor::Finding;
use crate::events::EventHistory;
use crate::import::ImportedLab;
use crate::lab::{
    CheckedTopology, CollectedLab, Drawing, LabDown, LabSummary, LabUp, StartedDaemon,
};
use crate::link::{AddedTraffic, ChangedEmulatedLink, ChangedLink, StoppedTraffic};
use crate::links::EmulatedDirection;
use crate::metrics::{Metrics, MetricsServer};
use crate::network::NetworkNode;
use crate::p4;
use crate::replay::ReplayedLink;
use crate::test::TestReport;
use crate::top::MeasuredDirection;
use crate::xsk::{CheckedTenants, XskAttached, XskClient, XskDetached, XskState, XskTraced};

/// Output of a command in [`TABLE`].
pub trait Printed: Serialize + JsonSchema {}

/// Number of values that a command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prints {
    /// A single value.
    One,
    /// A stream of values, each as it arises.
    Stream,
    /// A single value, or a stream with this option.
    StreamWith(&'static str),
}

/// A command and a type that it prints. A command that prints one of several types has several
/// rows.
#[derive(Debug)]
pub struct Command {
    /// Words of the command, without `kaido`.
    pub name: &'static str,
    /// Number of values.
    pub prints: Prints,
    pub(crate) schema: fn(&mut SchemaGenerator) -> Schema,
}

impl Command {
    /// Returns the rows of the command at the start of a command line. Options before the command
    /// are skipped.
    pub fn of<'a>(words: &[&str]) -> impl Iterator<Item = &'a Self> {
        let mut words = words.iter().filter(|word| !word.starts_with('-'));
        let starts: Vec<String> = (1..=3)
            .scan(String::new(), |start, _| {
                start.push_str(words.next()?);
                let all = start.clone();
                start.push(' ');
                Some(all)
            })
            .collect();
        let longest = starts.into_iter().rev().find(|one| TABLE.iter().any(|row| row.name == one));
        TABLE.iter().filter(move |row| Some(row.name) == longest.as_deref())
    }
}

macro_rules! prints {
    () => {
        Prints::One
    };
    (stream) => {
        Prints::Stream
    };
    (stream $option:literal) => {
        Prints::StreamWith($option)
    };
}

macro_rules! table {
    ($($type:ty: $($name:literal $(($($prints:tt)+))?),+;)+) => {
        $(impl Printed for $type {})+

        /// All commands with JSON output.
        pub const TABLE: &[Command] = &[$($(Command {
            name: $name,
            prints: prints!($($($prints)+)?),
            schema: SchemaGenerator::subschema_for::<$type>,
        }),+),+];
    };
}

table! {
    Vec<ApplicationStatus>: "app ls";
    ApplicationStatus: "app add", "app show";
    Explanation: "app why";
    RemovedApplication: "app rm";
    Decision: "app watch" (stream);

    Vec<BenchRow>: "bench";
    DemoOutcome: "demo";
    Vec<Finding>: "doctor";

    CheckedFile: "dataplane check";
    DataplaneChanges: "dataplane apply", "dataplane plan", "function add", "function rm";
    DataplaneState: "dataplane show", "dataplane top" (stream);
    TracedPacket: "dataplane trace" (stream), "function trace" (stream);
    DetachedDataplane: "dataplane detach";
    Vec<ServiceFunction>: "function ls";

    CheckedTopology<'_>: "lab check";
    LabUp: "lab up";
    LabDown: "lab down";
    Vec<LabSummary>: "lab ls";
    Vec<CollectedLab>: "lab gc";
    StartedDaemon: "lab start";
    TestReport: "lab test";
    Topology: "lab graph";
    Drawing: "lab graph";
    ImportedLab: "lab import";
    ChangedLink: "lab link";
    ChangedEmulatedLink: "lab link";
    Vec<EmulatedDirection>: "lab links";
    Vec<MeasuredDirection>: "lab top";
    Metrics: "lab metrics";
    MetricsServer: "lab metrics";
    AddedTraffic: "lab traffic";
    StoppedTraffic: "lab traffic";
    EventHistory: "lab events";
    CapturedLink: "lab capture";
    ReplayedLink: "lab replay";

    Vec<NetworkNode>: "network" (stream "--watch");

    p4::CheckedProgram: "p4 check";
    p4::P4Info: "p4 info";
    p4::CompiledProgram: "p4 compile";
    p4::ExplainedProgram: "p4 explain";
    Vec<p4::P4TestOutcome>: "p4 test";
    p4::RunningProgram: "p4 run" (stream);
    p4::EndedProgram: "p4 run" (stream);
    Vec<p4::TableEntry>: "p4 table ls";
    p4::WrittenEntry: "p4 table add", "p4 table modify", "p4 table delete";
    p4::DefaultAction: "p4 table default";
    Vec<p4::CounterCell>: "p4 counter ls";
    p4::SetCounter: "p4 counter set";
    Vec<p4::MeterCell>: "p4 meter ls";
    p4::SetMeter: "p4 meter set", "p4 meter reset";
    p4::DigestValue: "p4 digest" (stream);
    p4::Publishing: "p4 publish";
    p4::Published: "p4 published" (stream "--live");

    Vec<XskClient>: "xsk ls";
    XskState: "xsk stats", "xsk top" (stream);
    XskTraced: "xsk trace" (stream);
    XskAttached: "xsk attach";
    XskDetached: "xsk detach";
    CheckedTenants: "xsk check";
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &[&str]) -> Vec<&'static str> {
        Command::of(words).map(|row| row.name).collect()
    }

    #[test]
    fn the_longest_name_is_the_command() {
        assert_eq!(names(&["lab", "links", "--lab", "x"]), ["lab links"]);
        assert_eq!(names(&["--json", "lab", "link", "a-b", "down"]), ["lab link", "lab link"]);
        assert_eq!(names(&["p4", "table", "ls"]), ["p4 table ls"]);
        assert_eq!(names(&["network"]), ["network"]);
        assert_eq!(names(&["lab", "exec", "r1"]), [""; 0]);
        assert_eq!(names(&[]), [""; 0]);
    }

    #[test]
    fn rows_of_a_command_print_the_same_number_of_values() {
        for row in TABLE {
            assert!(TABLE.iter().all(|one| one.name != row.name || one.prints == row.prints));
        }
    }
}
