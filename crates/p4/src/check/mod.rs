//! Makes a program of what is written: finds what each name means, the type of each expression, and
//! the value of what is known (P4_16 specification, sections 6 to 16).
//!
//! Each declaration is looked at once, in its order; what is wrong is told, and the rest goes on.

mod arguments;
mod blocks;
mod calls;
mod cells;
mod conversions;
mod declarations;
mod direct;
mod elsewhere;
mod entries;
mod expressions;
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

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::{
    BlockId, Declared, Expression, ExpressionKind, InstanceId, Program, Type, Value, Variable,
    VariableId,
};
use crate::source::Span;
use crate::syntax::ast;
use elsewhere::Elsewhere;
use packages::{BlockType, Package};
use records::GenericRecord;
use scope::{Scopes, Symbol};
use types::Extent;

/// What is wrong is told already.
struct Told;

type Checked<T> = Result<T, Told>;

/// Makes a program of its syntax.
pub(crate) fn check(syntax: &ast::Program, problems: &mut Diagnostics) -> Program {
    let mut checker = Checker::new(problems);
    checker.elsewhere = Elsewhere::of(syntax);
    for declaration in &syntax.declarations {
        checker.top_declaration(declaration);
    }
    checker.require_main();
    checker.warn_of_unassigned();
    checker.warn_of_ports();
    checker.program
}

/// Where a statement or an expression stands, which decides what it may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Outside of all.
    Top,
    /// In front of a parser's states.
    ParserLocals,
    /// In a state.
    State,
    /// In front of `apply`.
    ControlLocals,
    /// In a control's `apply`.
    Apply,
    /// In an action.
    Action,
    /// In a function.
    Function,
}

/// How deep calls go at most, from function to function or control to control.
const MAX_CALLS: usize = 64;

/// How deep calls go, in the order of the lists of [`Program`].
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
    /// Generic records that are being made.
    making: Vec<usize>,
    /// How large each record is.
    extents: Vec<Extent>,
    /// How deep calls go in the body that is looked at, and in functions, actions, blocks and tables.
    deepest: usize,
    depths: Depths,
    block_types: Vec<BlockType>,
    packages: Vec<Package>,
    /// Where a package is made that is not called `main`.
    other_main: Option<Span>,
    place: Place,
    /// What the function around it gives.
    returns: Type,
    loops: usize,
    /// What is made in the parser or control around it.
    instances: Vec<InstanceId>,
    direct: direct::Direct,
    written: leaving::Written,
    /// Where names are declared, also where they mean nothing yet.
    elsewhere: Elsewhere,
    /// The name of the parser or the control around it.
    around: Option<Span>,
}

impl<'c> Checker<'c> {
    fn new(problems: &'c mut Diagnostics) -> Self {
        Self {
            problems,
            program: Program::default(),
            scopes: Scopes::default(),
            generic_records: Vec::new(),
            making: Vec::new(),
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

    /// Tells what is wrong.
    fn refuse<T>(&mut self, problem: Diagnostic) -> Checked<T> {
        self.problems.add(problem);
        Err(Told)
    }

    /// Tells what is wrong at a place.
    fn wrong<T>(&mut self, span: Span, message: impl Into<String>) -> Checked<T> {
        self.refuse(Diagnostic::error(span, message))
    }

    /// Tells that a part of the language is not there.
    fn unsupported<T>(&mut self, span: Span, what: &str) -> Checked<T> {
        self.wrong(span, format!("{what}: kaido does not support this part of P4_16"))
    }

    /// Gives a name a meaning from here on.
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

    /// Something is called that calls others so deep.
    fn calls(&mut self, depth: usize) {
        self.deepest = self.deepest.max(depth);
    }

    /// Looks at a body; how deep calls go in it. An error where they go too deep.
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

    /// Does something with names and a place of its own.
    fn within<T>(&mut self, place: Place, inside: impl FnOnce(&mut Self) -> T) -> T {
        let outside = std::mem::replace(&mut self.place, place);
        self.scopes.open();
        let result = inside(self);
        self.scopes.close();
        self.place = outside;
        result
    }
}

/// A value that is known.
fn constant(span: Span, of: Type, value: impl Into<Value>) -> Expression {
    Expression { span, of, kind: ExpressionKind::Constant(value.into()) }
}

fn declared(name: &ast::Name, annotations: &[ast::Annotation]) -> Declared {
    Declared { name: name.text.clone(), span: name.span, annotations: annotations.to_vec() }
}
