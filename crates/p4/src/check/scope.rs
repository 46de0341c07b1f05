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
        closest(name, known.cloned())
    }
}

/// The one of these that is most like `name`, if any is likely to be meant.
pub(super) fn closest(name: &str, known: impl Iterator<Item = Arc<str>>) -> Option<Arc<str>> {
    // To compare takes the product of the lengths.
    let length = |name: &str| Some(name.chars().take(65).count()).filter(|&long| long <= 64);
    let long = length(name)?;
    let far = (long / 3).max(1);
    let near = known.filter_map(|one| {
        length(&one).filter(|other| other.abs_diff(long) <= far)?;
        let distance = strsim::damerau_levenshtein(name, &one);
        (distance <= far).then_some((distance, one))
    });
    near.min().map(|(_, one)| one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_most_like_a_name_is_found() {
        let found = |name: &str, known: &[&str]| {
            closest(name, known.iter().map(|&one| one.into())).map(|one| one.to_string())
        };
        assert_eq!(found("haeder", &["heads", "header", "x"]).as_deref(), Some("header"));
        assert_eq!(found("x", &["y", "xyz"]).as_deref(), Some("y"));
        assert_eq!(found("header", &["head_of_it", "h"]), None);
        // Nobody compares long ones: it would take memory without end.
        let long = "a".repeat(300_000);
        assert_eq!(found(&long, &[&long, "a"]), None);
        assert_eq!(found("a", &[&long]), None);
    }
}
