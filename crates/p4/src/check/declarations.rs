//! Top-level declarations, constants and enumerations (P4_16 specification, sections 7.2.1, 7.2.2
//! and 11).

use std::collections::HashSet;
use std::sync::Arc;

use num_bigint::BigInt;
use p4_syntax::ast::{self, DeclarationKind as Kind};
use p4_syntax::diagnostic::Diagnostic;

use super::scope::Symbol;
use super::{Checked, Checker, Reported, declared};
use crate::ir::arithmetic::range;
use crate::ir::{Enum, EnumId, NewType, NewTypeId, RecordKind, Type, Value};

impl<'c> Checker<'c> {
    pub(super) fn top_declaration(&mut self, written: &'c ast::Declaration) {
        let name = &written.name;
        let result = match &written.kind {
            Kind::Header(fields) => self.record_declaration(written, RecordKind::Header, fields),
            Kind::HeaderUnion(fields) => {
                self.record_declaration(written, RecordKind::Union, fields)
            }
            Kind::Struct(fields) => self.record_declaration(written, RecordKind::Struct, fields),
            Kind::Error(names) => {
                self.add_names(names, |checker| &mut checker.program.errors);
                return;
            }
            Kind::MatchKind(names) => {
                self.add_names(names, |checker| &mut checker.program.match_kinds);
                return;
            }
            Kind::Function(returns, parameters, body) => {
                self.function(written, returns, parameters, body);
                return;
            }
            Kind::ExternFunction(returns, parameters) => {
                self.extern_function(written, returns, parameters);
                return;
            }
            _ => self.declaration(written),
        };
        if let Err(Reported) = result {
            // Suppress follow-up errors.
            self.declare(name, Symbol::Wrong);
        }
    }

    /// Checks a declaration that is allowed at top level. Most of them are allowed in other places
    /// too.
    fn declaration(&mut self, written: &'c ast::Declaration) -> Checked<()> {
        let symbol = match &written.kind {
            Kind::Constant(of, value) => return self.constant_declaration(written, of, value),
            Kind::Typedef(of) => Symbol::Type(self.type_of(of)?),
            Kind::NewType(of) => self.new_type(written, of)?,
            Kind::Enum(of, members) => self.enumeration(written, of.as_ref(), members)?,
            Kind::ExternObject(methods) => return self.extern_object(written, methods),
            Kind::ParserType(parameters) => self.block_type(written, parameters, true)?,
            Kind::ControlType(parameters) => self.block_type(written, parameters, false)?,
            Kind::Package(parameters) => self.package(written, parameters)?,
            Kind::Parser(parser) => return self.parser(written, parser),
            Kind::Control(control) => return self.control(written, control),
            Kind::Instance(of, arguments) => return self.top_instance(written, of, arguments),
            Kind::Action(parameters, body) => return self.action(written, parameters, body),
            Kind::Table(_) => return self.wrong(written.name.span, "a table belongs in a control"),
            Kind::ValueSet(..) => {
                return self.unsupported(written.name.span, "a value set at the top");
            }
            // The caller handles these.
            _ => return Err(Reported),
        };
        self.declare(&written.name, symbol);
        Ok(())
    }

    pub(super) fn constant_declaration(
        &mut self,
        written: &ast::Declaration,
        of: &ast::Type,
        value: &ast::Expression,
    ) -> Checked<()> {
        let of = self.type_of(of)?;
        let value = self.expression_as(value, &of)?;
        if !self.is_known(&value) {
            let message = "the value of a constant is known when the program is compiled";
            return self.wrong(value.span, message);
        }
        self.declare(&written.name, Symbol::Constant(value));
        Ok(())
    }

    /// Returns true for a constant, or a list of constants.
    pub(super) fn is_known(&self, value: &crate::ir::Expression) -> bool {
        match &value.kind {
            crate::ir::ExpressionKind::Constant(_) | crate::ir::ExpressionKind::Invalid => true,
            crate::ir::ExpressionKind::Fields(all) => all.iter().all(|one| self.is_known(one)),
            _ => false,
        }
    }

    fn new_type(&mut self, written: &ast::Declaration, of: &ast::Type) -> Checked<Symbol> {
        let of = self.type_of(of)?;
        if !matches!(of, Type::Bits { .. } | Type::Bool | Type::New(_)) {
            let what = self.describe(&of);
            return self.wrong(written.name.span, format!("a new type cannot be based on {what}"));
        }
        self.check_extent(written.name.span, self.extent(&of).above())?;
        let declared = declared(&written.name, &written.annotations);
        self.program.new_types.push(NewType { declared, of });
        Ok(Symbol::Type(Type::New(NewTypeId(self.program.new_types.len() as u32 - 1))))
    }

    fn enumeration(
        &mut self,
        written: &ast::Declaration,
        of: Option<&ast::Type>,
        members: &[(ast::Name, Option<ast::Expression>)],
    ) -> Checked<Symbol> {
        let representation = of.map(|of| self.type_of(of)).transpose()?;
        if representation.as_ref().is_some_and(|of| !of.is_bits()) {
            let message = "an enumeration is represented by bit<…> or int<…>";
            return self.wrong(written.name.span, message);
        }
        let mut names = HashSet::new();
        let mut all = Vec::new();
        for (name, value) in members {
            if !names.insert(&*name.text) {
                return self.wrong(name.span, format!("duplicate member `{}`", name.text));
            }
            let value = self.enum_value(name, representation.as_ref(), value.as_ref())?;
            all.push((name.text.clone(), value));
        }
        let declared = declared(&written.name, &written.annotations);
        self.program.enums.push(Enum { declared, representation, members: all });
        Ok(Symbol::Type(Type::Enum(EnumId(self.program.enums.len() as u32 - 1))))
    }

    fn enum_value(
        &mut self,
        name: &ast::Name,
        representation: Option<&Type>,
        value: Option<&ast::Expression>,
    ) -> Checked<Option<BigInt>> {
        let (of, value) = match (representation, value) {
            (None, None) => return Ok(None),
            (Some(of), Some(value)) => (of, value),
            (Some(_), None) => {
                let diagnostic =
                    Diagnostic::error(name.span, format!("`{}` has no value", name.text));
                return self
                    .refuse(diagnostic.help("each name of a represented enumeration has one"));
            }
            (None, Some(value)) => {
                let diagnostic =
                    Diagnostic::error(value.span, "this enumeration is not represented");
                return self.refuse(diagnostic.help("say as what: `enum bit<8> Name { … }`"));
            }
        };
        let span = value.span;
        let found = self.expression(value, None)?;
        match (found.constant(), range(of)) {
            (Some(Value::Integer(number)), Some((least, most)))
                if (&least..=&most).contains(&number) =>
            {
                Ok(Some(number.clone()))
            }
            (Some(Value::Integer(number)), _) => {
                let what = self.describe(of);
                self.wrong(span, format!("{number} does not fit {what}"))
            }
            _ => self.wrong(span, "expected a number that is known when the program is compiled"),
        }
    }

    fn add_names(&mut self, names: &[ast::Name], list: fn(&mut Self) -> &mut Vec<Arc<str>>) {
        for name in names {
            if list(self).contains(&name.text) {
                let _ = self.wrong::<()>(name.span, format!("`{}` is declared twice", name.text));
            } else {
                list(self).push(name.text.clone());
            }
        }
    }
}
