//! Tests of each instruction (RFC 9669), with boundary values.

use super::*;

const VALUES: [u64; 9] = [
    0,
    1,
    7,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1234_5678_9abc_def0,
    0x8000_0000_0000_0000,
    u64::MAX,
];

/// Runs one instruction with `left` in r0 and `right` in r1, and returns r0. Operands and result
/// are in the packet, so that the compiler cannot fold them.
fn run_one(instruction: Instruction, left: u64, right: u64) -> u64 {
    let mut code = vec![helper(9), copy(6, 0), one(0x79, 1, 6, 8, 0), one(0x79, 0, 6, 0, 0)];
    code.push(instruction);
    if instruction.jump().is_some() {
        // 1 if the jump is taken.
        code.extend([set(0, 0), one(opcode::JUMP, 0, 0, 1, 0), set(0, 1)]);
    }
    code.extend([one(0x7b, 6, 0, 0, 0), EXIT]);
    let packet = [left.to_le_bytes(), right.to_le_bytes()].concat();
    let (_, packet) = run(&mut both(&object(&code, &[])), &packet);
    u64::from_le_bytes(packet[..8].try_into().unwrap())
}

/// Compares an operation, in register and immediate form, with its expected result.
fn hold(code: u8, wanted: impl Fn(u64, u64) -> u64) {
    for left in VALUES {
        for right in VALUES {
            let from_register =
                one(code | 8, 0, 1, if code & 7 > 4 && code & 7 < 7 { 2 } else { 0 }, 0);
            let found = run_one(from_register, left, right);
            assert_eq!(found, wanted(left, right), "{from_register}: {left:#x}, {right:#x}");
            let number =
                Instruction { opcode: code, immediate: right as i32, source: 0, ..from_register };
            if p4_object::verify(&object(&[number, EXIT, EXIT, EXIT], &[])).is_ok() {
                let extended = right as i32 as u64;
                let found = run_one(number, left, 0);
                assert_eq!(found, wanted(left, extended), "{number}: {left:#x}");
            }
        }
    }
}

#[test]
fn arithmetic_of_64_bits() {
    hold(0x07, u64::wrapping_add);
    hold(0x17, u64::wrapping_sub);
    hold(0x27, u64::wrapping_mul);
    hold(0x37, |a, b| a.checked_div(b).unwrap_or(0));
    hold(0x47, |a, b| a | b);
    hold(0x57, |a, b| a & b);
    hold(0x67, |a, b| a << (b % 64));
    hold(0x77, |a, b| a >> (b % 64));
    hold(0x97, |a, b| if b == 0 { a } else { a % b });
    hold(0xa7, |a, b| a ^ b);
    hold(0xb7, |_, b| b);
    hold(0xc7, |a, b| (a as i64 >> (b % 64)) as u64);
}

#[test]
fn arithmetic_of_32_bits() {
    let low = |of: fn(u32, u32) -> u32| move |a: u64, b: u64| u64::from(of(a as u32, b as u32));
    hold(0x04, low(u32::wrapping_add));
    hold(0x14, low(u32::wrapping_sub));
    hold(0x24, low(u32::wrapping_mul));
    hold(0x34, low(|a, b| a.checked_div(b).unwrap_or(0)));
    hold(0x44, low(|a, b| a | b));
    hold(0x54, low(|a, b| a & b));
    hold(0x64, low(|a, b| a << (b % 32)));
    hold(0x74, low(|a, b| a >> (b % 32)));
    hold(0x94, low(|a, b| if b == 0 { a } else { a % b }));
    hold(0xa4, low(|a, b| a ^ b));
    hold(0xb4, low(|_, b| b));
    hold(0xc4, low(|a, b| (a as i32 >> (b % 32)) as u32));
}

#[test]
fn negation_and_the_order_of_bytes() {
    for value in VALUES {
        assert_eq!(run_one(one(0x87, 0, 0, 0, 0), value, 0), value.wrapping_neg());
        assert_eq!(
            run_one(one(0x84, 0, 0, 0, 0), value, 0),
            u64::from((value as u32).wrapping_neg())
        );
        for (bits, low, swapped) in [
            (16, u64::from(value as u16), u64::from((value as u16).swap_bytes())),
            (32, u64::from(value as u32), u64::from((value as u32).swap_bytes())),
            (64, value, value.swap_bytes()),
        ] {
            assert_eq!(run_one(one(0xd4, 0, 0, 0, bits), value, 0), low);
            assert_eq!(run_one(one(0xdc, 0, 0, 0, bits), value, 0), swapped);
        }
    }
}

#[test]
fn jumps() {
    type Compare = (u8, fn(u64, u64) -> bool, fn(i64, i64) -> bool);
    let all: [Compare; 11] = [
        (0x10, |a, b| a == b, |_, _| true),
        (0x20, |a, b| a > b, |_, _| true),
        (0x30, |a, b| a >= b, |_, _| true),
        (0x40, |a, b| a & b != 0, |_, _| true),
        (0x50, |a, b| a != b, |_, _| true),
        (0xa0, |a, b| a < b, |_, _| true),
        (0xb0, |a, b| a <= b, |_, _| true),
        (0x60, |_, _| true, |a, b| a > b),
        (0x70, |_, _| true, |a, b| a >= b),
        (0xc0, |_, _| true, |a, b| a < b),
        (0xd0, |_, _| true, |a, b| a <= b),
    ];
    for (code, unsigned, signed) in all {
        hold(code | 5, |a, b| u64::from(unsigned(a, b) && signed(a as i64, b as i64)));
        hold(code | 6, |a, b| {
            let (a, b) = (a as u32, b as u32);
            u64::from(unsigned(a.into(), b.into()) && signed((a as i32).into(), (b as i32).into()))
        });
    }
    assert_eq!(run_one(one(opcode::JUMP_LONG, 0, 0, 0, 2), 5, 0), 1);
    assert_eq!(run_one(one(opcode::JUMP, 0, 0, 2, 0), 5, 0), 1);
}

#[test]
fn loads_and_stores() {
    let value = 0xf1f2_f3f4_f5f6_f7f8_u64;
    for (size, bits) in [(0x10, 8), (0x08, 16), (0, 32), (0x18, 64)] {
        let low = if bits == 64 { value } else { value & ((1 << bits) - 1) };
        // In the frame, and in the packet with the same bytes.
        for (base, offset) in [(10, -16_i16), (7, 0)] {
            let mut code = vec![helper(9), copy(7, 0)];
            code.extend(load_wide(1, value));
            code.push(one(0x7b, base, 1, offset, 0));
            code.push(one(0x61 | size, 2, base, offset, 0));
            code.extend([one(0x7b, 7, 2, 0, 0), EXIT]);
            let (_, packet) = run(&mut both(&object(&code, &[])), &[0xaa; 8]);
            assert_eq!(u64::from_le_bytes(packet.try_into().unwrap()), low);
            // Store registers and immediates; adjacent bytes stay unmodified.
            for (store, stored) in [
                (one(0x63 | size, base, 1, offset, 0), value),
                (one(0x62 | size, base, 0, offset, -2), -2_i64 as u64),
            ] {
                let mut code = vec![helper(9), copy(7, 0)];
                code.extend(load_wide(1, value));
                code.extend([one(0x7a, base, 0, offset, 0), store, one(0x79, 2, base, offset, 0)]);
                code.extend([one(0x7b, 7, 2, 0, 0), EXIT]);
                let (_, packet) = run(&mut both(&object(&code, &[])), &[0xaa; 8]);
                let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
                assert_eq!(u64::from_le_bytes(packet.try_into().unwrap()), stored & mask);
            }
        }
    }
}
