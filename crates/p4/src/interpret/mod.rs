//! A reference interpreter: it executes the checked program directly and slowly, and compiled code
//! is compared with it.
//!
//! Behavior that the language leaves undefined is defined here: variables start as zeros; an
//! out-of-bounds stack element reads as zeros, and writes to it are ignored; the fields of a header
//! that becomes invalid are zeroed.

mod cells;
mod expressions;
mod externs;
mod packet;
mod parsers;
mod places;
mod statements;
pub mod tables;
mod vm;

use std::collections::HashMap;

use num_bigint::BigInt;

use crate::ir::{BlockBody, Elaborated, NotElaborated, Program, Type, Value, VariableId};
use crate::model::field;
pub use cells::Cell;
use p4_object::action;
use p4_object::cells::{Count, MeterCell};
use p4_object::vm::Reading;
use p4_syntax::words::PACKAGE;

use packet::Packet;
pub use packet::number_bytes;
use tables::Tables;

/// The verdict on a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Abort: the program failed on this packet, and the tenant's policy decides.
    Abort,
    /// Drop the packet.
    Drop,
    /// Pass the packet on.
    Pass,
    /// Send the packet out of this port.
    Redirect(u32),
}

/// Result of running a program on a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The verdict.
    pub verdict: Verdict,
    /// Output port of a clone of the packet.
    pub clone: Option<u32>,
    /// The packet on output; unchanged if the program aborted.
    pub packet: Vec<u8>,
}

/// The reason why a program cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Elaboration of `main` failed.
    #[error(transparent)]
    Main(#[from] NotElaborated),
    /// An inconsistency that no valid program causes: a fault in the type checker.
    #[error("internal error: type checker and interpreter disagree; please report")]
    Internal,
    /// The program is for another model.
    #[error("the program is made for `{0}`, not for `ubpf`")]
    Model(String),
    /// Calls within calls, each in a high expression, need too much stack.
    #[error(
        "more than {MAX_DEPTH} statements and operators are within each other over all calls: make fewer calls within calls (`kaido p4 compile` shows the place)"
    )]
    TooDeep,
    /// The program calls an extern function that is not implemented.
    #[error("extern function `{0}` is not implemented")]
    Extern(String),
}

/// Maximum number of steps for one packet: states, statements and expressions. Compiled code may
/// execute 65,536 instructions, and each corresponds to several steps.
pub const MAX_STEPS: u64 = 1 << 19;
/// Maximum number of fields and elements copied for one packet. Compiled code avoids copies of
/// unused values, so this limit is much higher than [`MAX_STEPS`].
const MAX_COPIED: u64 = 1 << 23;

/// Upper limit on statements and expressions within each other, over all calls: each is a level of the
/// recursion. The compiler has the same limit.
const MAX_DEPTH: usize = 1000;

/// The reason why execution leaves its normal control flow.
enum Stop {
    /// `break`: leave the loop.
    Break,
    /// `continue`: start the next iteration of the loop.
    Continue,
    /// `return`: leave the function, action or control.
    Return(Option<Value>),
    /// `exit`: leave the pipeline.
    Exit,
    /// `reject`: a parser error. The model has no field for the error code.
    Reject,
    /// The limit [`MAX_STEPS`] or [`MAX_COPIED`] is exceeded.
    Endless,
    /// The run failed.
    Failed(Error),
}

type Done<T = ()> = Result<T, Stop>;

/// A program with its tables, and with the state that it keeps between packets.
pub struct Machine<'p> {
    program: &'p Program,
    elaborated: Elaborated,
    /// Table entries and default actions.
    pub tables: Tables,
    /// Contents of the registers, by object index.
    objects: HashMap<usize, Vec<Value>>,
    /// Counter values, by object and cell index.
    counts: HashMap<(usize, u64), Count>,
    /// Meters that were set or executed, by object and cell index.
    meters: HashMap<(usize, u64), MeterCell>,
    /// Digests that the program has sent, oldest first: the object index, and the value in wire
    /// format, left-padded with zeros to whole bytes.
    pub digests: Vec<(usize, Vec<u8>)>,
    /// Current time in nanoseconds.
    pub now: u64,
    /// Values that the tenant's VM publishes.
    pub vm: HashMap<String, Reading>,
    /// Number of packets received.
    packets: u64,
    /// Packets for which the program exceeded [`MAX_STEPS`] or the copy limit and was aborted; by
    /// number, from 1.
    pub endless: Vec<u64>,
}

/// State of one run of the program, on one packet.
struct Run<'r, 'p> {
    machine: &'r mut Machine<'p>,
    program: &'p Program,
    variables: Vec<Value>,
    packet: Packet,
    /// Index of the running parser or control.
    around: usize,
    /// Variables that currently hold the model's metadata.
    metadata: Vec<VariableId>,
    steps: u64,
    /// Statements and expressions around the one that runs.
    depth: usize,
    /// Number of fields and elements copied so far.
    copied: u64,
    /// Maximum length of the output packet in bytes.
    truncated: Option<u32>,
    /// The table whose action is running, and the index of its entry; None for the default action.
    entry: Option<(usize, Option<usize>)>,
}

impl<'p> Machine<'p> {
    /// Loads a program.
    ///
    /// # Errors
    ///
    /// If the program has no `main`, or is for another model.
    pub fn new(program: &'p Program) -> Result<Self, Error> {
        let elaborated = elaborate(program)?;
        let tables = Tables::new(program, &elaborated);
        Ok(Self {
            program,
            elaborated,
            tables,
            objects: HashMap::new(),
            counts: HashMap::new(),
            meters: HashMap::new(),
            digests: Vec::new(),
            now: 0,
            vm: HashMap::new(),
            packets: 0,
            endless: Vec::new(),
        })
    }

    /// Returns the elaborated program.
    pub fn elaborated(&self) -> &Elaborated {
        &self.elaborated
    }

    /// Runs the program on a packet from an input port.
    ///
    /// # Errors
    ///
    /// If the program calls an extern function that is not implemented.
    pub fn run(&mut self, port: u32, packet: &[u8]) -> Result<Outcome, Error> {
        let program = self.program;
        self.packets += 1;
        let variables = program.variables.iter().map(|one| program.initial(&one.of)).collect();
        let run = Run {
            machine: self,
            program,
            variables,
            packet: Packet::new(packet),
            around: 0,
            metadata: Vec::new(),
            steps: 0,
            depth: 0,
            copied: 0,
            truncated: None,
            entry: None,
        };
        match run.whole(port, packet) {
            Ok(outcome) => Ok(outcome),
            Err(Stop::Endless) => {
                self.endless.push(self.packets);
                Ok(given_up(packet))
            }
            Err(Stop::Failed(why)) => Err(why),
            Err(_) => Ok(given_up(packet)),
        }
    }
}

/// Outcome for a packet on which the program aborted.
fn given_up(packet: &[u8]) -> Outcome {
    Outcome { verdict: Verdict::Abort, clone: None, packet: packet.to_vec() }
}

/// Elaborates a program for the model.
///
/// # Errors
///
/// If the program has no `main`, or is for another model.
pub fn elaborate(program: &Program) -> Result<Elaborated, Error> {
    let main = program.main.as_ref().ok_or(NotElaborated::NoMain)?;
    if &*main.package != PACKAGE || main.arguments.len() != 3 {
        return Err(Error::Model(main.package.to_string()));
    }
    let elaborated = program.elaborate()?;
    if !is_of_model(program, &elaborated) {
        return Err(Error::Model(format!("another `{}`", main.package)));
    }
    Ok(elaborated)
}

/// Returns true if the package's parameters match `ubpf_model.p4`. A program may declare a
/// different package `ubpf` itself.
fn is_of_model(program: &Program, elaborated: &Elaborated) -> bool {
    let parameters = |at: &usize| &program.blocks[elaborated.blocks[*at].block.index()].parameters;
    let counts: Vec<usize> = elaborated.main.iter().map(|at| parameters(at).len()).collect();
    if counts != [4, 3, 2] {
        return false;
    }
    let metadata = parameters(&elaborated.main[0])[3];
    let Type::Record(id) = program.variables[metadata.index()].of else { return false };
    let fields = program.records[id.index()].fields.iter();
    fields.map(|field| &*field.declared.name).eq(field::NAMES)
}

impl Run<'_, '_> {
    /// Runs parser, pipeline and deparser.
    fn whole(mut self, port: u32, packet: &[u8]) -> Done<Outcome> {
        let [parser, pipeline, deparser] = self.machine.elaborated.main[..] else {
            return Err(Stop::Failed(Error::Internal));
        };
        let (parsed, piped) = (self.parameters(parser), self.parameters(pipeline));
        let mut known = vec![Value::Integer(0.into()); 6];
        known[field::INPUT_PORT] = BigInt::from(port).into();
        known[field::PACKET_LENGTH] = BigInt::from(packet.len()).into();
        known[field::OUTPUT_ACTION] = Value::Member(action::PASS);
        known[field::CLONE] = false.into();
        self.variables[parsed[3].index()] = Value::record(known);

        self.metadata = vec![parsed[3]];
        self.block(parser)?;
        for (from, to) in parsed[1..].iter().zip(&piped) {
            self.variables[to.index()] = self.variables[from.index()].clone();
        }
        self.metadata = vec![piped[2]];
        match self.block(pipeline) {
            Ok(()) | Err(Stop::Exit) => {}
            Err(stop) => return Err(stop),
        }
        let Value::Record { fields: metadata, .. } = self.variables[piped[2].index()].clone()
        else {
            return Err(Stop::Failed(Error::Internal));
        };
        // Skip the deparser if the packet is aborted, or dropped without a clone.
        let cloned = metadata[field::CLONE] == Value::Bool(true);
        match metadata[field::OUTPUT_ACTION] {
            Value::Member(action::DROP) if !cloned => {
                let packet = self.packet.into_bytes();
                return Ok(Outcome { verdict: Verdict::Drop, clone: None, packet });
            }
            Value::Member(action::DROP | action::PASS | action::REDIRECT) => {}
            _ => return Err(Stop::Reject),
        }
        let headers = self.parameters(deparser)[1];
        self.variables[headers.index()] = self.variables[piped[0].index()].clone();
        self.metadata.clear();
        match self.block(deparser) {
            Ok(()) | Err(Stop::Exit) => {}
            Err(stop) => return Err(stop),
        }
        let number = |at: usize| match &metadata[at] {
            Value::Integer(value) => u32::try_from(value).unwrap_or(u32::MAX),
            _ => 0,
        };
        let verdict = match metadata[field::OUTPUT_ACTION] {
            Value::Member(action::DROP) => Verdict::Drop,
            Value::Member(action::PASS) => Verdict::Pass,
            Value::Member(action::REDIRECT) => Verdict::Redirect(number(field::OUTPUT_PORT)),
            _ => return Err(Stop::Reject),
        };
        let clone = cloned.then(|| number(field::CLONE_PORT));
        Ok(Outcome { verdict, clone, packet: self.packet.finish(self.truncated) })
    }

    fn parameters(&self, at: usize) -> Vec<VariableId> {
        let block = self.machine.elaborated.blocks[at].block;
        self.program.blocks[block.index()].parameters.clone()
    }

    /// Runs a parser or a control. Its parameters are already bound.
    fn block(&mut self, at: usize) -> Done {
        let block = &self.program.blocks[self.machine.elaborated.blocks[at].block.index()];
        let outside = std::mem::replace(&mut self.around, at);
        let mut result = self.all(&block.locals);
        if result.is_ok() {
            result = match &block.body {
                BlockBody::Parser { states, .. } => self.parse(states),
                BlockBody::Control { apply, .. } => self.all(apply),
            };
        }
        self.around = outside;
        match result {
            Err(Stop::Return(_)) => Ok(()),
            other => other,
        }
    }

    /// Adds the fields and elements of a value to the copy budget: copying takes time in
    /// proportion.
    fn weigh(&mut self, value: &Value) {
        fn parts(value: &Value) -> u64 {
            match value {
                Value::Record { fields: all, .. } | Value::Stack { elements: all, .. } => {
                    all.iter().map(|one| 1 + parts(one)).sum()
                }
                _ => 0,
            }
        }
        self.copied = self.copied.saturating_add(parts(value));
    }

    /// Runs a part one level deeper.
    fn deeper<T>(&mut self, part: impl FnOnce(&mut Self) -> Done<T>) -> Done<T> {
        if self.depth >= MAX_DEPTH {
            return Err(Stop::Failed(Error::TooDeep));
        }
        self.depth += 1;
        let done = part(self);
        self.depth -= 1;
        done
    }

    /// Counts one step of the run.
    fn step(&mut self) -> Done {
        self.steps += 1;
        let is_over = self.steps > MAX_STEPS || self.copied > MAX_COPIED;
        if is_over { Err(Stop::Endless) } else { Ok(()) }
    }
}
