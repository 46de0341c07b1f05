//! Types of registers and digests.

use std::collections::BTreeMap;
use std::sync::Arc;

use p4info::v1 as info;

use crate::error::{ConfigError, Error, named};

/// Limits of the number of parts and of the nesting depth of a type: names may be recursive.
const MAX_PARTS: usize = 4096;
const DEEPEST: usize = 32;

/// Maximum number of parts of all types of a p4info.
pub(crate) const MAX_TOTAL_PARTS: usize = 65_536;

/// A field of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderField {
    /// Width in bits.
    pub width: u32,
    /// True for two's complement.
    pub signed: bool,
}

/// Type of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// `bit<W>` or `int<W>`.
    Bits(HeaderField),
    /// `bool`.
    Bool,
    /// Struct, with its member types in order.
    Struct(Arc<[Type]>),
    /// Tuple, with its member types in order.
    Tuple(Arc<[Type]>),
    /// Header, with its fields in order.
    Header(Arc<[HeaderField]>),
    /// Serializable enum with members of this width in bits.
    Enum(u32),
    /// Unions, stacks, errors, `varbit`, enums without values, translated types. A program may use
    /// them, but the control plane cannot read them here.
    Other,
}

impl Type {
    /// True if all parts of the type are supported.
    pub(crate) fn is_known(&self) -> bool {
        match self {
            Self::Other => false,
            Self::Struct(members) | Self::Tuple(members) => members.iter().all(Self::is_known),
            _ => true,
        }
    }

    /// Description of the type for error messages.
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

/// Resolves a type specification of the object `of`. Subtracts the number of its parts from `left`,
/// the rest for all types.
pub(crate) fn resolve(
    named: &info::P4TypeInfo,
    of: &str,
    spec: Option<&info::P4DataTypeSpec>,
    left: &mut usize,
) -> Result<Type, Error> {
    let most = MAX_PARTS.min(*left);
    let too_many = match most {
        MAX_PARTS => "its type is too large, or recursive",
        _ => "the types of all registers and digests are too large",
    };
    let mut resolver = Resolver { named, left: most, of, too_many };
    let resolved = resolver.resolve(spec, 0)?;
    *left -= most - resolver.left;
    Ok(resolved)
}

/// Resolves type names.
struct Resolver<'a> {
    named: &'a info::P4TypeInfo,
    left: usize,
    /// Name of the object, for errors.
    of: &'a str,
    /// Error if no parts are left.
    too_many: &'static str,
}

impl<'a> Resolver<'a> {
    fn bad(&self, problem: &'static str) -> Error {
        Error::Config(ConfigError::Info { of: named(self.of), problem })
    }

    fn resolve(
        &mut self,
        spec: Option<&info::P4DataTypeSpec>,
        depth: usize,
    ) -> Result<Type, Error> {
        use info::p4_data_type_spec::TypeSpec;
        if depth == DEEPEST || self.left == 0 {
            return Err(self.bad(self.too_many));
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
                let left = self.left.checked_sub(spec.members.len());
                self.left = left.ok_or_else(|| self.bad(self.too_many))?;
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

    /// A bit string type; `None` for `varbit`.
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

/// Maximum width in bits.
const WIDEST: u32 = 65_536;

/// A valid width, or `None`.
pub(crate) fn width_of(width: i32) -> Option<u32> {
    u32::try_from(width).ok().filter(|width| (1..=WIDEST).contains(width))
}
