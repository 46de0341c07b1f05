//! Makes the flat form of a program. What each part does is what `interpret` does, word for word.

mod calls;
mod cells;
mod deparser;
mod expressions;
mod externs;
mod memory;
mod numbers;
mod packet;
mod parsers;
mod places;
mod registers;
mod statements;
mod tables;
mod vm;
mod whole;

use std::collections::HashMap;

use super::build::{Builder, Slot};
use super::shape::{NOWHERE, ORIGIN, VALID};
use super::{BlockId, Graph, ValueId};
use crate::diagnostic::Diagnostic;
use crate::ir::{Elaborated, Program, Type, Value, VariableId};
use crate::layout::Maps;
use crate::source::Span;
use places::Place;

/// Something that cannot be compiled, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotCompiled {
    /// Where.
    pub span: Span,
    /// What.
    pub what: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl From<NotCompiled> for Diagnostic {
    fn from(why: NotCompiled) -> Self {
        let told = Self::error(why.span, why.what);
        match why.help {
            Some(help) => told.help(help),
            None => told,
        }
    }
}

type Lowered<T = ()> = Result<T, NotCompiled>;

/// The most values of a program: more is one that doubles itself at each level.
const MAX_VALUES: usize = 400_000;
/// The same where what comes behind the parser is written out more than once.
const MAX_VALUES_APART: usize = 60_000;

/// The slot of a field of the model's metadata, each of which is one number.
fn part(std: Slot, field: usize) -> Slot {
    std + field as Slot
}

/// What is done with the ways through the parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ways {
    /// What comes behind the parser is written out once for each way through it: so each header is
    /// there or not, and at a known place.
    Apart,
    /// It is written out once for each set of headers, without regard to stacks.
    BySet,
    /// They meet behind the parser.
    Together,
}

/// A program on its way to its flat form.
struct Lower<'p> {
    program: &'p Program,
    made: &'p Elaborated,
    maps: &'p Maps,
    build: Builder,
    /// The first slot of each variable.
    variables: Vec<Slot>,
    /// The next slot that is nobody's.
    free: Slot,
    /// The parser or control around what is written, by its place.
    around: usize,
    /// Calls around what is written.
    calls: Vec<Call>,
    /// Where `break` and `continue` lead.
    loops: Vec<(BlockId, BlockId)>,
    /// Loops around what is written, also around its calls.
    within_loops: u32,
    /// Where `exit` leads.
    exit: BlockId,
    /// What is done with ways through the parser.
    ways: Ways,
    /// Where a parser leads that refuses the packet.
    reject: BlockId,
    /// Variables that are the model's metadata at the moment.
    metadata: Vec<VariableId>,
    /// The byte of the packet that is read next.
    at: Slot,
    /// The most bytes that leave; all, at first.
    truncated: Slot,
    /// The packet's bytes.
    length: ValueId,
    /// What the deparser writes, in its order.
    emitted: Vec<deparser::Site>,
    /// The order of the blocks before the packet is written.
    order: HashMap<BlockId, usize>,
    /// The table whose action is written, and the address of the entry's value.
    entry: Option<(usize, ValueId)>,
}

/// A call whose code is being written.
struct Call {
    /// Where `return` leads.
    after: BlockId,
    /// Where its value is left.
    returned: Slot,
    /// What is handed back when it ends: also by `exit`, if it is no function.
    back: Vec<(Place, VariableId)>,
    is_function: bool,
}

/// Makes the flat form of a program, whose tables are in these maps.
///
/// # Errors
///
/// The first thing that has no code.
pub(crate) fn lower(
    program: &Program,
    made: &Elaborated,
    maps: &Maps,
    ways: Ways,
) -> Result<Graph, NotCompiled> {
    let mut free = 0;
    let place = |one: &crate::ir::Variable| {
        let at = free;
        free += program.slots(&one.of);
        at
    };
    let variables: Vec<_> = program.variables.iter().map(place).collect();
    let mut build = Builder::new();
    let reject = build.new_block();
    let mut lower = Lower {
        program,
        made,
        maps,
        variables,
        at: free,
        truncated: free + 1,
        free: free + 2,
        around: 0,
        calls: Vec::new(),
        loops: Vec::new(),
        within_loops: 0,
        order: HashMap::new(),
        // A parser has no `exit`: the pipeline's is known when that begins.
        exit: reject,
        ways,
        entry: None,
        reject,
        metadata: Vec::new(),
        length: ValueId(0),
        emitted: Vec::new(),
        build,
    };
    lower.whole()?;
    lower.build.seal_all();
    lower.goes_on(lower.build.span)?;
    let mut graph = lower.build.finish();
    graph.optimise();
    Ok(graph)
}

impl Lower<'_> {
    fn parameters(&self, at: usize) -> Vec<VariableId> {
        self.program.blocks[self.made.blocks[at].block.index()].parameters.clone()
    }

    fn variable(&self, id: VariableId) -> Slot {
        self.variables[id.index()]
    }

    fn type_of(&self, id: VariableId) -> Type {
        self.program.variables[id.index()].of.clone()
    }

    /// New slots.
    fn slots(&mut self, count: u32) -> Slot {
        self.free += count;
        self.free - count
    }

    fn read_all(&mut self, from: Slot, count: u32) -> Vec<ValueId> {
        (from..from + count).map(|slot| self.build.read(slot)).collect()
    }

    fn write_all(&mut self, from: Slot, values: &[ValueId]) {
        for (slot, value) in (from..).zip(values) {
            self.build.write(slot, *value);
        }
    }

    fn copy(&mut self, from: VariableId, to: VariableId) {
        let count = self.program.slots(&self.type_of(to));
        let values = self.read_all(self.variable(from), count);
        self.write_all(self.variable(to), &values);
    }

    /// A variable begins.
    fn declare(&mut self, id: VariableId) {
        let of = self.type_of(id);
        let values = self.initial(&of);
        self.write_all(self.variable(id), &values);
    }

    /// What a variable of this type holds at its beginning.
    fn initial(&mut self, of: &Type) -> Vec<ValueId> {
        let value = self.program.initial(of);
        self.constant(&value, of)
    }

    /// A value that is known.
    fn constant(&mut self, value: &Value, of: &Type) -> Vec<ValueId> {
        let parts = |lower: &mut Self, values: &[Value]| {
            let all = lower.program.parts(of);
            values.iter().zip(all).flat_map(|(value, of)| lower.constant(value, &of)).collect()
        };
        match value {
            Value::Bool(value) => vec![self.build.constant(u64::from(*value))],
            Value::Integer(value) => {
                let width = self.width(of);
                self.build.number(value, width)
            }
            Value::Error(at) | Value::Member(at) => vec![self.build.constant(*at as u64)],
            Value::String(_) => Vec::new(),
            Value::Varbit { .. } => vec![self.build.constant(0); 2],
            Value::Record { valid, fields } => {
                let fields: Vec<ValueId> = parts(self, fields);
                match self.program.is_header(of) {
                    true => self.header(*valid, fields),
                    false => fields,
                }
            }
            Value::Stack { next, elements } => {
                let elements: Vec<ValueId> = parts(self, elements);
                let mut all = vec![self.build.constant(*next as u64)];
                all.extend(elements);
                all
            }
        }
    }

    /// A header that was not extracted.
    fn header(&mut self, valid: bool, fields: Vec<ValueId>) -> Vec<ValueId> {
        debug_assert_eq!((VALID, ORIGIN), (0, 1));
        let mut all = vec![self.build.constant(u64::from(valid)), self.build.constant(NOWHERE)];
        all.extend(fields);
        all
    }

    /// The bits of a number of this type.
    fn width(&self, of: &Type) -> u32 {
        match self.program.representation(of) {
            Type::Bits { width, .. } => width,
            Type::Bool => 1,
            // Known numbers of any precision are amounts and indices.
            _ => 64,
        }
    }

    /// Whether numbers of this type have a sign.
    fn is_signed(&self, of: &Type) -> bool {
        matches!(self.program.representation(of), Type::Bits { signed: true, .. })
    }

    fn refuse<T>(&self, span: Span, what: impl Into<String>) -> Lowered<T> {
        Err(NotCompiled { span, what: what.into(), help: None })
    }

    /// Says where what follows stands, and that there is not too much of it.
    fn goes_on(&mut self, span: Span) -> Lowered {
        self.build.span = span;
        let most = match self.ways {
            Ways::Together => MAX_VALUES,
            _ => MAX_VALUES_APART,
        };
        if self.build.graph.nodes.len() > most {
            return Err(NotCompiled {
                span,
                what: "the program is too large when every call is written out".to_owned(),
                help: Some("this is where it went too far".to_owned()),
            });
        }
        if self.build.is_too_wide() {
            return Err(NotCompiled {
                span,
                what: "too many ways meet here, each with too many variables".to_owned(),
                help: Some("fewer `if`, `exit`, `return` and labels of `switch` and `select`, or fewer fields".to_owned()),
            });
        }
        Ok(())
    }
}
