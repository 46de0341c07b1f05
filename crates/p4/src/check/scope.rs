//! What names mean, where (P4_16 specification, section 6.9).

use std::collections::HashMap;
use std::sync::Arc;

use crate::ir::{
    ActionId, BlockId, Expression, ExternFunctionId, FunctionId, InstanceId, TableId, Type,
    ValueSetId, VariableId,
};
use crate::source::Span;

/// What a name means.
#[derive(Debug, Clone)]
pub(super) enum Symbol {
    /// A type.
    Type(Type),
    /// A header, a union or a struct that is generic, by its place in the checker's list.
    GenericRecord(usize),
    /// An extern object's type that is generic over so many.
    GenericExtern(crate::ir::ExternId),
    /// The type of a parser or a control, by its place in the checker's list.
    BlockType(usize),
    /// A package, by its place in the checker's list.
    Package(usize),
    /// A value that is known.
    Constant(Expression),
    /// A variable or a parameter.
    Variable(VariableId),
    /// A parameter of the constructor around it.
    ConstructorParameter(usize, Type),
    /// Functions of one name.
    Functions(Vec<FunctionId>),
    /// Functions of one name that somebody else has.
    ExternFunctions(Vec<ExternFunctionId>),
    /// An action.
    Action(ActionId),
    /// A table.
    Table(TableId),
    /// A parser or a control.
    Block(BlockId),
    /// What a constructor has made.
    Instance(InstanceId),
    /// A value set.
    ValueSet(ValueSetId),
    /// What is being declared at the moment.
    Unfinished,
    /// What is wrong, as was told.
    Wrong,
}

/// Names, the innermost last.
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

    /// Goes to the top; what is inside is given back to [`Scopes::enter`].
    pub(super) fn leave(&mut self) -> Vec<HashMap<Arc<str>, (Span, Symbol)>> {
        self.open.split_off(1)
    }

    /// Goes back in.
    pub(super) fn enter(&mut self, inner: Vec<HashMap<Arc<str>, (Span, Symbol)>>) {
        self.open.extend(inner);
    }

    /// Gives the name a meaning in the innermost scope; where it stands there already, if it does.
    pub(super) fn declare(&mut self, name: &Arc<str>, span: Span, symbol: Symbol) -> Option<Span> {
        // The outermost is never closed.
        let scope = self.open.last_mut()?;
        let before = scope.insert(name.clone(), (span, symbol));
        match before {
            Some((_, Symbol::Unfinished)) | None => None,
            Some((before, _)) => Some(before),
        }
    }

    /// What the name means.
    pub(super) fn find(&self, name: &str) -> Option<&Symbol> {
        self.open.iter().rev().find_map(|scope| scope.get(name)).map(|(_, symbol)| symbol)
    }

    /// What the name means at the top.
    pub(super) fn find_at_top(&self, name: &str) -> Option<&Symbol> {
        self.open.first()?.get(name).map(|(_, symbol)| symbol)
    }

    /// The meaning that the innermost scope gives the name, to be added to.
    pub(super) fn innermost(&mut self, name: &str) -> Option<&mut Symbol> {
        self.open.last_mut()?.get_mut(name).map(|(_, symbol)| symbol)
    }

    /// The known name that is most like one that is not known.
    pub(super) fn similar(&self, name: &str) -> Option<Arc<str>> {
        let known = self.open.iter().rev().flat_map(HashMap::keys);
        crate::words::closest(name, known.cloned())
    }
}
