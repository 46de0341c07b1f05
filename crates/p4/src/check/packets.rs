//! Packet operations (P4_16 specification, sections 13.8 and 16).

use num_bigint::BigInt;
use p4_syntax::ast;
use p4_syntax::diagnostic::Diagnostic;

use super::calls::{Call, Called};
use super::{Checked, Checker, Place, constant};
use crate::ir::{Expression, ExpressionKind, RecordKind, StatementKind, Type};

impl Checker<'_> {
    pub(super) fn packet_in_method(&mut self, name: &ast::Name, call: Call<'_>) -> Checked<Called> {
        let why = format!("`{}` belongs in a parser's states", name.text);
        self.require(call.span, Place::State, &why)?;
        match (&*name.text, call.arguments) {
            ("extract", [header]) => self.extract(header, None, call),
            ("extract", [header, bits]) => self.extract(header, Some(bits), call),
            ("lookahead", []) => self.lookahead(call),
            ("advance", [ast::Argument { value: Some(bits), .. }]) => {
                let bits = self.expression_as(bits, &Type::bit(32))?;
                Ok(Called::Done(StatementKind::Advance(bits)))
            }
            ("length", []) => {
                let kind = ExpressionKind::PacketLength;
                Ok(Called::Value(Expression { span: call.span, of: Type::bit(32), kind }))
            }
            ("extract" | "lookahead" | "advance" | "length", _) => self.other_arguments(name, call),
            _ => {
                let names = ["extract", "lookahead", "advance", "length"].map(Into::into);
                self.no_packet_method(name, "packet_in", &names)
            }
        }
    }

    /// Reports a method call with unsupported arguments, and suggests the right ones.
    fn other_arguments<T>(&mut self, name: &ast::Name, call: Call<'_>) -> Checked<T> {
        let message = format!("no `{}` takes these arguments", name.text);
        let diagnostic = Diagnostic::error(call.span, message);
        self.refuse(diagnostic.help(match &*name.text {
            "extract" => "write `extract(header)`, or `extract(header, bits)` with a varbit field",
            "lookahead" => "write `lookahead<TYPE>()`",
            "advance" => "write `advance(bits)`",
            "emit" => "write `emit(header)`, once for each header",
            _ => "write `length()`",
        }))
    }

    fn no_packet_method<T>(
        &mut self,
        name: &ast::Name,
        of: &str,
        known: &[std::sync::Arc<str>],
    ) -> Checked<T> {
        let diagnostic = Diagnostic::error(name.span, format!("`{of}` has no `{}`", name.text));
        let all: Vec<_> = known.iter().map(|one| format!("`{one}`")).collect();
        self.refuse(diagnostic.help(format!("it has {}", all.join(", "))))
    }

    fn extract(
        &mut self,
        header: &ast::Argument,
        bits: Option<&ast::Argument>,
        call: Call<'_>,
    ) -> Checked<Called> {
        let Some(place) = &header.value else { return self.skip(call) };
        let place = self.expression(place, None);
        let bits = match bits.map(|argument| argument.value.as_ref()) {
            Some(Some(bits)) => Some(self.expression_as(bits, &Type::bit(32))?),
            Some(None) => return self.wrong(call.span, "the size of the varbit field is missing"),
            None => None,
        };
        let place = place?;
        self.check_place(&place)?;
        let what = self.describe(&place.of);
        let record = self.record(&place.of).filter(|record| record.kind == RecordKind::Header);
        let Some(record) = record else {
            let diagnostic = Diagnostic::error(place.span, "only a header is extracted");
            return self.refuse(diagnostic.label(format!("this is {what}")));
        };
        let varbits = record.fields.iter().filter(|one| matches!(one.of, Type::Varbit(_))).count();
        match (&bits, varbits) {
            (None, 0) | (Some(_), 1) => {}
            (None, _) => {
                let diagnostic = Diagnostic::error(call.span, format!("{what} has a varbit field"));
                return self.refuse(diagnostic.help("say its bits: `extract(header, bits)`"));
            }
            (Some(_), _) => {
                return self.wrong(call.span, format!("{what} has no varbit field"));
            }
        }
        Ok(Called::Done(StatementKind::Extract(place, bits)))
    }

    /// Checks `packet.extract<T>(_)`.
    fn skip(&mut self, call: Call<'_>) -> Checked<Called> {
        let [of] = call.types else {
            let diagnostic = Diagnostic::error(call.span, "cannot infer which header this is");
            return self.refuse(diagnostic.help("say the type: `extract<TYPE>(_)`"));
        };
        let of = self.type_of(of)?;
        let size = self.program.size_of(&of).filter(|(least, most)| least == most);
        let Some((bits, _)) = size.filter(|_| self.is_header_or_union(&of)) else {
            let what = self.describe(&of);
            return self.wrong(call.span, format!("{what} is not a header of fixed size"));
        };
        let bits = constant(call.span, Type::bit(32), BigInt::from(bits));
        Ok(Called::Done(StatementKind::Advance(bits)))
    }

    fn lookahead(&mut self, call: Call<'_>) -> Checked<Called> {
        let [of] = call.types else {
            let diagnostic = Diagnostic::error(call.span, "cannot infer which header to look for");
            return self.refuse(diagnostic.help("say the type: `lookahead<TYPE>()`"));
        };
        let of = self.type_of(of)?;
        let size = self.program.size_of(&of).filter(|(least, most)| least == most);
        if size.is_none() || self.program.is_union(&of) {
            let what = self.describe(&of);
            return self.wrong(call.span, format!("{what} does not have a fixed size"));
        }
        let kind = ExpressionKind::Lookahead;
        Ok(Called::Value(Expression { span: call.span, of, kind }))
    }

    pub(super) fn packet_out_method(
        &mut self,
        name: &ast::Name,
        call: Call<'_>,
    ) -> Checked<Called> {
        let ("emit", [ast::Argument { value: Some(value), .. }]) = (&*name.text, call.arguments)
        else {
            if &*name.text == "emit" {
                return self.other_arguments(name, call);
            }
            return self.no_packet_method(name, "packet_out", &["emit".into()]);
        };
        self.require(call.span, Place::Apply, "`emit` belongs in a deparser's `apply`")?;
        let value = self.expression(value, None)?;
        if !self.is_emitted(&value.of) {
            let what = self.describe(&value.of);
            let diagnostic = Diagnostic::error(value.span, "only headers are emitted");
            return self.refuse(diagnostic.label(format!("this is {what}")));
        }
        Ok(Called::Done(StatementKind::Emit(value)))
    }

    /// Returns true for a header, or a type that contains only headers.
    fn is_emitted(&self, of: &Type) -> bool {
        match of {
            Type::Stack(..) => true,
            Type::Record(_) if self.is_header_or_union(of) => true,
            Type::Record(_) => self.program.parts(of).iter().all(|one| self.is_emitted(one)),
            Type::Tuple(all) => all.iter().all(|one| self.is_emitted(one)),
            _ => false,
        }
    }
}
