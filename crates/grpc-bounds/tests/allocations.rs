//! Test that prost never allocates more than was counted, for random bytes.
#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

use std::cell::Cell;

use grpc_bounds::Shapes;
use proptest::prelude::*;
use prost::Message as _;
use prost_reflect::DescriptorPool;
use prost_types::FileDescriptorProto;
use testkit::allocations::{Counting, peak_of};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Encoded fields, mostly with valid numbers and correct lengths.
fn fields() -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![9 => 1..16_u8, 1 => Just(0)];
    let leaf = prop_oneof![
        3 => Just(Vec::new()),
        1 => prop::collection::vec(any::<u8>(), 0..6),
    ];
    let many = |content: BoxedStrategy<Vec<u8>>| {
        let one = (number.clone(), content, 0..20_u8, 1..40_usize);
        let one = one.prop_map(|(number, content, kind, times)| {
            let mut field = match kind {
                0 => vec![number << 3, 0x81, 1],
                1 => vec![number << 3 | 5, 1, 2, 3, 4],
                2 => vec![number << 3 | 2, content.len() as u8 & 0x7f ^ 1],
                _ => {
                    let mut field = vec![number << 3 | 2];
                    prost::encoding::encode_varint(content.len() as u64, &mut field);
                    field
                }
            };
            field.extend(content);
            field.repeat(times)
        });
        prop::collection::vec(one, 0..4).prop_map(|all| all.concat())
    };
    let two = many(leaf.boxed()).boxed();
    let three = many(two).boxed();
    many(three)
}

#[test]
fn prost_allocates_no_more_than_was_counted() {
    let pool = DescriptorPool::global();
    let shapes = Shapes::new(&pool.encode_to_vec()).unwrap();
    let (most, counted) = (Cell::new(0), Cell::new(0));
    let config = ProptestConfig { cases: 4000, failure_persistence: None, ..Default::default() };
    proptest!(config, |(bytes in fields())| {
        // A message that fails the walk is rejected and never decoded.
        let Some(memory) = shapes.memory("google.protobuf.FileDescriptorProto", &bytes) else {
            return Ok(());
        };
        let (_, taken) = peak_of(|| FileDescriptorProto::decode(&*bytes));
        most.set(most.get().max(taken));
        counted.set(counted.get() + 1);
        prop_assert!(taken as u64 <= memory, "{taken} bytes, {memory} counted, of {}", bytes.len());
    });
    assert!(most.get() > 100_000 && counted.get() > 1000, "{} of {}", most.get(), counted.get());
}
