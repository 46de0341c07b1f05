//! Keysets of `select` cases and table entries (P4_16 specification, section 8.15).

use p4_syntax::ast::{self, ExpressionKind as Kind};
use p4_syntax::diagnostic::Diagnostic;
use p4_syntax::source::Span;

use super::scope::Symbol;
use super::{Checked, Checker, Reported};
use crate::ir::{Binary, Set, Type};

impl Checker<'_> {
    /// Checks one keyset for each type. A single `_` or `default` covers all.
    pub(super) fn sets(
        &mut self,
        span: Span,
        written: &[ast::Expression],
        types: &[Type],
    ) -> Checked<Vec<Set>> {
        let nested;
        let written = match written {
            [ast::Expression { kind: Kind::Tuple(all), .. }] if types.len() > 1 => {
                nested = all;
                &nested[..]
            }
            _ => written,
        };
        if let [one] = written {
            if matches!(one.kind, Kind::DontCare | Kind::Default) {
                return Ok(vec![Set::Any; types.len()]);
            }
            if let Some(set) = self.value_set_named(one) {
                return self.whole_value_set(one.span, set?, types);
            }
        }
        if written.len() != types.len() {
            let at = written.first().map_or(span, |one| one.span);
            let diagnostic =
                Diagnostic::error(at, format!("{} values are compared here", types.len()));
            return self.refuse(diagnostic.label(format!("{} are given", written.len())));
        }
        let all: Vec<_> = written.iter().zip(types).map(|(one, of)| self.set(one, of)).collect();
        all.into_iter().collect()
    }

    /// Returns the value set that an expression names.
    fn value_set_named(
        &mut self,
        written: &ast::Expression,
    ) -> Option<Checked<crate::ir::ValueSetId>> {
        let Kind::Name(name) = &written.kind else { return None };
        match self.scopes.find(name)? {
            Symbol::ValueSet(id) => Some(Ok(*id)),
            Symbol::Wrong => Some(Err(Reported)),
            _ => None,
        }
    }

    fn whole_value_set(
        &mut self,
        span: Span,
        id: crate::ir::ValueSetId,
        types: &[Type],
    ) -> Checked<Vec<Set>> {
        let of = self.program.value_sets[id.index()].of.clone();
        match types {
            [one] if *one == of || self.program.parts(&of) == [one.clone()] => {
                Ok(vec![Set::Of(id)])
            }
            [_] => {
                let what = self.describe(&of);
                self.wrong(span, format!("this value set holds {what}"))
            }
            _ => self.unsupported(span, "a value set for several values"),
        }
    }

    fn set(&mut self, written: &ast::Expression, of: &Type) -> Checked<Set> {
        match &written.kind {
            Kind::DontCare | Kind::Default => Ok(Set::Any),
            Kind::Binary(operator @ (Binary::Mask | Binary::Range), left, right) => {
                let number = self.representation(of);
                if !number.is_bits() {
                    let what = self.describe(of);
                    return self.wrong(written.span, format!("{what} has no masks and no ranges"));
                }
                let (left, right) = (self.expression_as(left, of), self.expression_as(right, of));
                let (left, right) = (left?, right?);
                Ok(match operator {
                    Binary::Mask => Set::Mask(left, right),
                    _ => Set::Range(left, right),
                })
            }
            _ => {
                if let Some(set) = self.value_set_named(written) {
                    let sets =
                        self.whole_value_set(written.span, set?, std::slice::from_ref(of))?;
                    return sets.into_iter().next().ok_or(Reported);
                }
                Ok(Set::Value(self.expression_as(written, of)?))
            }
        }
    }
}
