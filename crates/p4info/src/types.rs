//! Types of values that the control plane reads and writes.

use p4::ir::{Program, RecordId, RecordKind, Type};

use crate::v1;

/// Named types used in this P4Info.
pub(crate) type Types = v1::P4TypeInfo;

/// Returns the width of a value for the control plane: 32 for symbolic names, 0 for composite
/// types, for which P4Runtime has no values.
pub(crate) fn bits(program: &Program, of: &Type) -> i32 {
    if matches!(of, Type::Record(_) | Type::Tuple(_)) {
        return 0;
    }
    program.size_of(of).map_or(32, |(bits, _)| bits as i32)
}

/// Returns the name of a `type` declaration, and adds its description to `types`.
pub(crate) fn named(program: &Program, of: &Type, types: &mut Types) -> Option<v1::P4NamedType> {
    use v1::p4_new_type_spec::Representation;
    let Type::New(id) = of else { return None };
    let of = &program.new_types[id.index()];
    let name = of.declared.name.to_string();
    let inner = type_spec(program, &of.of, types);
    let representation = inner.map(Representation::OriginalType);
    types
        .new_types
        .insert(name.clone(), v1::P4NewTypeSpec { representation, ..Default::default() });
    Some(v1::P4NamedType { name })
}

pub(crate) fn type_spec(
    program: &Program,
    of: &Type,
    types: &mut Types,
) -> Option<v1::P4DataTypeSpec> {
    use v1::p4_data_type_spec::TypeSpec;
    let spec = match of {
        Type::Bool => TypeSpec::Bool(v1::P4BoolType {}),
        Type::Bits { .. } => TypeSpec::Bitstring(number(program, of)?),
        Type::New(_) => TypeSpec::NewType(named(program, of, types)?),
        Type::Tuple(members) => {
            let members = members.iter().map(|of| type_spec(program, of, types));
            TypeSpec::Tuple(v1::P4TupleTypeSpec { members: members.collect::<Option<_>>()? })
        }
        Type::Record(id) => record(program, *id, types)?,
        Type::Enum(id) => {
            let of = &program.enums[id.index()];
            let bitwidth = bits_of(of.representation.as_ref()?)?;
            let name = of.declared.name.to_string();
            let underlying_type = Some(v1::P4BitTypeSpec { bitwidth });
            let spec = v1::P4SerializableEnumTypeSpec { underlying_type, ..Default::default() };
            types.serializable_enums.insert(name.clone(), spec);
            TypeSpec::SerializableEnum(v1::P4NamedType { name })
        }
        _ => return None,
    };
    Some(v1::P4DataTypeSpec { type_spec: Some(spec) })
}

fn bits_of(of: &Type) -> Option<i32> {
    match of {
        Type::Bits { width, .. } => Some(*width as i32),
        _ => None,
    }
}

/// Returns the type of a header field.
fn number(program: &Program, of: &Type) -> Option<v1::P4BitstringLikeTypeSpec> {
    use v1::p4_bitstring_like_type_spec::TypeSpec as Bits;
    let bits = match of {
        Type::Bits { width, signed: true } => {
            Bits::Int(v1::P4IntTypeSpec { bitwidth: *width as i32 })
        }
        Type::Bits { width, signed: false } => {
            Bits::Bit(v1::P4BitTypeSpec { bitwidth: *width as i32 })
        }
        Type::Bool => Bits::Bit(v1::P4BitTypeSpec { bitwidth: 1 }),
        Type::New(id) => return number(program, &program.new_types[id.index()].of),
        Type::Enum(id) => {
            return number(program, program.enums[id.index()].representation.as_ref()?);
        }
        _ => return None,
    };
    Some(v1::P4BitstringLikeTypeSpec { type_spec: Some(bits), ..Default::default() })
}

/// Returns a struct type, or the type of a header that contains only numbers.
fn record(
    program: &Program,
    id: RecordId,
    types: &mut Types,
) -> Option<v1::p4_data_type_spec::TypeSpec> {
    use v1::p4_data_type_spec::TypeSpec;
    let of = &program.records[id.index()];
    // The name of an instance of a generic type includes its number.
    let name = match of.arguments.is_empty() {
        true => of.declared.name.to_string(),
        false => format!("{}.{}", of.declared.name, id.0),
    };
    let fields = of.fields.iter();
    let fields = fields.map(|field| (field.declared.name.to_string(), &field.of));
    let named = v1::P4NamedType { name: name.clone() };
    match of.kind {
        RecordKind::Struct => {
            let members = fields.map(|(name, of)| {
                let type_spec = Some(type_spec(program, of, types)?);
                Some(v1::p4_struct_type_spec::Member { name, type_spec })
            });
            let members = members.collect::<Option<_>>()?;
            let spec = v1::P4StructTypeSpec { members, ..Default::default() };
            types.structs.insert(name, spec);
            Some(TypeSpec::Struct(named))
        }
        RecordKind::Header => {
            let members = fields.map(|(name, of)| {
                let type_spec = Some(number(program, of)?);
                Some(v1::p4_header_type_spec::Member { name, type_spec })
            });
            let members = members.collect::<Option<_>>()?;
            let spec = v1::P4HeaderTypeSpec { members, ..Default::default() };
            types.headers.insert(name, spec);
            Some(TypeSpec::Header(named))
        }
        RecordKind::Union => None,
    }
}
