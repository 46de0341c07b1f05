//! The types of registers and digests.

use std::collections::BTreeMap;

use p4info::v1 as info;

use crate::error::Error;

/// How many types one may be made of, and how deep: names may refer to each other.
const MOST_PARTS: usize = 4096;
const DEEPEST: usize = 32;

/// A field of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderField {
    /// In bits.
    pub width: u32,
    /// Two's complement.
    pub signed: bool,
}

/// The type of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// A bit<W> or an int<W>.
    Bits(HeaderField),
    /// A bool.
    Bool,
    /// The members of a struct, in their order.
    Struct(Vec<Type>),
    /// The same of a tuple.
    Tuple(Vec<Type>),
    /// The fields of a header.
    Header(Vec<HeaderField>),
    /// An enum whose members are numbers of this many bits.
    Enum(u32),
    /// Unions, stacks, errors, numbers of changing widths, names without numbers, translated types: a
    /// program may have them, and the control plane cannot read them here.
    Other,
}

impl Type {
    /// Whether all of it can be read and written.
    pub(crate) fn is_known(&self) -> bool {
        match self {
            Self::Other => false,
            Self::Struct(members) | Self::Tuple(members) => members.iter().all(Self::is_known),
            _ => true,
        }
    }

    /// What is expected, in words.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Bits(HeaderField { width, signed: false }) => format!("bit<{width}>"),
            Self::Bits(HeaderField { width, signed: true }) => format!("int<{width}>"),
            Self::Bool => "bool".into(),
            Self::Struct(members) => format!("a struct of {}", members.len()),
            Self::Tuple(members) => format!("a tuple of {}", members.len()),
            Self::Header(fields) => format!("a header of {} fields", fields.len()),
            Self::Enum(width) => format!("an enum of bit<{width}>"),
            Self::Other => "another one".into(),
        }
    }
}

/// Resolves names.
pub(crate) struct Resolver<'a> {
    named: &'a info::P4TypeInfo,
    left: usize,
    /// What asks, for errors.
    of: &'a str,
}

impl<'a> Resolver<'a> {
    pub(crate) fn new(named: &'a info::P4TypeInfo, of: &'a str) -> Self {
        Self { named, left: MOST_PARTS, of }
    }

    fn bad(&self, problem: &'static str) -> Error {
        Error::Info { of: self.of.to_owned(), problem }
    }

    /// The type that a description is of.
    pub(crate) fn resolve(
        &mut self,
        spec: Option<&info::P4DataTypeSpec>,
        depth: usize,
    ) -> Result<Type, Error> {
        use info::p4_data_type_spec::TypeSpec;
        if depth == DEEPEST || self.left == 0 {
            return Err(self.bad("its type is too large, or made of itself"));
        }
        self.left -= 1;
        let spec = spec.and_then(|spec| spec.type_spec.as_ref());
        let Some(spec) = spec else { return Ok(Type::Other) };
        match spec {
            TypeSpec::Bitstring(spec) => Ok(self.bits(Some(spec))?.map_or(Type::Other, Type::Bits)),
            TypeSpec::Bool(_) => Ok(Type::Bool),
            TypeSpec::Tuple(spec) => {
                let members = spec.members.iter();
                let members = members.map(|member| self.resolve(Some(member), depth + 1));
                Ok(Type::Tuple(members.collect::<Result<_, _>>()?))
            }
            TypeSpec::Struct(name) => {
                let spec = self.find(&self.named.structs, &name.name)?;
                let members = spec.members.iter();
                let members = members.map(|one| self.resolve(one.type_spec.as_ref(), depth + 1));
                Ok(Type::Struct(members.collect::<Result<_, _>>()?))
            }
            TypeSpec::Header(name) => {
                let spec = self.find(&self.named.headers, &name.name)?;
                self.left = self.left.saturating_sub(spec.members.len());
                let fields = spec.members.iter().map(|one| self.bits(one.type_spec.as_ref()));
                let fields: Option<_> = fields.collect::<Result<_, _>>()?;
                Ok(fields.map_or(Type::Other, Type::Header))
            }
            TypeSpec::SerializableEnum(name) => {
                let spec = self.find(&self.named.serializable_enums, &name.name)?;
                let width = spec.underlying_type.as_ref().map_or(0, |of| of.bitwidth);
                Ok(Type::Enum(self.width(width)?))
            }
            TypeSpec::NewType(name) => {
                use info::p4_new_type_spec::Representation;
                let spec = self.find(&self.named.new_types, &name.name)?;
                match &spec.representation {
                    Some(Representation::OriginalType(of)) => self.resolve(Some(of), depth + 1),
                    _ => Ok(Type::Other),
                }
            }
            _ => Ok(Type::Other),
        }
    }

    fn find<T>(&self, among: &'a BTreeMap<String, T>, name: &str) -> Result<&'a T, Error> {
        among.get(name).ok_or_else(|| self.bad("the name of its type is not explained"))
    }

    /// None if its width changes.
    fn bits(
        &self,
        spec: Option<&info::P4BitstringLikeTypeSpec>,
    ) -> Result<Option<HeaderField>, Error> {
        use info::p4_bitstring_like_type_spec::TypeSpec;
        let (width, signed) = match spec.and_then(|spec| spec.type_spec.as_ref()) {
            Some(TypeSpec::Bit(of)) => (of.bitwidth, false),
            Some(TypeSpec::Int(of)) => (of.bitwidth, true),
            _ => return Ok(None),
        };
        Ok(Some(HeaderField { width: self.width(width)?, signed }))
    }

    fn width(&self, width: i32) -> Result<u32, Error> {
        width_of(width).ok_or_else(|| self.bad("it has a width that no number has"))
    }
}

/// The widest number.
const WIDEST: u32 = 65_536;

/// A width, if it is one.
pub(crate) fn width_of(width: i32) -> Option<u32> {
    u32::try_from(width).ok().filter(|width| (1..=WIDEST).contains(width))
}
