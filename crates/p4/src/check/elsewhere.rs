//! Hints for names that are declared, but not visible where they are used: declared later, or in
//! another parser or control.

use std::collections::HashMap;
use std::sync::Arc;

use p4_syntax::ast::{Declaration, DeclarationKind as Kind, Name, Parameter, Program};
use p4_syntax::diagnostic::Diagnostic;
use p4_syntax::source::Span;

/// A declaration of a name.
struct DeclaredAt {
    span: Span,
    /// The enclosing parser or control; None at top level.
    within: Option<Name>,
    /// True for a parameter or a variable, which can be passed as an argument.
    is_value: bool,
}

/// Declarations of all names, including those that are not visible yet.
#[derive(Default)]
pub(super) struct Elsewhere {
    places: HashMap<Arc<str>, Vec<DeclaredAt>>,
}

impl Elsewhere {
    pub(super) fn new(program: &Program) -> Self {
        let mut all = Self::default();
        for declaration in &program.declarations {
            all.add(&declaration.name, None, false);
            let (parameters, constructor, locals): (&[Parameter], &[Parameter], &[Declaration]) =
                match &declaration.kind {
                    Kind::Parser(parser) => {
                        (&parser.parameters, &parser.constructor, &parser.locals)
                    }
                    Kind::Control(control) => {
                        (&control.parameters, &control.constructor, &control.locals)
                    }
                    _ => continue,
                };
            let within = Some(&declaration.name);
            for one in parameters.iter().chain(constructor) {
                all.add(&one.name, within, true);
            }
            for one in locals {
                all.add(&one.name, within, matches!(one.kind, Kind::Variable(..)));
            }
        }
        all
    }

    fn add(&mut self, name: &Name, within: Option<&Name>, is_value: bool) {
        let place = DeclaredAt { span: name.span, within: within.cloned(), is_value };
        self.places.entry(name.text.clone()).or_default().push(place);
    }

    fn places(&self, name: &str) -> &[DeclaredAt] {
        self.places.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns a declaration of the name after its use, in the same parser or control or at top
    /// level.
    fn below(&self, name: &str, used: Span, around: Option<Span>) -> Option<&DeclaredAt> {
        let is_in_reach = |place: &&DeclaredAt| match &place.within {
            Some(within) => Some(within.span) == around,
            None => true,
        };
        let mut places = self.places(name).iter().filter(is_in_reach);
        places.find(|place| place.span.start > used.start)
    }

    /// Reports that the name is declared after its use, if it is.
    pub(super) fn tell_below(
        &self,
        unknown: &Diagnostic,
        name: &str,
        around: Option<Span>,
    ) -> Option<Diagnostic> {
        let place = self.below(name, unknown.span, around)?;
        let diagnostic = unknown.clone().related(place.span, "it is declared here, below");
        Some(diagnostic.help("a name is known from its declaration on"))
    }

    /// Reports that the name belongs to another parser or control, if it does.
    pub(super) fn tell_other(
        &self,
        unknown: &Diagnostic,
        name: &str,
        around: Option<Span>,
    ) -> Option<Diagnostic> {
        let others = || {
            let all = self.places(name).iter();
            all.filter_map(|place| Some((place, place.within.as_ref()?)))
                .filter(|(_, within)| Some(within.span) != around)
        };
        // Prefer values: they can be passed as a parameter.
        let value = others().find(|(place, _)| place.is_value);
        let (place, within) = value.or_else(|| others().next())?;
        let diagnostic = unknown
            .clone()
            .related(place.span, format!("it is declared here, in `{}`", within.text));
        Some(if place.is_value {
            diagnostic.help("hand it over as a parameter")
        } else {
            diagnostic.help(format!("it belongs to `{}`", within.text))
        })
    }
}
