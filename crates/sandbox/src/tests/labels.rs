//! Tests of a complete program compiled by clang (`tests/objects/labels.c`): parser, tables,
//! deparser.

use super::*;

const LABELS: &[u8] = include_bytes!("../../tests/objects/labels.o");

/// A packet to an address; `between` follows the Ethernet addresses.
fn packet(between: &[u8], to: [u8; 4]) -> Vec<u8> {
    let mut ipv4 = [0; 28];
    ipv4[0] = 0x45;
    ipv4[12..16].copy_from_slice(&[10, 0, 0, 1]);
    ipv4[16..20].copy_from_slice(&to);
    [b"\x02DDDDD\x02SSSSS", between, &[8, 0], &ipv4].concat()
}

const LABELLED: [u8; 4] = [0x88, 0xb5, 1, 7];

/// Value of a table: action number, followed by label and port, or by a port.
fn action(action: u32, first: u32, second: u32) -> Vec<u8> {
    [action, first, second].iter().flat_map(|number| number.to_ne_bytes()).collect()
}

fn route(length: u32, address: [u8; 4]) -> Vec<u8> {
    [length.to_ne_bytes(), address].concat()
}

/// The program with filled tables.
fn filled() -> [Instance; 2] {
    let mut instances = both(&p4_object::read(LABELS).unwrap());
    for instance in &mut instances {
        let mut routes = instance.map("routes").unwrap();
        routes.update(&route(8, [192, 0, 0, 0]), &action(1, 0x0107, 5)).unwrap();
        routes.update(&route(24, [192, 0, 2, 0]), &action(3, 0, 0)).unwrap();
        let mut labels = instance.map("labels").unwrap();
        labels.update(&0x0107_u16.to_ne_bytes(), &action(2, 6, 0)).unwrap();
    }
    instances
}

#[test]
fn packets_get_labels_and_lose_them() {
    let mut instances = filled();
    let (plain, labelled) = (packet(&[], [192, 9, 9, 9]), packet(&LABELLED, [192, 9, 9, 9]));
    let (outcome, out) = run(&mut instances, &plain);
    assert_eq!((outcome.verdict, &out), (Verdict::Redirect(5), &labelled));
    let (outcome, out) = run(&mut instances, &labelled);
    assert_eq!((outcome.verdict, &out), (Verdict::Redirect(6), &plain));
}

#[test]
fn the_longest_route_and_the_default_action_count() {
    let mut instances = filled();
    let verdict = |instances: &mut _, to| run(instances, &packet(&[], to)).0.verdict;
    assert_eq!(verdict(&mut instances, [192, 0, 2, 1]), Verdict::Drop);
    assert_eq!(verdict(&mut instances, [192, 0, 3, 1]), Verdict::Redirect(5));
    assert_eq!(verdict(&mut instances, [10, 0, 0, 1]), Verdict::Pass);
    for instance in &mut instances {
        let mut default = instance.map("routes_defaultAction").unwrap();
        default.update(&[0; 4], &action(3, 0, 0)).unwrap();
    }
    assert_eq!(verdict(&mut instances, [10, 0, 0, 1]), Verdict::Drop);
    // Three packets share a hash and one may differ.
    for instance in &mut instances {
        let counters = instance.map("counters").unwrap();
        let number = |value: &[u8]| u64::from_ne_bytes(value.try_into().unwrap());
        assert_eq!(counters.entries().map(|(_, value)| number(value)).sum::<u64>(), 4);
    }
}

#[test]
fn short_packets_and_unknown_labels_are_not_faults() {
    let mut instances = filled();
    let whole = packet(&LABELLED, [192, 9, 9, 9]);
    for length in 0..whole.len() {
        let (outcome, out) = run(&mut instances, &whole[..length]);
        let expected = match length {
            0..=17 => Verdict::Drop,
            _ => Verdict::Redirect(6),
        };
        assert_eq!(outcome.verdict, expected, "{length} bytes");
        if expected == Verdict::Redirect(6) {
            assert_eq!(out.len(), length - 4);
        }
    }
    let unknown = packet(&[0x88, 0xb5, 9, 9], [1, 2, 3, 4]);
    let (outcome, out) = run(&mut instances, &unknown);
    assert_eq!((outcome.verdict, out), (Verdict::Pass, unknown));
}

#[test]
fn a_packet_without_headroom_is_moved() {
    let plain = packet(&[], [192, 9, 9, 9]);
    for instance in &mut filled() {
        let mut memory = [&plain[..], &[0xee; 4]].concat();
        let mut buffer = PacketBuffer::new(&mut memory, 0, plain.len()).unwrap();
        assert_eq!(instance.run(&mut buffer, 0).verdict, Verdict::Redirect(5));
        assert_eq!((buffer.start(), buffer.bytes()), (0, packet(&LABELLED, [192, 9, 9, 9])));
        // A packet without headroom and tailroom is a fault.
        let mut memory = plain.clone();
        let mut buffer = PacketBuffer::new(&mut memory, 0, plain.len()).unwrap();
        assert!(matches!(instance.run(&mut buffer, 0).verdict, Verdict::Fault(_)));
        assert_eq!(buffer.bytes(), plain);
    }
}
