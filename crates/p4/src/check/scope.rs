//! Scopes and symbols (P4_16 specification, section 6.9).

use std::collections::HashMap;
use std::sync::Arc;

use p4_syntax::source::Span;

use crate::ir::{
    ActionId, BlockId, Expression, ExternFunctionId, FunctionId, InstanceId, TableId, Type,
    ValueSetId, VariableId,
};

/// Maximum number of names that are compared with an unknown one.
const MAX_COMPARED: usize = 20_000;

/// The meaning of a name.
#[derive(Debug, Clone)]
pub(super) enum Symbol {
    /// A type.
    Type(Type),
    /// A generic header, header union or struct, by index in the checker's list.
    GenericRecord(usize),
    /// A generic extern object.
    GenericExtern(crate::ir::ExternId),
    /// A parser or control type, by index in the checker's list.
    BlockType(usize),
    /// A package, by index in the checker's list.
    Package(usize),
    /// A constant.
    Constant(Expression),
    /// A variable or a parameter.
    Variable(VariableId),
    /// A constructor parameter of the enclosing parser or control.
    ConstructorParameter(usize, Type),
    /// Overloaded functions.
    Functions(Vec<FunctionId>),
    /// Overloaded extern functions.
    ExternFunctions(Vec<ExternFunctionId>),
    /// An action.
    Action(ActionId),
    /// A table.
    Table(TableId),
    /// A parser or a control.
    Block(BlockId),
    /// An instance.
    Instance(InstanceId),
    /// A value set.
    ValueSet(ValueSetId),
    /// A declaration that is being checked.
    Unfinished,
    /// A declaration with errors that have already been reported.
    Wrong,
}

/// Open scopes, the innermost last.
#[derive(Debug)]
pub(super) struct Scopes {
    open: Vec<HashMap<Arc<str>, (Span, Symbol)>>,
}

impl Default for Scopes {
    fn default() -> Self {
        Self { open: vec![HashMap::new()] }
    }
}

impl Scopes {
    pub(super) fn open(&mut self) {
        self.open.push(HashMap::new());
    }

    pub(super) fn close(&mut self) {
        self.open.pop();
    }

    /// Leaves all scopes except the top level. Returns them for [`Scopes::enter`].
    pub(super) fn leave(&mut self) -> Vec<HashMap<Arc<str>, (Span, Symbol)>> {
        self.open.split_off(1)
    }

    /// Enters the scopes again.
    pub(super) fn enter(&mut self, inner: Vec<HashMap<Arc<str>, (Span, Symbol)>>) {
        self.open.extend(inner);
    }

    /// Declares a name in the innermost scope. Returns the source span of a previous declaration in
    /// that scope.
    pub(super) fn declare(&mut self, name: &Arc<str>, span: Span, symbol: Symbol) -> Option<Span> {
        // The outermost scope is never closed.
        let scope = self.open.last_mut()?;
        let before = scope.insert(name.clone(), (span, symbol));
        match before {
            Some((_, Symbol::Unfinished)) | None => None,
            Some((before, _)) => Some(before),
        }
    }

    /// Looks up a name.
    pub(super) fn find(&self, name: &str) -> Option<&Symbol> {
        self.open.iter().rev().find_map(|scope| scope.get(name)).map(|(_, symbol)| symbol)
    }

    /// Looks up a name at top level.
    pub(super) fn find_at_top(&self, name: &str) -> Option<&Symbol> {
        self.open.first()?.get(name).map(|(_, symbol)| symbol)
    }

    /// Returns the symbol in the innermost scope, so that an overload can be added.
    pub(super) fn innermost(&mut self, name: &str) -> Option<&mut Symbol> {
        self.open.last_mut()?.get_mut(name).map(|(_, symbol)| symbol)
    }

    /// Returns the most similar known name.
    pub(super) fn similar(&self, name: &str) -> Option<Arc<str>> {
        let known = self.open.iter().rev().flat_map(HashMap::keys).take(MAX_COMPARED);
        p4_syntax::words::closest(name, known.cloned())
    }
}
