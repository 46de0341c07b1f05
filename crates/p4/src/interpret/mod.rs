//! Runs a program as the language says, plainly and slowly: what compiled code is compared with.
//!
//! What the language leaves open is the same everywhere here: variables begin as zeros, an element
//! that a stack does not have is read as zeros and written nowhere, and a header that becomes invalid
//! has zeros in its fields.

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

use crate::cells::{Count, MeterCell};
use crate::ir::{BlockBody, Elaborated, NotMade, Program, Type, Value, VariableId};
use crate::model::{action, field};
use crate::vm::Reading;
use crate::words::PACKAGE;
pub use cells::Cell;
pub(crate) use externs::number_bytes;
use packet::Packet;
use tables::Tables;

/// What becomes of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The program could not go on: the tenant's policy decides.
    Abort,
    /// It goes nowhere.
    Drop,
    /// It goes on.
    Pass,
    /// It leaves by this port.
    Redirect(u32),
}

/// What a program makes of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What becomes of it.
    pub verdict: Verdict,
    /// The port by which a copy leaves.
    pub clone: Option<u32>,
    /// The packet as it leaves; as it came if the program could not go on.
    pub packet: Vec<u8>,
}

/// Why a program cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Its `main` cannot be made.
    #[error(transparent)]
    Main(#[from] NotMade),
    /// Nothing of the language: a fault in what has checked the program.
    #[error("the program does not mean what it was checked to mean: this is a fault of kaido's")]
    Internal,
    /// It is made for another model.
    #[error("the program is made for `{0}`, not for `ubpf`")]
    Model(String),
    /// It needs something that nobody has.
    #[error("`{0}` is a function that nothing here has")]
    Extern(String),
}

/// The steps that a program may make for one packet: states, statements and expressions. Compiled code
/// may execute 65,536 instructions, which are several steps each.
pub const MAX_STEPS: u64 = 1 << 19;
/// The fields and elements that may be copied for one packet. Compiled code need not copy what it does
/// not use: so there are many more than steps.
const MAX_COPIED: u64 = 1 << 23;

/// Why a run does not go on as it is written.
enum Stop {
    /// Out of the loop.
    Break,
    /// To the loop's next turn.
    Continue,
    /// Out of what was called.
    Return(Option<Value>),
    /// Out of the pipeline.
    Exit,
    /// The parser has met what is wrong. Which error it was has no place in the model.
    Reject,
    /// The program has made [`MAX_STEPS`], or copied [`MAX_COPIED`].
    Endless,
    /// The run is over.
    Failed(Error),
}

type Done<T = ()> = Result<T, Stop>;

/// A program with its tables, and with what it keeps between packets.
pub struct Machine<'p> {
    program: &'p Program,
    made: Elaborated,
    /// What the control plane has put in.
    pub tables: Tables,
    /// What each object of others holds, by its place.
    objects: HashMap<usize, Vec<Value>>,
    /// What counters have counted, by object and index.
    counts: HashMap<(usize, u64), Count>,
    /// Meters that were set or asked, by object and index.
    meters: HashMap<(usize, u64), MeterCell>,
    /// What digests were made of, oldest first: the object, and the value as it is on the wire, in
    /// whole bytes with zeros in front.
    pub digests: Vec<(usize, Vec<u8>)>,
    /// The time, in nanoseconds.
    pub now: u64,
    /// What the tenant's VM publishes.
    pub vm: HashMap<String, Reading>,
    /// How many packets have come.
    packets: u64,
    /// Those for which the program came to no end, by their numbers from 1: it could not go on after
    /// [`MAX_STEPS`].
    pub endless: Vec<u64>,
}

/// One packet's run.
struct Run<'r, 'p> {
    machine: &'r mut Machine<'p>,
    program: &'p Program,
    variables: Vec<Value>,
    packet: Packet,
    /// The parser or control around what runs, by its place.
    around: usize,
    /// Variables that are the model's metadata at the moment.
    metadata: Vec<VariableId>,
    steps: u64,
    /// Fields and elements copied.
    copied: u64,
    /// The most bytes that leave.
    truncated: Option<u32>,
    /// The table whose action runs, and its entry; None for what it does by default.
    entry: Option<(usize, Option<usize>)>,
}

impl<'p> Machine<'p> {
    /// A program as it is when it is loaded.
    ///
    /// # Errors
    ///
    /// If it has no `main`, or is made for another model.
    pub fn new(program: &'p Program) -> Result<Self, Error> {
        let made = elaborate(program)?;
        let tables = Tables::new(program, &made);
        Ok(Self {
            program,
            made,
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

    /// What the program is made of.
    pub fn made(&self) -> &Elaborated {
        &self.made
    }

    /// Runs the program on a packet that came by a port.
    ///
    /// # Errors
    ///
    /// If the program needs what nobody has.
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

/// A packet for which the program could not go on.
fn given_up(packet: &[u8]) -> Outcome {
    Outcome { verdict: Verdict::Abort, clone: None, packet: packet.to_vec() }
}

/// What a program for the model is made of.
///
/// # Errors
///
/// If it has no `main`, or is made for another model.
pub(crate) fn elaborate(program: &Program) -> Result<Elaborated, Error> {
    let main = program.main.as_ref().ok_or(NotMade::NoMain)?;
    if &*main.package != PACKAGE || main.arguments.len() != 3 {
        return Err(Error::Model(main.package.to_string()));
    }
    let made = program.elaborate()?;
    if !is_of_model(program, &made) {
        return Err(Error::Model(format!("another `{}`", main.package)));
    }
    Ok(made)
}

/// Whether the parts take what `ubpf_model.p4` says: a program may declare a `ubpf` of its own.
fn is_of_model(program: &Program, made: &Elaborated) -> bool {
    let parameters = |at: &usize| &program.blocks[made.blocks[*at].block.index()].parameters;
    let counts: Vec<usize> = made.main.iter().map(|at| parameters(at).len()).collect();
    if counts != [4, 3, 2] {
        return false;
    }
    let metadata = parameters(&made.main[0])[3];
    let Type::Record(id) = program.variables[metadata.index()].of else { return false };
    let fields = program.records[id.index()].fields.iter();
    fields.map(|field| &*field.declared.name).eq(field::NAMES)
}

impl Run<'_, '_> {
    /// Parser, pipeline and deparser.
    fn whole(mut self, port: u32, packet: &[u8]) -> Done<Outcome> {
        let [parser, pipeline, deparser] = self.machine.made.main[..] else {
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
        // Neither who could not go on nor who goes nowhere is written.
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
        let block = self.machine.made.blocks[at].block;
        self.program.blocks[block.index()].parameters.clone()
    }

    /// A parser or a control, whose parameters have their values.
    fn block(&mut self, at: usize) -> Done {
        let block = &self.program.blocks[self.machine.made.blocks[at].block.index()];
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

    /// Counts what a value is made of: to copy it takes as long.
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

    /// Counts a step of the run.
    fn step(&mut self) -> Done {
        self.steps += 1;
        let is_over = self.steps > MAX_STEPS || self.copied > MAX_COPIED;
        if is_over { Err(Stop::Endless) } else { Ok(()) }
    }
}
