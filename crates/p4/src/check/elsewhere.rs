//! Names that are declared, but not where they are used: below, or in another parser or control.

use std::collections::HashMap;
use std::sync::Arc;

use crate::source::Span;
use crate::syntax::ast::{Declaration, DeclarationKind as Kind, Name, Parameter, Program};

/// Where each name is declared first.
pub(super) fn declared(program: &Program) -> HashMap<Arc<str>, Span> {
    let mut all = HashMap::new();
    for declaration in &program.declarations {
        add(&mut all, &declaration.name);
    }
    for declaration in &program.declarations {
        let (parameters, locals): (&[Parameter], &[Declaration]) = match &declaration.kind {
            Kind::Parser(parser) => (&parser.parameters, &parser.locals),
            Kind::Control(control) => (&control.parameters, &control.locals),
            _ => continue,
        };
        parameters.iter().for_each(|one| add(&mut all, &one.name));
        locals.iter().for_each(|one| add(&mut all, &one.name));
    }
    all
}

fn add(all: &mut HashMap<Arc<str>, Span>, name: &Name) {
    all.entry(name.text.clone()).or_insert(name.span);
}
