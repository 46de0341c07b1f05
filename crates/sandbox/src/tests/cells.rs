//! Tests of meters and digests.

use p4_object::cells::{MeterCell, Rates};
use p4_object::{Digest, helper as number};

use super::*;
use crate::FaultKind;

fn fault(code: &[Instruction], maps: &[Map]) -> FaultKind {
    match verdict(code, maps) {
        Verdict::Fault(fault) => fault.kind,
        other => panic!("{other:?}"),
    }
}

/// Executes a meter in the first value of an array; the resulting color becomes the egress port.
fn metered(offset: i32, units: i32, color: i32) -> Vec<Instruction> {
    let mut code = vec![copy(6, 2), one(0x62, 10, 0, -4, 0), copy(2, 10), one(0x07, 2, 0, 0, -4)];
    code.extend(load_map(1, 0));
    code.extend([
        helper(1),
        copy(1, 0),
        one(0x07, 1, 0, 0, offset),
        set(2, units),
        set(3, color),
        helper(number::METER),
        one(0x63, 6, 0, 12, 0),
        one(0x62, 6, 0, 8, 3),
        set(0, 1),
        EXIT,
    ]);
    code
}

#[test]
fn meters_are_asked() {
    let array = map("meter", MapKind::Array, [4, 72, 1]);
    let mut instances = both(&object(&metered(8, 10, 1), std::slice::from_ref(&array)));
    let mut color = || match run(&mut instances, &[7; 64]).0.verdict {
        Verdict::Redirect(port) => port,
        other => panic!("{other:?}"),
    };
    assert_eq!([color(), color()], [1, 1], "nobody has set it");
    for instance in &mut instances {
        let rates = Rates { cir: 1, cburst: 10, pir: 1, pburst: 20 };
        let value = [&[0; 8][..], &MeterCell::set(Some(rates)).to_bytes()].concat();
        instance.map("meter").unwrap().update(&[0; 4], &value).unwrap();
    }
    let mut color = || match run(&mut instances, &[7; 64]).0.verdict {
        Verdict::Redirect(port) => port,
        other => panic!("{other:?}"),
    };
    assert_eq!([color(), color(), color()], [1, 2, 0]);
    for instance in &mut instances {
        instance.set_time(std::time::Duration::from_secs(10));
    }
    assert!(matches!(run(&mut instances, &[7; 64]).0.verdict, Verdict::Redirect(1)));
    // A cell is 64 bytes and has to be within one value.
    assert_eq!(fault(&metered(9, 10, 1), std::slice::from_ref(&array)), FaultKind::Bounds);
    assert_eq!(fault(&metered(-1, 10, 1), std::slice::from_ref(&array)), FaultKind::Bounds);
    let nowhere = [set(1, 0), set(2, 1), set(3, 1), helper(number::METER), EXIT];
    assert_eq!(fault(&nowhere, &[]), FaultKind::Bounds);
    // A cell in the packet is allowed: the program may read and write those bytes anyway.
    let packet = [helper(9), copy(1, 0), set(2, 1), set(3, 1), helper(number::METER), EXIT];
    assert!(!matches!(verdict(&packet, &[]), Verdict::Fault(_)));
}

/// Emits packet bytes as a digest.
fn telling(id: i32, length: i32) -> Vec<Instruction> {
    vec![helper(9), copy(2, 0), set(1, id), set(3, length), helper(number::DIGEST), set(0, 1), EXIT]
}

fn with_digests(code: &[Instruction]) -> Object {
    let digest = |name: &str, size| Digest { name: name.to_owned(), size };
    Object { digests: vec![digest("one", 3), digest("other", 256)], ..object(code, &[]) }
}

#[test]
fn digests_are_handed_over() {
    let mut instances = both(&with_digests(&telling(0, 3)));
    for round in 0..300_u32 {
        run(&mut instances, &[round as u8; 64]);
    }
    for instance in &mut instances {
        let all = instance.digests();
        assert_eq!((all.len(), instance.lost_digests()), (256, 44), "what has room");
        for (round, one) in all.iter().enumerate() {
            assert_eq!((one.id, &*one.data), (0, &[round as u8; 3][..]));
        }
        assert_eq!(instance.digests(), []);
    }
    run(&mut instances, &[9; 64]);
    assert!(instances.each_mut().iter_mut().all(|instance| instance.digests().len() == 1));
    // Unknown id, wrong length, and beyond the packet.
    for code in [telling(2, 3), telling(-1, 3), telling(0, 4), telling(0, -1), telling(1, 256)] {
        let mut instances = both(&with_digests(&code));
        let Verdict::Fault(fault) = run(&mut instances, &[7; 64]).0.verdict else { panic!() };
        assert_eq!(fault.kind, FaultKind::Bounds);
        assert!(instances.each_mut().iter_mut().all(|instance| instance.digests().is_empty()));
    }
    assert_eq!(fault(&telling(0, 3), &[]), FaultKind::Bounds, "a program without digests");
}
