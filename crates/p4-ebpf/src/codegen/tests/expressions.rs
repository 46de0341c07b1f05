//! Random expressions over signed and unsigned numbers of any width: compiled code and the
//! interpreter give the same results.

use p4::interpret;

use super::random::{Random, difference};
use super::*;

/// Number of programs; `KAIDO_EXPRESSIONS` overrides it.
const PROGRAMS: usize = 300;
/// Number of packets for each program.
const PACKETS: usize = 40;

/// Source text of an expression of this width and sign.
fn expression(random: &mut Random, width: u32, signed: bool, depth: u32) -> String {
    let of = format!("{}<{width}>", if signed { "int" } else { "bit" });
    if depth == 0 || random.below(6) == 0 {
        return match random.below(4) {
            0 => format!("({of})hdr.i.a"),
            1 => format!("({of})hdr.i.b"),
            2 => format!(
                "{width}{}{}",
                if signed { "s" } else { "w" },
                random.below(1 << width.min(8)) / 2
            ),
            _ => format!("({of})hdr.i.c"),
        };
    }
    let inside = |random: &mut Random| expression(random, width, signed, depth - 1);
    match random.below(14) {
        at @ 0..=7 => {
            let operator = ["+", "-", "*", "&", "|", "^", "|+|", "|-|"][at];
            let (left, right) = (inside(random), inside(random));
            format!("({left} {operator} {right})")
        }
        8 => format!("(~{})", inside(random)),
        9 => format!("(-{})", inside(random)),
        10 => {
            let operator = ["<<", ">>"][random.below(2)];
            let by = match random.below(3) {
                0 => random.below(width as usize + 3).to_string(),
                1 => "(bit<8>)hdr.i.s".to_owned(),
                _ => "hdr.i.s".to_owned(),
            };
            format!("({} {operator} {by})", inside(random))
        }
        11 => {
            let operator = ["==", "!=", "<", "<=", ">", ">="][random.below(6)];
            let (left, right) = (inside(random), inside(random));
            let (yes, no) = (inside(random), inside(random));
            format!("({left} {operator} {right} ? {yes} : {no})")
        }
        12 if !signed => {
            let low = random.below(width as usize) as u32;
            let high = low + random.below((width - low) as usize) as u32;
            let rest = width - (high - low + 1);
            let part = format!("({})[{high}:{low}]", inside(random));
            match rest {
                0 => part,
                rest => {
                    let other = expression(random, rest, false, depth - 1);
                    if random.below(2) == 0 {
                        format!("({part} ++ {other})")
                    } else {
                        format!("({other} ++ {part})")
                    }
                }
            }
        }
        _ => {
            // Cast to another width and back.
            let other = 1 + random.below(140) as u32;
            let inner = expression(random, other, signed, depth - 1);
            format!("({of})({inner})")
        }
    }
}

/// A program that writes an expression of the fields it reads.
fn program(random: &mut Random) -> String {
    let mut width = || 1 + random.below(140) as u32;
    let (a, b, result) = (width(), width(), width());
    let mut random = Random::new(u64::from(a * 1000 + b));
    let signed = random.below(2) == 0;
    // A cast must not change sign and width at once: all fields have the result's signedness.
    let of = |width: u32| format!("{}<{width}>", if signed { "int" } else { "bit" });
    let pad = |width: u32| 8 - width % 8;
    let value = expression(&mut random, result, signed, 3);
    format!(
        "#include <ubpf_model.p4>
        header in_t {{ {} a; {} b; {} c; bit<8> s; bit<{}> pad; }}
        header out_t {{ bit<{}> pad; {} r; }}
        struct headers {{ in_t i; out_t o; }}
        struct meta_t {{ }}
        parser prs(packet_in p, out headers hdr, inout meta_t m, inout standard_metadata std) {{
            state start {{ p.extract(hdr.i); transition accept; }}
        }}
        control c(inout headers hdr, inout meta_t m, inout standard_metadata std) {{
            apply {{ hdr.o.setValid(); hdr.o.pad = 0; hdr.o.r = {value}; }}
        }}
        control dprs(packet_out b, in headers hdr) {{ apply {{ b.emit(hdr); }} }}
        ubpf(prs(), c(), dprs()) main;",
        of(a),
        of(b),
        of(result),
        pad(a + b + result),
        pad(result),
        of(result),
    )
}

#[test]
fn random_expressions_make_no_difference() {
    let count = std::env::var("KAIDO_EXPRESSIONS").map_or(PROGRAMS, |count| count.parse().unwrap());
    let mut random = Random::new(1);
    let mut compiled_ones = 0;
    for _ in 0..count {
        let text = program(&mut random);
        let checked = p4::check("random", &text, &Nothing);
        let said = checked.diagnostics.render(&checked.sources, false);
        assert!(!checked.diagnostics.has_errors(), "{said}");
        let compiled = match compile(&checked.program, &checked.sources) {
            Ok(compiled) => compiled,
            // The stack of 512 bytes is too small for some programs.
            Err(why) => {
                let why = why.render(&checked.sources, false);
                assert!(why.contains("for what it remembers at once"), "{why}");
                continue;
            }
        };
        compiled_ones += 1;
        let mut plain = interpret::Machine::new(&checked.program).unwrap();
        let mut machine = Machine::new(&compiled, interpret::elaborate(&checked.program).unwrap());
        for _ in 0..PACKETS {
            let packet: Vec<u8> = (0..64)
                .map(|_| match random.below(4) {
                    0 => 0,
                    1 => 0xff,
                    _ => random.below(256) as u8,
                })
                .collect();
            if let Some(why) = difference(&mut plain, &mut machine, 1, &packet) {
                panic!("{text}\n{why}");
            }
        }
    }
    assert!(compiled_ones * 10 > count * 9, "{compiled_ones} of {count} programs have code");
}
