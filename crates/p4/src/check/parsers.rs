//! Parsers (P4_16 specification, section 13).

use std::collections::{HashMap, HashSet};

use p4_syntax::ast::{self, DeclarationKind};
use p4_syntax::diagnostic::Diagnostic;
use p4_syntax::source::Span;

use super::scope::Symbol;
use super::{Checked, Checker, Place, Reported, declared};
use crate::ir::{Block, BlockBody, State, StateId, Target, Transition, Type, ValueSet, ValueSetId};

/// Maximum size of a value set.
const MAX_VALUE_SET: u32 = 65_536;

impl Checker<'_> {
    pub(super) fn parser(
        &mut self,
        written: &ast::Declaration,
        parser: &ast::Parser,
    ) -> Checked<()> {
        self.block_declaration(written, |checker| {
            checker.within(Place::ParserLocals, |checker| checker.parser_body(written, parser))
        })
    }

    fn parser_body(&mut self, written: &ast::Declaration, parser: &ast::Parser) -> Checked<Block> {
        let opening = self.open_block(&parser.parameters, &parser.constructor);
        let first_set = self.program.value_sets.len();
        let mut locals = Vec::new();
        let mut wrong = false;
        for local in &parser.locals {
            let result = match &local.kind {
                DeclarationKind::ValueSet(of, size) => {
                    self.value_set(local, of, size).map(|()| None)
                }
                _ => self.local(local),
            };
            match result {
                Ok(statement) => locals.extend(statement),
                Err(Reported) => wrong = true,
            }
        }
        let value_sets = self.program.value_sets.len();
        let states = self.within(Place::State, |checker| checker.states(written, parser));
        let (opening, states) = (opening?, states?);
        if wrong {
            return Err(Reported);
        }
        Ok(Block {
            declared: declared(&written.name, &written.annotations),
            parameters: opening.parameters,
            constructor: opening.constructor,
            instances: Vec::new(),
            locals,
            body: BlockBody::Parser {
                states,
                value_sets: (first_set..value_sets).map(|at| ValueSetId(at as u32)).collect(),
            },
        })
    }

    fn value_set(
        &mut self,
        written: &ast::Declaration,
        of: &ast::Type,
        size: &ast::Expression,
    ) -> Checked<()> {
        let of = self.type_of(of)?;
        let plain = |checker: &Self, of: &Type| checker.representation(of).is_bits();
        let fits = plain(self, &of) || self.program.parts(&of).iter().any(|one| plain(self, one));
        if !fits {
            let what = self.describe(&of);
            return self.wrong(written.name.span, format!("a value set does not hold {what}"));
        }
        let size = self.known_size(size, "a value set's size", 1..=MAX_VALUE_SET)?;
        let id = ValueSetId(self.program.value_sets.len() as u32);
        let declared = declared(&written.name, &written.annotations);
        self.program.value_sets.push(ValueSet { declared, of, size });
        self.declare(&written.name, Symbol::ValueSet(id));
        Ok(())
    }

    /// Checks the states. `start` becomes the first.
    fn states(&mut self, written: &ast::Declaration, parser: &ast::Parser) -> Checked<Vec<State>> {
        let mut order: Vec<&ast::State> = parser.states.iter().collect();
        // A stable sort keeps the order of the other states.
        order.sort_by_key(|state| &*state.name.text != "start");
        let mut ids: HashMap<&str, Target> = HashMap::new();
        ids.insert("accept", Target::Accept);
        ids.insert("reject", Target::Reject);
        for (at, state) in (0..).zip(&order) {
            if ids.insert(&state.name.text, Target::State(StateId(at))).is_some() {
                let message = format!("there is a state `{}` already", state.name.text);
                return self.wrong(state.name.span, message);
            }
        }
        if order.first().is_none_or(|first| &*first.name.text != "start") {
            let diagnostic =
                Diagnostic::error(written.name.span, "the parser has no state `start`");
            return self.refuse(diagnostic.help("it begins there: `state start { … }`"));
        }
        let states: Vec<_> = order.iter().map(|state| self.state(state, &ids)).collect();
        let states = states.into_iter().collect::<Checked<Vec<_>>>()?;
        self.warn_of_unreachable(&states);
        Ok(states)
    }

    fn state(&mut self, written: &ast::State, ids: &HashMap<&str, Target>) -> Checked<State> {
        self.scopes.open();
        let body = self.statements(&written.body);
        let transition = match &written.transition {
            None => {
                let message = format!("`{}` ends without a transition", written.name.text);
                let diagnostic = Diagnostic::warning(written.name.span, message);
                let diagnostic = diagnostic.label("the packet is refused here");
                self.problems
                    .add(diagnostic.help("write `transition accept;`, or `reject` if it is meant"));
                Ok(Transition::To(Target::Reject))
            }
            Some(ast::Transition::To(name)) => self.target(name, ids).map(Transition::To),
            Some(ast::Transition::Select { span, values, cases }) => {
                self.select(*span, values, cases, ids)
            }
        };
        self.scopes.close();
        let declared = declared(&written.name, &written.annotations);
        Ok(State { declared, body: body?, transition: transition? })
    }

    fn target(&mut self, name: &ast::Name, ids: &HashMap<&str, Target>) -> Checked<Target> {
        if let Some(target) = ids.get(&*name.text) {
            return Ok(*target);
        }
        let mut diagnostic = Diagnostic::error(name.span, format!("no state `{}`", name.text));
        if let Some(similar) =
            p4_syntax::words::closest(&name.text, ids.keys().map(|&one| one.into()))
        {
            diagnostic = diagnostic.help(format!("there is `{similar}`"));
        }
        self.refuse(diagnostic)
    }

    fn select(
        &mut self,
        span: Span,
        values: &[ast::Expression],
        cases: &[(Vec<ast::Expression>, ast::Name)],
        ids: &HashMap<&str, Target>,
    ) -> Checked<Transition> {
        let values: Vec<_> = values.iter().map(|one| self.expression(one, None)).collect();
        let values = values.into_iter().collect::<Checked<Vec<_>>>()?;
        for value in &values {
            let plain = self.representation(&value.of).is_bits();
            if !plain && !matches!(value.of, Type::Bool | Type::Enum(_) | Type::Error) {
                let what = self.describe(&value.of);
                return self.wrong(value.span, format!("cannot select on {what}"));
            }
        }
        let types: Vec<Type> = values.iter().map(|value| value.of.clone()).collect();
        let mut all = Vec::with_capacity(cases.len());
        let mut wrong = false;
        let mut last: Option<Span> = None;
        for (sets, name) in cases {
            if let Some(before) = last.take() {
                let diagnostic = Diagnostic::warning(name.span, "this case is never met");
                self.problems.add(diagnostic.related(before, "this takes all that is left"));
            }
            match (self.sets(span, sets, &types), self.target(name, ids)) {
                (Ok(sets), Ok(target)) => {
                    if sets.iter().all(|set| matches!(set, crate::ir::Set::Any)) {
                        last = Some(name.span);
                    }
                    all.push((sets, target));
                }
                _ => wrong = true,
            }
        }
        if wrong { Err(Reported) } else { Ok(Transition::Select(values, all)) }
    }

    fn warn_of_unreachable(&mut self, states: &[State]) {
        let mut reached: HashSet<u32> = HashSet::from([0]);
        let mut next = vec![0_u32];
        while let Some(at) = next.pop() {
            let targets: Vec<Target> = match &states[at as usize].transition {
                Transition::To(target) => vec![*target],
                Transition::Select(_, cases) => cases.iter().map(|(_, target)| *target).collect(),
            };
            for target in targets {
                if let Target::State(StateId(to)) = target
                    && reached.insert(to)
                {
                    next.push(to);
                }
            }
        }
        for (at, state) in (0..).zip(states) {
            if !reached.contains(&at) {
                let message = format!("unreachable state `{}`", state.declared.name);
                self.problems.add(Diagnostic::warning(state.declared.span, message));
            }
        }
    }
}
