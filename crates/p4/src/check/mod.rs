//! The type checker: from the syntax tree to the intermediate representation. It resolves names,
//! types expressions and evaluates constants (P4_16 specification, sections 6 to 16).
//!
//! It checks each declaration once, in source order. After an error it continues with the next one.

mod arguments;
mod blocks;
mod calls;
mod cells;
mod conversions;
mod declarations;
mod direct;
mod elsewhere;
mod entries;
mod evaluation;
mod expressions;
mod externs;
mod foreign;
mod functions;
mod instances;
mod leaving;
mod literals;
mod loops;
mod members;
mod operators;
mod packages;
mod packets;
mod parsers;
mod records;
mod scope;
mod sets;
mod statements;
mod tables;
#[cfg(test)]
mod tests;
mod types;
mod unassigned;
mod vm;

use p4_syntax::ast;
use p4_syntax::diagnostic::{Diagnostic, Diagnostics};
use p4_syntax::source::Span;

use crate::ir::{
    BlockId, Declared, Expression, ExpressionKind, InstanceId, Program, Type, Value, Variable,
    VariableId,
};
use elsewhere::Elsewhere;
use packages::{BlockType, Package};
use records::GenericRecord;
use scope::{Scopes, Symbol};
use types::Extent;

/// The error has already been reported.
struct Reported;

type Checked<T> = Result<T, Reported>;

/// Checks a syntax tree.
pub(crate) fn check(syntax: &ast::Program, problems: &mut Diagnostics) -> Program {
    let mut checker = Checker::new(problems);
    checker.elsewhere = Elsewhere::new(syntax);
    for declaration in &syntax.declarations {
        checker.top_declaration(declaration);
    }
    checker.require_main();
    checker.warn_of_unassigned();
    checker.warn_of_ports();
    checker.program
}

/// Context of a statement or an expression, which determines the allowed operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Top level.
    Top,
    /// Local declarations of a parser.
    ParserLocals,
    /// A parser state.
    State,
    /// Local declarations of a control.
    ControlLocals,
    /// The `apply` block of a control.
    Apply,
    /// An action.
    Action,
    /// A function.
    Function,
}

/// Maximum call depth, between functions or between controls.
const MAX_CALLS: usize = 64;

/// Call depth of each item, in the order of the lists of [`Program`].
#[derive(Default)]
struct Depths {
    functions: Vec<usize>,
    actions: Vec<usize>,
    blocks: Vec<usize>,
    tables: Vec<usize>,
}

struct Checker<'c> {
    problems: &'c mut Diagnostics,
    program: Program,
    scopes: Scopes,
    generic_records: Vec<GenericRecord<'c>>,
    /// Generic records whose instantiation is in progress.
    instantiating: Vec<usize>,
    /// Size of each record.
    extents: Vec<Extent>,
    /// Call depth of the current body, and of functions, actions, blocks and tables.
    deepest: usize,
    depths: Depths,
    block_types: Vec<BlockType>,
    packages: Vec<Package>,
    /// Source span of a package instance with a name other than `main`.
    other_main: Option<Span>,
    place: Place,
    /// Return type of the current function.
    returns: Type,
    loops: usize,
    /// Instances in the current parser or control.
    instances: Vec<InstanceId>,
    direct: direct::Direct,
    written: leaving::Written,
    /// Declarations of all names, including those that are not visible yet.
    elsewhere: Elsewhere,
    /// Source span of the current parser's or control's name.
    around: Option<Span>,
}

impl<'c> Checker<'c> {
    fn new(problems: &'c mut Diagnostics) -> Self {
        Self {
            problems,
            program: Program::default(),
            scopes: Scopes::default(),
            generic_records: Vec::new(),
            instantiating: Vec::new(),
            extents: Vec::new(),
            deepest: 0,
            depths: Depths::default(),
            block_types: Vec::new(),
            packages: Vec::new(),
            other_main: None,
            place: Place::Top,
            returns: Type::Void,
            loops: 0,
            instances: Vec::new(),
            direct: direct::Direct::default(),
            written: leaving::Written::default(),
            elsewhere: Elsewhere::default(),
            around: None,
        }
    }

    /// Reports a diagnostic.
    fn refuse<T>(&mut self, problem: Diagnostic) -> Checked<T> {
        self.problems.add(problem);
        Err(Reported)
    }

    /// Reports an error at a source span.
    fn wrong<T>(&mut self, span: Span, message: impl Into<String>) -> Checked<T> {
        self.refuse(Diagnostic::error(span, message))
    }

    /// Reports an unsupported language feature.
    fn unsupported<T>(&mut self, span: Span, what: &str) -> Checked<T> {
        self.wrong(span, format!("{what}: kaido does not support this part of P4_16"))
    }

    /// Declares a name in the current scope.
    fn declare(&mut self, name: &ast::Name, symbol: Symbol) {
        if let Some(before) = self.scopes.declare(&name.text, name.span, symbol) {
            let again = Diagnostic::error(name.span, format!("`{}` is declared twice", name.text));
            self.problems.add(again.related(before, "here before"));
        }
    }

    fn new_variable(
        &mut self,
        declared: Declared,
        of: Type,
        direction: Option<ast::Direction>,
    ) -> VariableId {
        self.program.variables.push(Variable { declared, of, direction });
        VariableId(self.program.variables.len() as u32 - 1)
    }

    fn variable(&self, id: VariableId) -> &Variable {
        &self.program.variables[id.index()]
    }

    fn block(&self, id: BlockId) -> &crate::ir::Block {
        &self.program.blocks[id.index()]
    }

    /// Records a call of an item with this call depth.
    fn calls(&mut self, depth: usize) {
        self.deepest = self.deepest.max(depth);
    }

    /// Checks a body and returns its call depth. Reports an error if it exceeds the limit.
    fn measured<T>(
        &mut self,
        span: Span,
        body: impl FnOnce(&mut Self) -> Checked<T>,
    ) -> Checked<(T, usize)> {
        let outside = std::mem::take(&mut self.deepest);
        let result = body(self);
        let depth = 1 + std::mem::replace(&mut self.deepest, outside);
        if depth > MAX_CALLS {
            return self.wrong(span, format!("calls go more than {MAX_CALLS} deep from here"));
        }
        Ok((result?, depth))
    }

    /// Runs `inside` in a new scope and a new context.
    fn within<T>(&mut self, place: Place, inside: impl FnOnce(&mut Self) -> T) -> T {
        let outside = std::mem::replace(&mut self.place, place);
        self.scopes.open();
        let result = inside(self);
        self.scopes.close();
        self.place = outside;
        result
    }
}

/// Creates a constant expression.
fn constant(span: Span, of: Type, value: impl Into<Value>) -> Expression {
    Expression { span, of, kind: ExpressionKind::Constant(value.into()) }
}

fn declared(name: &ast::Name, annotations: &[ast::Annotation]) -> Declared {
    Declared { name: name.text.clone(), span: name.span, annotations: annotations.to_vec() }
}
