//! Lowers a program to the flat form. Each part has the semantics of its counterpart in
//! `interpret`.

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

use p4::ir::{Elaborated, Program, Type, Value, VariableId};
use p4_syntax::diagnostic::Diagnostic;
use p4_syntax::source::Span;

use super::build::{Builder, Slot};
use super::shape::{NOWHERE, ORIGIN, VALID};
use super::{BlockId, Graph, ValueId};
use crate::flat::shape::Slots;
use crate::layout::Maps;
use places::Place;

/// Construct that cannot be compiled, with its source location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotCompiled {
    /// Source location.
    pub span: Span,
    /// Description of the construct.
    pub what: String,
    /// Advice for a fix.
    pub help: Option<String>,
}

impl From<NotCompiled> for Diagnostic {
    fn from(why: NotCompiled) -> Self {
        let diagnostic = Self::error(why.span, why.what);
        match why.help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }
    }
}

type Lowered<T = ()> = Result<T, NotCompiled>;

/// Upper limit on the nodes of a graph. A program that exceeds it usually doubles at each call
/// level.
const MAX_VALUES: usize = 400_000;
/// The same limit if the code after the parser is duplicated.
const MAX_VALUES_SPLIT: usize = 60_000;

/// Upper limit on the operations of a graph, also of those that are folded: a product of 2048 bits
/// has half a million.
const MAX_OPERATIONS: usize = 20_000_000;

/// Upper limit on the slots of all variables and intermediate values: their numbers must not wrap.
const MAX_SLOTS: Slot = 1 << 28;

fn too_many_slots(span: Span) -> NotCompiled {
    NotCompiled {
        span,
        what: "variables and parameters up to here have too many fields in all".to_owned(),
        help: Some("fewer parameters, smaller stacks, or narrower fields".to_owned()),
    }
}

/// Upper limit on statements and expressions within each other, over all calls: each is a level of the
/// recursion, which takes 1 KB of stack, and 10 KB in a debug build. The parser and the checker limit the
/// height of an expression (500) and the calls (64), but not their product.
const MAX_DEPTH: usize = 1000;

/// Returns the slot of a field of the model's metadata. Each field occupies one slot.
fn part(std: Slot, field: usize) -> Slot {
    std + field as Slot
}

/// Handling of the paths through the parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paths {
    /// The code after the parser is duplicated for each path through it. The validity and the
    /// offset of each header are then constants.
    Split,
    /// The code is duplicated for each set of valid headers, without regard to stacks.
    BySet,
    /// The paths join after the parser.
    Joined,
}

/// State of the lowering of a program.
struct Lower<'p> {
    program: &'p Program,
    elaborated: &'p Elaborated,
    maps: &'p Maps,
    build: Builder,
    /// First slot of each variable.
    variables: Vec<Slot>,
    /// Next unused slot.
    free: Slot,
    /// Index of the parser or control that is lowered.
    around: usize,
    /// Calls that enclose the code that is lowered.
    calls: Vec<Call>,
    /// Targets of `break` and `continue`.
    loops: Vec<(BlockId, BlockId)>,
    /// Number of loops around the code that is lowered, including those around the enclosing calls.
    within_loops: u32,
    /// Statements and expressions around the code that is lowered.
    depth: usize,
    /// Target of `exit`.
    exit: BlockId,
    /// Handling of the paths through the parser.
    paths: Paths,
    /// Target of a parser that rejects the packet.
    reject: BlockId,
    /// Variables that currently hold the model's metadata.
    metadata: Vec<VariableId>,
    /// Slot of the byte offset at which the parser reads next.
    at: Slot,
    /// Slot of the maximum length of the outgoing packet; initially unlimited.
    truncated: Slot,
    /// Packet length in bytes.
    length: ValueId,
    /// Headers that the deparser emits, in order.
    emitted: Vec<deparser::Site>,
    /// Position of each block in reverse postorder, as of the time before the packet is written.
    order: HashMap<BlockId, usize>,
    /// Table to which the lowered action belongs, and the address of the entry's value.
    entry: Option<(usize, ValueId)>,
}

/// Call that is being lowered.
struct Call {
    /// Target of `return`.
    after: BlockId,
    /// First slot of the return value.
    returned: Slot,
    /// Copy-out: places of `out` and `inout` arguments, with the parameters. `exit` copies out too,
    /// except from a function.
    back: Vec<(Place, VariableId)>,
    is_function: bool,
}

/// Lowers a program with its tables in `maps`. `linked`: functions of libraries.
///
/// # Errors
///
/// The first construct that cannot be compiled.
pub(crate) fn lower(
    program: &Program,
    elaborated: &Elaborated,
    maps: &Maps,
    paths: Paths,
    linked: &[&str],
) -> Result<Graph, NotCompiled> {
    let mut free: Slot = 0;
    let mut variables = Vec::with_capacity(program.variables.len());
    for one in &program.variables {
        variables.push(free);
        free = free.saturating_add(program.slots(&one.of));
        if free > MAX_SLOTS {
            return Err(too_many_slots(one.declared.span));
        }
    }
    let mut build = Builder::new();
    build.graph.linked = linked.iter().map(|name| (*name).to_owned()).collect();
    let reject = build.new_block();
    let mut lower = Lower {
        program,
        elaborated,
        maps,
        variables,
        at: free,
        truncated: free + 1,
        free: free + 2,
        around: 0,
        calls: Vec::new(),
        loops: Vec::new(),
        within_loops: 0,
        depth: 0,
        order: HashMap::new(),
        // A parser has no `exit`. The pipeline sets its own target.
        exit: reject,
        paths,
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
    graph.optimize();
    Ok(graph)
}

impl Lower<'_> {
    fn parameters(&self, at: usize) -> Vec<VariableId> {
        self.program.blocks[self.elaborated.blocks[at].block.index()].parameters.clone()
    }

    fn variable(&self, id: VariableId) -> Slot {
        self.variables[id.index()]
    }

    fn type_of(&self, id: VariableId) -> Type {
        self.program.variables[id.index()].of.clone()
    }

    /// Allocates slots. [`Self::goes_on`] refuses a program with too many.
    fn slots(&mut self, count: u32) -> Slot {
        self.free = self.free.saturating_add(count);
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

    /// Writes the initial value of a variable.
    fn declare(&mut self, id: VariableId) {
        let of = self.type_of(id);
        let values = self.initial(&of);
        self.write_all(self.variable(id), &values);
    }

    /// Returns the initial value of a variable of the type.
    fn initial(&mut self, of: &Type) -> Vec<ValueId> {
        let value = self.program.initial(of);
        self.constant(&value, of)
    }

    /// Lowers a constant value.
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

    /// Returns the slots of a header that was not extracted.
    fn header(&mut self, valid: bool, fields: Vec<ValueId>) -> Vec<ValueId> {
        debug_assert_eq!((VALID, ORIGIN), (0, 1));
        let mut all = vec![self.build.constant(u64::from(valid)), self.build.constant(NOWHERE)];
        all.extend(fields);
        all
    }

    /// Returns the width of a number of the type, in bits.
    fn width(&self, of: &Type) -> u32 {
        match self.program.representation(of) {
            Type::Bits { width, .. } => width,
            Type::Bool => 1,
            // Constants of arbitrary precision are amounts and indices.
            _ => 64,
        }
    }

    /// Returns true if numbers of the type are signed.
    fn is_signed(&self, of: &Type) -> bool {
        matches!(self.program.representation(of), Type::Bits { signed: true, .. })
    }

    fn refuse<T>(&self, span: Span, what: impl Into<String>) -> Lowered<T> {
        Err(NotCompiled { span, what: what.into(), help: None })
    }

    /// Lowers a part one level deeper.
    fn deeper<T>(&mut self, span: Span, part: impl FnOnce(&mut Self) -> Lowered<T>) -> Lowered<T> {
        if self.depth >= MAX_DEPTH {
            return Err(NotCompiled {
                span,
                what: format!(
                    "more than {MAX_DEPTH} statements and operators are within each other when every call is written out"
                ),
                help: Some(
                    "fewer calls within calls, or variables for parts of long expressions"
                        .to_owned(),
                ),
            });
        }
        self.depth += 1;
        let done = part(self);
        self.depth -= 1;
        done
    }

    /// Sets the current source location, and checks the limits on the size of the graph.
    fn goes_on(&mut self, span: Span) -> Lowered {
        self.build.span = span;
        let most = match self.paths {
            Paths::Joined => MAX_VALUES,
            _ => MAX_VALUES_SPLIT,
        };
        if self.build.size() > most || self.build.operations() > MAX_OPERATIONS {
            return Err(NotCompiled {
                span,
                what: "the program is too large when every call is written out".to_owned(),
                help: Some("this is where it went too far".to_owned()),
            });
        }
        if self.free > MAX_SLOTS {
            return Err(too_many_slots(span));
        }
        if self.build.is_too_wide() {
            return Err(NotCompiled {
                span,
                what: "too many paths join here, each with too many variables".to_owned(),
                help: Some("fewer `if`, `exit`, `return` and labels of `switch` and `select`, or fewer fields".to_owned()),
            });
        }
        Ok(())
    }
}
