//! Headers, header unions and structs (P4_16 specification, sections 7.2.2 to 7.2.5).

use std::collections::HashSet;

use p4_syntax::ast;
use p4_syntax::diagnostic::Diagnostic;
use p4_syntax::source::Span;

use super::scope::Symbol;
use super::types::Extent;
use super::{Checked, Checker, Reported, declared};
use crate::ir::{Field, Record, RecordId, RecordKind, Type};

/// A generic header, header union or struct. Each list of type arguments creates an instance.
pub(super) struct GenericRecord<'c> {
    kind: RecordKind,
    written: &'c ast::Declaration,
    fields: &'c [ast::Field],
    instances: Vec<(Vec<Type>, RecordId)>,
}

impl<'c> Checker<'c> {
    pub(super) fn record_declaration(
        &mut self,
        written: &'c ast::Declaration,
        kind: RecordKind,
        fields: &'c [ast::Field],
    ) -> Checked<()> {
        if !written.type_parameters.is_empty() {
            let generic = GenericRecord { kind, written, fields, instances: Vec::new() };
            self.generic_records.push(generic);
            let symbol = Symbol::GenericRecord(self.generic_records.len() - 1);
            self.declare(&written.name, symbol);
            return Ok(());
        }
        self.declare(&written.name, Symbol::Unfinished);
        let id = self.new_record(written, kind, fields, Vec::new())?;
        self.declare(&written.name, Symbol::Type(Type::Record(id)));
        Ok(())
    }

    fn new_record(
        &mut self,
        written: &ast::Declaration,
        kind: RecordKind,
        fields: &[ast::Field],
        arguments: Vec<Type>,
    ) -> Checked<RecordId> {
        let mut names: HashSet<&str> = HashSet::new();
        let mut all = Vec::with_capacity(fields.len());
        let mut wrong = false;
        for field in fields {
            let Ok(of) = self.field_type(kind, field) else {
                wrong = true;
                continue;
            };
            if !names.insert(&field.name.text) {
                let name = &field.name.text;
                let _ = self.wrong::<()>(field.name.span, format!("duplicate field `{name}`"));
                wrong = true;
            }
            all.push(Field { declared: declared(&field.name, &field.annotations), of });
        }
        if wrong {
            return Err(Reported);
        }
        let extents = all.iter().map(|field| self.extent(&field.of));
        let of_arguments = self.extent_of_arguments(&arguments);
        let extent = extents.fold(of_arguments, Extent::and).above();
        self.check_extent(written.name.span, extent)?;
        self.extents.push(extent);
        let declared = declared(&written.name, &written.annotations);
        self.program.records.push(Record { declared, kind, fields: all, arguments });
        Ok(RecordId(self.program.records.len() as u32 - 1))
    }

    fn field_type(&mut self, kind: RecordKind, field: &ast::Field) -> Checked<Type> {
        let of = self.type_of(&field.of)?;
        let fits = match kind {
            RecordKind::Header => self.is_header_field(&of),
            RecordKind::Union => self.record(&of).is_some_and(|one| one.kind == RecordKind::Header),
            RecordKind::Struct => !matches!(
                of,
                Type::Integer | Type::Void | Type::Extern(..) | Type::Any | Type::MatchKind
            ),
        };
        if fits || matches!(of, Type::Parameter(_)) {
            return Ok(of);
        }
        let what = self.describe(&of);
        let message = match kind {
            RecordKind::Header => {
                format!("{what} cannot be the type of a header's field: it has no bits on the wire")
            }
            RecordKind::Union => format!("a union is made of headers, and {what} is not one"),
            RecordKind::Struct => format!("{what} cannot be the type of a struct's field"),
        };
        self.wrong(field.of.span, message)
    }

    fn is_header_field(&self, of: &Type) -> bool {
        match of {
            Type::Bool | Type::Bits { .. } | Type::Varbit(_) => true,
            Type::Enum(_) => self.representation(of).is_bits(),
            Type::New(_) => true,
            Type::Record(_) => {
                self.record(of).is_some_and(|one| one.kind == RecordKind::Struct)
                    && self.program.parts(of).iter().all(|one| self.is_header_field(one))
            }
            _ => false,
        }
    }

    /// Instantiates a generic record with these type arguments.
    pub(super) fn make_record(
        &mut self,
        generic: usize,
        arguments: Vec<Type>,
        span: Span,
    ) -> Checked<Type> {
        let GenericRecord { kind, written, fields, instances } = &self.generic_records[generic];
        let (kind, written, fields, count) = (*kind, *written, *fields, instances.len());
        if let Some((_, id)) = instances.iter().find(|(types, _)| *types == arguments) {
            return Ok(Type::Record(*id));
        }
        let name = ast::Name { text: written.name.text.clone(), span };
        self.check_arity(&name, written.type_parameters.len(), arguments.len())?;
        if count == 1000 {
            let diagnostic = Diagnostic::error(
                span,
                format!("`{}` is instantiated for too many types", name.text),
            );
            return self.refuse(diagnostic);
        }
        if self.instantiating.contains(&generic) {
            return self.calls_itself(&name);
        }
        // Field types are resolved in the scope of the declaration, not in that of the use.
        let inner = self.scopes.leave();
        self.scopes.open();
        for (parameter, of) in written.type_parameters.iter().zip(&arguments) {
            self.declare(parameter, Symbol::Type(of.clone()));
        }
        self.instantiating.push(generic);
        let id = self.new_record(written, kind, fields, arguments.clone());
        self.instantiating.pop();
        self.scopes.close();
        self.scopes.enter(inner);
        let id = id?;
        self.generic_records[generic].instances.push((arguments, id));
        Ok(Type::Record(id))
    }

    /// Instantiates the generic record with this name.
    pub(super) fn made_record(&mut self, name: &str, arguments: &[Type]) -> Option<Type> {
        let at = self.generic_records.iter().position(|one| &*one.written.name.text == name)?;
        let span = self.generic_records[at].written.name.span;
        self.make_record(at, arguments.to_vec(), span).ok()
    }
}
