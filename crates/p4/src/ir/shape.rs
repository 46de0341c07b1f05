//! Composition, wire size and initial value of types.

use super::program::Program;
use super::types::{RecordKind, Type};
use super::value::Value;

impl Program {
    /// Returns the types of the parts of a value of this type.
    pub fn parts(&self, of: &Type) -> Vec<Type> {
        match of {
            Type::Record(id) => {
                self.records[id.index()].fields.iter().map(|field| field.of.clone()).collect()
            }
            Type::Stack(of, size) => vec![(**of).clone(); *size as usize],
            Type::Tuple(all) => all.to_vec(),
            _ => Vec::new(),
        }
    }

    /// Returns the initial value of a variable: zeros, and invalid headers.
    pub fn initial(&self, of: &Type) -> Value {
        match of {
            Type::Bool => Value::Bool(false),
            Type::Error => Value::Error(0),
            Type::Varbit(_) => Value::Varbit { bits: 0, value: 0.into() },
            Type::String => Value::String("".into()),
            Type::Enum(id) => match self.enums[id.index()].representation {
                Some(_) => Value::Integer(0.into()),
                None => Value::Member(0),
            },
            Type::New(id) => self.initial(&self.new_types[id.index()].of),
            Type::Tuple(types) => {
                Value::record(types.iter().map(|one| self.initial(one)).collect())
            }
            Type::Stack(of, size) => {
                Value::Stack { next: 0, elements: vec![self.initial(of); *size as usize] }
            }
            Type::Record(id) => {
                let record = &self.records[id.index()];
                Value::Record {
                    valid: record.kind != RecordKind::Header,
                    fields: record.fields.iter().map(|field| self.initial(&field.of)).collect(),
                }
            }
            _ => Value::Integer(0.into()),
        }
    }

    /// Returns the minimum and maximum size in bits on the wire; None for types without a wire
    /// format.
    pub fn size_of(&self, of: &Type) -> Option<(u32, u32)> {
        match of {
            Type::Bool => Some((1, 1)),
            Type::Bits { width, .. } => Some((*width, *width)),
            Type::Varbit(width) => Some((0, *width)),
            Type::Enum(id) => self.size_of(self.enums[id.index()].representation.as_ref()?),
            Type::New(id) => self.size_of(&self.new_types[id.index()].of),
            Type::Tuple(types) => self.sum_of_sizes(types.iter()),
            Type::Stack(of, count) => {
                let (least, most) = self.size_of(of)?;
                Some((least.saturating_mul(*count), most.saturating_mul(*count)))
            }
            Type::Record(id) => {
                let record = &self.records[id.index()];
                let sizes = record.fields.iter().map(|field| &field.of);
                if record.kind != RecordKind::Union {
                    return self.sum_of_sizes(sizes);
                }
                let all: Vec<_> = sizes.map(|of| self.size_of(of)).collect::<Option<_>>()?;
                // The size of a union is that of its largest header (section 9).
                let least = all.iter().map(|(least, _)| *least).max()?;
                Some((least, all.iter().map(|(_, most)| *most).max()?))
            }
            _ => None,
        }
    }

    fn sum_of_sizes<'t>(&self, types: impl Iterator<Item = &'t Type>) -> Option<(u32, u32)> {
        types.map(|of| self.size_of(of)).try_fold((0, 0), |(least, most), one| {
            let (low, high) = one?;
            Some((u32::saturating_add(least, low), u32::saturating_add(most, high)))
        })
    }

    /// Returns the widths in bits of the numbers that a value consists of, in order; None if it is
    /// not plain data.
    pub fn number_widths(&self, of: &Type) -> Option<Vec<u32>> {
        match self.representation(of) {
            Type::Bool => Some(vec![1]),
            Type::Bits { width, .. } if width > 0 => Some(vec![width]),
            // Enum members and errors are represented by their index.
            Type::Error | Type::Enum(_) => Some(vec![32]),
            Type::Record(_) | Type::Tuple(_) if !self.is_header(of) && !self.is_union(of) => {
                let parts = self.parts(of);
                let all: Option<Vec<_>> = parts.iter().map(|of| self.number_widths(of)).collect();
                all.map(|all| all.concat())
            }
            _ => None,
        }
    }

    /// Returns true if the type is a header.
    pub fn is_header(&self, of: &Type) -> bool {
        matches!(of, Type::Record(id) if self.records[id.index()].kind == RecordKind::Header)
    }

    /// Returns true for a header union.
    pub fn is_union(&self, of: &Type) -> bool {
        matches!(of, Type::Record(id) if self.records[id.index()].kind == RecordKind::Union)
    }
}
