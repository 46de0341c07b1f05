//! Conversion of register and digest values from and to messages.

use crate::error::{Error, ValueError, named};
use crate::types::{HeaderField, Type};
use crate::v1::{P4Data, P4Header, P4StructLike, p4_data};
use crate::values::{self, Bits};

/// A value of a [`Type`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Data {
    /// A number or an enum member.
    Bits(Bits),
    /// A bool.
    Bool(bool),
    /// Members of a struct or a tuple.
    Members(Vec<Data>),
    /// Fields of a header; `None` if the header is invalid.
    Header(Option<Vec<Bits>>),
}

impl Data {
    /// Upper bound of the value's memory in bytes, with its own struct.
    pub(crate) fn memory(&self) -> usize {
        /// Overhead of an allocation.
        const OVERHEAD: usize = 32;
        let bits = |bits: &Bits| size_of::<Bits>() + OVERHEAD + bits.len();
        size_of::<Self>()
            + match self {
                Self::Bits(number) => OVERHEAD + number.len(),
                Self::Bool(_) | Self::Header(None) => 0,
                Self::Members(all) => OVERHEAD + all.iter().map(Self::memory).sum::<usize>(),
                Self::Header(Some(fields)) => OVERHEAD + fields.iter().map(bits).sum::<usize>(),
            }
    }

    /// The zero value of a type.
    pub fn zero(of: &Type) -> Self {
        match of {
            Type::Bits(field) => Self::Bits(values::zero(field.width)),
            Type::Enum(width) => Self::Bits(values::zero(*width)),
            Type::Bool => Self::Bool(false),
            Type::Struct(members) | Type::Tuple(members) => {
                Self::Members(members.iter().map(Self::zero).collect())
            }
            Type::Header(_) | Type::Other => Self::Header(None),
        }
    }
}

/// Converts a value from a client's message; `name` is used in errors.
pub(crate) fn from_message(data: &P4Data, of: &Type, name: &str) -> Result<Data, Error> {
    use p4_data::Data as Message;
    let other = || Error::Value(ValueError::Data { of: named(name), wanted: of.name() });
    let members = |all: &P4StructLike, types: &[Type]| {
        if all.members.len() != types.len() {
            return Err(other());
        }
        let all = all.members.iter().zip(types);
        let all = all.map(|(one, of)| from_message(one, of, name));
        all.collect::<Result<_, _>>().map(Data::Members)
    };
    match (data.data.as_ref().ok_or_else(other)?, of) {
        (Message::Bitstring(string), Type::Bits(field)) => {
            Ok(Data::Bits(number(string, *field, name)?))
        }
        (Message::EnumValue(string), Type::Enum(width)) => {
            Ok(Data::Bits(number(string, HeaderField { width: *width, signed: false }, name)?))
        }
        (Message::Bool(is), Type::Bool) => Ok(Data::Bool(*is)),
        (Message::Struct(all), Type::Struct(types)) | (Message::Tuple(all), Type::Tuple(types)) => {
            members(all, types)
        }
        (Message::Header(header), Type::Header(_)) if !header.is_valid => {
            header.bitstrings.is_empty().then_some(Data::Header(None)).ok_or_else(other)
        }
        (Message::Header(header), Type::Header(fields)) => {
            if header.bitstrings.len() != fields.len() {
                return Err(other());
            }
            let all = header.bitstrings.iter().zip(fields.iter());
            let all = all.map(|(string, field)| number(string, *field, name));
            all.collect::<Result<_, _>>().map(|all| Data::Header(Some(all)))
        }
        _ => Err(other()),
    }
}

fn number(string: &[u8], field: HeaderField, name: &str) -> Result<Bits, Error> {
    let HeaderField { width, signed } = field;
    let bits = if signed { values::signed } else { values::unsigned }(string, width);
    bits.ok_or_else(|| Error::Value(ValueError::Width { of: named(name), width }))
}

/// Converts a value of the device to a message. A value of another type stays unset.
pub(crate) fn to_message(data: &Data, of: &Type) -> P4Data {
    use p4_data::Data as Message;
    let members = |all: &[Data], types: &[Type]| P4StructLike {
        members: all.iter().zip(types).map(|(one, of)| to_message(one, of)).collect(),
    };
    let data = match (data, of) {
        (Data::Bits(bits), Type::Bits(field)) => Some(Message::Bitstring(string(bits, *field))),
        (Data::Bits(bits), Type::Enum(_)) => Some(Message::EnumValue(values::shortest(bits))),
        (Data::Bool(is), Type::Bool) => Some(Message::Bool(*is)),
        (Data::Members(all), Type::Struct(types)) => Some(Message::Struct(members(all, types))),
        (Data::Members(all), Type::Tuple(types)) => Some(Message::Tuple(members(all, types))),
        (Data::Header(header), Type::Header(fields)) => {
            let strings = header.iter().flatten().zip(fields.iter());
            Some(Message::Header(P4Header {
                is_valid: header.is_some(),
                bitstrings: strings.map(|(bits, field)| string(bits, *field)).collect(),
            }))
        }
        _ => None,
    };
    P4Data { data }
}

fn string(bits: &[u8], field: HeaderField) -> Vec<u8> {
    match field.signed {
        true => values::shortest_signed(bits, field.width),
        false => values::shortest(bits),
    }
}
