//! Memory that a program of a client takes.
#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

use p4info::v1 as info;
use p4runtime::{ObjectInfoError, Pipeline, object_info};
use testkit::allocations::{Counting, peak_of};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn p4info_inside_an_object_is_counted_before_it_is_decoded() {
    // The sizes of the messages are computed once.
    assert_eq!(object_info(&[]), Ok(Default::default()));
    // `12 00` is an empty table (`P4Info.tables`, field 2).
    let tables = [0x12, 0].repeat(1 << 20);
    let (read, bytes) = peak_of(|| object_info(&tables));
    assert!(matches!(read, Err(ObjectInfoError::TooLarge(_))), "{read:?}");
    assert!(bytes < 1 << 20, "{bytes} bytes");
    assert_eq!(object_info(&[0x12, 0xff]), Err(ObjectInfoError::Malformed));
}

/// A p4info with this number of registers, all of one struct type of 4000 numbers.
fn registers(count: u32) -> info::P4Info {
    use info::p4_bitstring_like_type_spec::TypeSpec as Bits;
    use info::p4_data_type_spec::TypeSpec;
    let spec = |spec| Some(info::P4DataTypeSpec { type_spec: Some(spec) });
    let bits = info::P4BitstringLikeTypeSpec {
        type_spec: Some(Bits::Bit(info::P4BitTypeSpec { bitwidth: 8 })),
        ..Default::default()
    };
    let type_spec = spec(TypeSpec::Bitstring(bits));
    let member = info::p4_struct_type_spec::Member { name: String::new(), type_spec };
    let members = vec![member; 4000];
    let of = info::P4StructTypeSpec { members, ..Default::default() };
    let structs = [("s".to_owned(), of)].into();
    let name = |at| info::Preamble { id: 0x1600_0000 + at, ..Default::default() };
    let register = |at| info::Register {
        preamble: Some(name(at)),
        type_spec: spec(TypeSpec::Struct(info::P4NamedType { name: "s".to_owned() })),
        size: 1,
        ..Default::default()
    };
    info::P4Info {
        registers: (1..=count).map(register).collect(),
        type_info: Some(info::P4TypeInfo { structs, ..Default::default() }),
        ..Default::default()
    }
}

#[test]
fn types_have_a_limit_for_all_registers_together() {
    assert_eq!(Pipeline::new(&registers(16)).unwrap().registers.len(), 16);
    let many = registers(5000);
    let (read, bytes) = peak_of(|| Pipeline::new(&many));
    assert!(bytes < 8 << 20, "{bytes} bytes");
    let why = read.unwrap_err().to_string();
    assert!(why.contains("the types of all registers and digests are too large"), "{why}");
    // A copy shares the types.
    let pipeline = Pipeline::new(&registers(16)).unwrap();
    let (_copy, bytes) = peak_of(|| pipeline.clone());
    assert!(bytes < 64 << 10, "{bytes} bytes");
}
