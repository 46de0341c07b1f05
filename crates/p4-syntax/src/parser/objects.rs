//! Parsers, controls and actions.

use super::declarations::plain;
use super::{Parsed, Parser};
use crate::ast::{
    Annotation, Control, Declaration, DeclarationKind as Kind, Name, Parser as ParserObject, State,
    Transition,
};
use crate::diagnostic::Diagnostic;

impl Parser<'_> {
    pub(super) fn action(&mut self, annotations: Vec<Annotation>) -> Parsed<Declaration> {
        self.expect("action")?;
        let name = self.name("the action's name")?;
        let parameters = self.parameters()?;
        let kind = Kind::Action(parameters, self.block()?);
        Ok(plain(annotations, name, kind))
    }

    pub(super) fn parser(&mut self, annotations: Vec<Annotation>) -> Parsed<Declaration> {
        self.expect("parser")?;
        let name = self.name("the parser's name")?;
        self.types.insert(name.text.clone());
        let type_parameters = self.type_parameters()?;
        let parameters = self.parameters()?;
        if self.take(";") {
            let kind = Kind::ParserType(parameters);
            return Ok(Declaration { annotations, name, type_parameters, kind });
        }
        let constructor = if self.at("(") { self.parameters()? } else { Vec::new() };
        let (mut locals, mut states) = (Vec::new(), Vec::new());
        self.braced(true, |parser| {
            let annotations = parser.annotations()?;
            parser.check_word()?;
            if parser.at("state") {
                states.push(parser.state(annotations)?);
                return Ok(());
            }
            let local = parser.parser_local(annotations)?;
            if let Some(State { name, .. }) = states.first() {
                let late = "a parser declares its variables in front of its states";
                let wrong = Diagnostic::error(local.name.span, late);
                parser.problems.add(wrong.related(name.span, "the first state"));
            }
            locals.push(local);
            Ok(())
        })?;
        let kind = Kind::Parser(ParserObject { parameters, constructor, locals, states });
        Ok(Declaration { annotations, name, type_parameters, kind })
    }

    fn parser_local(&mut self, annotations: Vec<Annotation>) -> Parsed<Declaration> {
        match &*self.next().text {
            "const" => self.constant(annotations),
            "value_set" => self.value_set(annotations),
            _ => self.variable_or_instance(annotations),
        }
    }

    /// Parses `value_set<TYPE>(size) name;`.
    fn value_set(&mut self, annotations: Vec<Annotation>) -> Parsed<Declaration> {
        self.expect("value_set")?;
        self.expect("<")?;
        let of = self.parse_type()?;
        self.expect(">")?;
        self.expect("(")?;
        let size = self.expression()?;
        self.expect(")")?;
        let name = self.name("the set's name")?;
        self.expect(";")?;
        Ok(plain(annotations, name, Kind::ValueSet(of, size)))
    }

    fn state(&mut self, annotations: Vec<Annotation>) -> Parsed<State> {
        self.expect("state")?;
        let name = self.name("the state's name")?;
        let mut transition = None;
        let mut late = None;
        let statements = self.members(|parser| {
            if transition.is_some() {
                late.get_or_insert(parser.here());
            }
            if parser.at("transition") {
                transition = Some(parser.transition()?);
                return Ok(None);
            }
            parser.statement().map(Some)
        })?;
        if let Some(late) = late {
            let message = "unreachable statement: a state ends with its transition";
            self.problems.add(Diagnostic::error(late, message));
        }
        let body = statements.into_iter().flatten().collect();
        Ok(State { annotations, name, body, transition })
    }

    fn transition(&mut self) -> Parsed<Transition> {
        self.expect("transition")?;
        let start = self.here();
        if !self.take("select") {
            let to = self.state_name()?;
            self.expect(";")?;
            return Ok(Transition::To(to));
        }
        self.expect("(")?;
        let values = self.list(")", Self::expression)?;
        let span = self.since(start);
        let cases = self.members(|parser| {
            let sets = parser.sets()?;
            parser.expect(":")?;
            let to = parser.state_name()?;
            parser.expect(";")?;
            Ok((sets, to))
        })?;
        Ok(Transition::Select { span, values, cases })
    }

    fn state_name(&mut self) -> Parsed<Name> {
        self.name("a state's name, `accept` or `reject`")
    }

    pub(super) fn control(&mut self, annotations: Vec<Annotation>) -> Parsed<Declaration> {
        self.expect("control")?;
        let name = self.name("the control's name")?;
        self.types.insert(name.text.clone());
        let type_parameters = self.type_parameters()?;
        let parameters = self.parameters()?;
        if self.take(";") {
            let kind = Kind::ControlType(parameters);
            return Ok(Declaration { annotations, name, type_parameters, kind });
        }
        let constructor = if self.at("(") { self.parameters()? } else { Vec::new() };
        let (mut locals, mut apply) = (Vec::new(), None);
        let mark = self.problems.mark();
        self.braced(true, |parser| {
            let annotations = parser.annotations()?;
            if parser.statements_outside()? {
                apply.get_or_insert_default();
                return Ok(());
            }
            parser.check_word()?;
            match &*parser.next().text {
                "apply" if parser.look(1).is("{") => {
                    let span = parser.advance().span;
                    let block = parser.block()?;
                    if apply.replace(block).is_some() {
                        let again = Diagnostic::error(span, "a control has one `apply`");
                        parser.problems.add(again);
                    }
                }
                "const" => locals.push(parser.constant(annotations)?),
                "action" => locals.push(parser.action(annotations)?),
                "table" => locals.push(parser.table(annotations)?),
                _ => locals.push(parser.variable_or_instance(annotations)?),
            }
            Ok(())
        })?;
        // An error in the body may have been in `apply` itself.
        if apply.is_none() && self.problems.mark() == mark {
            let missing = Diagnostic::error(name.span, format!("`{}` has no `apply`", name.text));
            self.problems.add(missing.help("write `apply { }` at its end"));
        }
        let apply = apply.unwrap_or_default();
        let kind = Kind::Control(Control { parameters, constructor, locals, apply });
        Ok(Declaration { annotations, name, type_parameters, kind })
    }
}
