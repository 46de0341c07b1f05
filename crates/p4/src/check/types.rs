//! Type resolution (P4_16 specification, section 7), and type names for diagnostics.

use std::sync::Arc;

use num_traits::ToPrimitive;
use p4_syntax::ast::{self, TypeKind};
use p4_syntax::diagnostic::Diagnostic;
use p4_syntax::source::Span;

use super::scope::Symbol;
use super::{Checked, Checker, Reported};
use crate::ir::{ExternId, RecordId, RecordKind, Type, Value};

/// Maximum number of errors for which similar names are searched.
const MAX_SEARCHES: usize = 100;

/// Maximum width in bits of a run-time value.
pub(super) const MAX_WIDTH: u32 = 2048;
/// Maximum size of a header stack.
const MAX_STACK: u32 = 256;
/// Maximum number of fields of a type, including nested ones.
const MAX_FIELDS: u64 = 65_536;

/// Maximum nesting depth of types.
const MAX_DEPTH: usize = 64;

/// Size of a type: the number of fields, including nested ones, and the nesting depth.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Extent {
    fields: u64,
    depth: usize,
}

impl Extent {
    /// Combines the sizes of two sibling types.
    pub(super) fn and(self, other: Self) -> Self {
        let fields = self.fields.saturating_add(other.fields);
        Self { fields, depth: self.depth.max(other.depth) }
    }

    /// Returns the size of a type that contains this one. A type without fields counts as one:
    /// types of such types also grow exponentially.
    pub(super) fn above(self) -> Self {
        Self { depth: self.depth + 1, fields: self.fields.max(1) }
    }
}

impl<'c> Checker<'c> {
    /// Resolves a type.
    pub(super) fn type_of(&mut self, written: &ast::Type) -> Checked<Type> {
        let of = self.type_as_written(written)?;
        self.check_extent(written.span, self.extent(&of))?;
        Ok(of)
    }

    /// Limits the size of a type. Types that contain another twice grow exponentially.
    pub(super) fn check_extent(&mut self, span: Span, extent: Extent) -> Checked<()> {
        if extent.fields > MAX_FIELDS {
            return self.wrong(span, format!("this type has more than {MAX_FIELDS} fields in all"));
        }
        if extent.depth > MAX_DEPTH {
            return self.wrong(span, format!("this type is more than {MAX_DEPTH} types deep"));
        }
        Ok(())
    }

    /// Returns the size of a type.
    pub(super) fn extent(&self, of: &Type) -> Extent {
        match of {
            Type::Record(id) => self.extents[id.index()],
            Type::Stack(element, size) => {
                let one = self.extent(element);
                let fields = one.fields.max(1).saturating_mul(u64::from(*size));
                Extent { fields, ..one }.above()
            }
            Type::Tuple(all) => {
                let all = all.iter().map(|one| self.extent(one));
                all.fold(Extent::default(), Extent::and).above()
            }
            Type::List(of) => self.extent(of).above(),
            Type::Extern(_, arguments) => {
                let all = arguments.iter().map(|one| self.extent(one));
                all.fold(Extent::default(), Extent::and).above()
            }
            Type::New(id) => self.extent(&self.program.new_types[id.index()].of).above(),
            _ => Extent { fields: 1, depth: 1 },
        }
    }

    /// Returns the depth of a record's type arguments, of which it need not have a field.
    pub(super) fn extent_of_arguments(&self, arguments: &[Type]) -> Extent {
        let all = arguments.iter().map(|one| self.extent(one));
        Extent { fields: 0, ..all.fold(Extent::default(), Extent::and) }
    }

    fn type_as_written(&mut self, written: &ast::Type) -> Checked<Type> {
        Ok(match &written.kind {
            TypeKind::Bool => Type::Bool,
            TypeKind::Int => Type::Integer,
            TypeKind::Bits { width, signed } => {
                let least = u32::from(*signed);
                let width = self.known_size(width, "a width", least..=MAX_WIDTH)?;
                Type::Bits { width, signed: *signed }
            }
            TypeKind::Varbit(width) => {
                Type::Varbit(self.known_size(width, "a width", 0..=MAX_WIDTH)?)
            }
            TypeKind::String => Type::String,
            TypeKind::Error => Type::Error,
            TypeKind::MatchKind => Type::MatchKind,
            TypeKind::Void => Type::Void,
            TypeKind::Any => Type::Any,
            TypeKind::Named(name, arguments) => return self.named_type(name, arguments),
            TypeKind::Stack(element, size) => {
                let of = self.type_of(element)?;
                if !self.is_header_or_union(&of) && !matches!(of, Type::Parameter(_)) {
                    let what = self.describe(&of);
                    let wrong = Diagnostic::error(element.span, "only headers can be stacked");
                    let wrong = wrong.label(format!("this is {what}"));
                    return self.refuse(if of.is_bits() {
                        wrong
                            .help("`bit<8>` has eight bits, and a `Register` keeps values by index")
                    } else {
                        wrong
                    });
                }
                let size = self.known_size(size, "a stack's size", 1..=MAX_STACK)?;
                Type::Stack(Arc::new(of), size)
            }
            TypeKind::Tuple(types) => Type::Tuple(self.types_of(types)?.into()),
            TypeKind::List(of) => Type::List(Arc::new(self.type_of(of)?)),
        })
    }

    pub(super) fn types_of(&mut self, written: &[ast::Type]) -> Checked<Vec<Type>> {
        // Resolve each of them, to report all errors.
        let all: Vec<_> = written.iter().map(|one| self.type_of(one)).collect();
        all.into_iter().collect()
    }

    fn named_type(&mut self, name: &ast::Name, arguments: &'_ [ast::Type]) -> Checked<Type> {
        let arguments = self.types_of(arguments)?;
        let symbol = self.find(name)?;
        match symbol {
            Symbol::Type(of) if arguments.is_empty() => Ok(of),
            Symbol::GenericRecord(record) => self.make_record(record, arguments, name.span),
            Symbol::GenericExtern(id) => {
                let wanted = self.program.externs[id.index()].generic.len();
                self.check_arity(name, wanted, arguments.len())?;
                Ok(Type::Extern(id, arguments.into()))
            }
            Symbol::Type(_) => self.wrong(name.span, format!("`{}` is not generic", name.text)),
            Symbol::Wrong => Err(Reported),
            Symbol::Unfinished => self.calls_itself(name),
            _ => self.wrong(name.span, format!("`{}` is not a type", name.text)),
        }
    }

    pub(super) fn check_arity(
        &mut self,
        name: &ast::Name,
        wanted: usize,
        given: usize,
    ) -> Checked<()> {
        if wanted == given {
            return Ok(());
        }
        let message = format!("`{}` is generic over {wanted} types", name.text);
        self.refuse(Diagnostic::error(name.span, message).label(format!("{given} are given")))
    }

    /// Looks up a name, or reports an error.
    pub(super) fn find(&mut self, name: &ast::Name) -> Checked<Symbol> {
        self.find_text(&name.text, name.span)
    }

    pub(super) fn find_text(&mut self, name: &str, span: Span) -> Checked<Symbol> {
        if let Some(symbol) = self.scopes.find(name) {
            return Ok(symbol.clone());
        }
        let unknown = self.unknown(name, span);
        self.refuse(unknown)
    }

    /// Returns the diagnostic for an undeclared name.
    fn unknown(&self, name: &str, span: Span) -> Diagnostic {
        let unknown = Diagnostic::error(span, format!("`{name}` is not declared"));
        // A search takes time in proportion to the program.
        if self.problems.errors() > MAX_SEARCHES {
            return unknown;
        }
        if let Some(diagnostic) = self.elsewhere.tell_below(&unknown, name, self.around) {
            return diagnostic;
        }
        let similar = self.scopes.similar(name).map(|similar| format!("`{similar}` is"));
        // All names of one or two letters are similar.
        let is_likely = similar.is_some() && name.chars().count() > 2;
        if !is_likely
            && let Some(diagnostic) = self.elsewhere.tell_other(&unknown, name, self.around)
        {
            return diagnostic;
        }
        let other = p4_syntax::words::counterpart(name).map(str::to_owned);
        match other.or(similar).or_else(|| p4_syntax::words::meant(name)) {
            Some(help) => unknown.help(help),
            None => unknown,
        }
    }

    pub(super) fn calls_itself<T>(&mut self, name: &ast::Name) -> Checked<T> {
        let message = format!("`{}` is used in its own declaration", name.text);
        let diagnostic = Diagnostic::error(name.span, message);
        self.refuse(
            diagnostic.help("P4 has no recursion: a packet's work has an end that is known"),
        )
    }

    /// Evaluates a constant number within bounds.
    pub(super) fn known_size(
        &mut self,
        written: &ast::Expression,
        what: &str,
        bounds: std::ops::RangeInclusive<u32>,
    ) -> Checked<u32> {
        let found = self.expression(written, None)?;
        let Some(Value::Integer(value)) = found.constant() else {
            let message = format!("{what} is a number that is known when the program is compiled");
            return self.wrong(written.span, message);
        };
        match value.to_u32() {
            Some(size) if bounds.contains(&size) => Ok(size),
            _ => {
                let (least, most) = (bounds.start(), bounds.end());
                let message = format!("{what} of {value}");
                let diagnostic = Diagnostic::error(written.span, message);
                self.refuse(diagnostic.label(format!("expected {least} to {most}")))
            }
        }
    }

    // ---- properties of types ----

    pub(super) fn record(&self, of: &Type) -> Option<&crate::ir::Record> {
        match of {
            Type::Record(id) => Some(&self.program.records[id.index()]),
            _ => None,
        }
    }

    pub(super) fn is_header_or_union(&self, of: &Type) -> bool {
        self.record(of).is_some_and(|record| record.kind != RecordKind::Struct)
    }

    /// Returns the underlying type of a serializable enumeration or a new type; other types are
    /// returned unchanged.
    pub(super) fn representation(&self, of: &Type) -> Type {
        self.program.representation(of)
    }

    /// Substitutes type arguments for type parameters.
    pub(super) fn substitute(&mut self, of: &Type, types: &[Option<Type>]) -> Type {
        match of {
            Type::Parameter(n) => match types.get(*n as usize) {
                Some(Some(known)) => known.clone(),
                _ => of.clone(),
            },
            Type::Stack(element, size) => {
                Type::Stack(Arc::new(self.substitute(element, types)), *size)
            }
            Type::List(element) => Type::List(Arc::new(self.substitute(element, types))),
            Type::Tuple(all) => {
                Type::Tuple(all.iter().map(|one| self.substitute(one, types)).collect())
            }
            Type::Extern(id, all) => {
                Type::Extern(*id, all.iter().map(|one| self.substitute(one, types)).collect())
            }
            Type::Record(id) if !self.program.records[id.index()].arguments.is_empty() => {
                self.substitute_record(*id, types)
            }
            _ => of.clone(),
        }
    }

    fn substitute_record(&mut self, id: RecordId, types: &[Option<Type>]) -> Type {
        let record = self.program.records[id.index()].clone();
        let arguments: Vec<Type> =
            record.arguments.iter().map(|one| self.substitute(one, types)).collect();
        if arguments == record.arguments {
            return Type::Record(id);
        }
        self.made_record(&record.declared.name, &arguments).unwrap_or(Type::Record(id))
    }

    /// Infers the type parameters in `wanted` from `given`. Returns true if the types unify.
    pub(super) fn unify(wanted: &Type, given: &Type, types: &mut [Option<Type>]) -> bool {
        let mut all = |wanted: &[Type], given: &[Type]| {
            wanted.len() == given.len()
                && wanted.iter().zip(given).all(|(one, other)| Self::unify(one, other, types))
        };
        match (wanted, given) {
            (Type::Any, _) => true,
            (Type::Stack(wanted, size), Type::Stack(given, others)) if size == others => {
                Self::unify(wanted, given, types)
            }
            (Type::List(wanted), Type::List(given)) => Self::unify(wanted, given, types),
            (Type::Tuple(wanted), Type::Tuple(given)) => all(wanted, given),
            (Type::Extern(wanted, types), Type::Extern(given, others)) if wanted == given => {
                all(types, others)
            }
            (Type::Parameter(n), _) => match types.get_mut(*n as usize) {
                Some(Some(known)) => known == given,
                Some(unknown) => {
                    *unknown = Some(given.clone());
                    true
                }
                // A type parameter of an enclosing declaration, which is not being instantiated.
                None => wanted == given,
            },
            _ => wanted == given,
        }
    }

    // ---- names of types ----

    /// Formats the type in P4 syntax.
    pub(super) fn describe(&self, of: &Type) -> String {
        format!("`{}`", self.describe_plain(of))
    }

    fn describe_plain(&self, of: &Type) -> String {
        let generic = |name: &str, types: &[Type]| {
            let all: Vec<_> = types.iter().map(|one| self.describe_plain(one)).collect();
            if all.is_empty() { name.to_owned() } else { format!("{name}<{}>", all.join(", ")) }
        };
        match of {
            Type::Bool => "bool".into(),
            Type::Bits { width, signed } => {
                format!("{}<{width}>", if *signed { "int" } else { "bit" })
            }
            Type::Integer => "int".into(),
            Type::Varbit(width) => format!("varbit<{width}>"),
            Type::String => "string".into(),
            Type::Error => "error".into(),
            Type::MatchKind => "match_kind".into(),
            Type::Void => "void".into(),
            Type::Enum(id) => self.program.enums[id.index()].declared.name.to_string(),
            Type::Record(id) => {
                let record = &self.program.records[id.index()];
                generic(&record.declared.name, &record.arguments)
            }
            Type::Stack(element, size) => format!("{}[{size}]", self.describe_plain(element)),
            Type::Tuple(all) => generic("tuple", all),
            Type::List(element) => format!("list<{}>", self.describe_plain(element)),
            Type::New(id) => self.program.new_types[id.index()].declared.name.to_string(),
            Type::Extern(id, all) => generic(&self.program.externs[id.index()].declared.name, all),
            Type::Parameter(n) => format!("T{n}"),
            Type::Any => "_".into(),
        }
    }

    /// Returns true if the type is the extern object of this name.
    pub(super) fn is_extern(&self, of: &Type, name: &str) -> bool {
        matches!(of, Type::Extern(id, _) if &*self.extern_named(*id).declared.name == name)
    }

    pub(super) fn extern_named(&self, id: ExternId) -> &crate::ir::Extern {
        &self.program.externs[id.index()]
    }
}
