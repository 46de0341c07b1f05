//! Tests of the language: each program in `tests/programs` with its `.stf`.

use super::*;
use crate::interpret::Machine;
use crate::test_programs::{Nothing, programs};

/// Runs a test; what is wrong, line by line.
fn result(name: &str, program: &str, test: &str) -> Vec<String> {
    let checked = crate::check(name, program, &Nothing);
    let said = checked.diagnostics.render(&checked.sources, false);
    if checked.diagnostics.has_errors() {
        return vec![said];
    }
    let lines = match parse(test) {
        Ok(lines) => lines,
        Err(why) => return vec![why.to_string()],
    };
    let mut machine = Machine::new(&checked.program).expect("the program runs");
    let failures = run(&checked.program, &mut machine, &lines);
    failures.into_iter().map(|one| format!("line {}: {}", one.line, one.why)).collect()
}

#[test]
fn programs_do_what_their_tests_say() {
    let mut wrong = Vec::new();
    for (name, program, test) in programs() {
        assert!(test.contains("packet"), "{name}: a test without a packet");
        let failures = result(&name, &program, &test);
        if !failures.is_empty() {
            wrong.push(format!("{name}:\n{}", failures.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// The packets of a test, and what the control plane does.
pub(crate) fn parts(test: Vec<Line>) -> (Vec<Vec<u8>>, Vec<Line>) {
    let (mut packets, mut lines) = (Vec::new(), Vec::new());
    for line in test {
        match line.command {
            Command::Packet(_, packet) => packets.push(packet),
            Command::Expect(..) | Command::ExpectDigest(..) | Command::CheckCounter { .. } => {}
            _ => lines.push(line),
        }
    }
    (packets, lines)
}

/// Damaged packets find an end, too, and so do those behind them.
#[test]
fn each_packet_comes_to_a_verdict() {
    let mut random: u64 = 1;
    let mut below = |bound: usize| {
        // Knuth's linear congruential generator: the same packets in every run.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) as usize % bound.max(1)
    };
    for (name, program, test) in programs() {
        let checked = crate::check(&name, &program, &Nothing);
        let mut machine = Machine::new(&checked.program).expect("the program runs");
        let (packets, lines) = parts(parse(&test).expect("a test"));
        assert_eq!(run(&checked.program, &mut machine, &lines), [], "{name}");
        for _ in 0..100 {
            let mut packet = packets[below(packets.len())].clone();
            for _ in 0..below(4) {
                let at = below(packet.len());
                match below(3) {
                    0 => packet.truncate(at),
                    1 => packet.insert(at.min(packet.len()), below(256) as u8),
                    _ => {
                        packet.iter_mut().skip(at).take(1).for_each(|byte| *byte = below(256) as u8)
                    }
                }
            }
            let outcome = machine.run(1, &packet);
            assert!(outcome.is_ok(), "{name}: {packet:02x?}: {outcome:?}");
        }
    }
}

#[test]
fn lines_are_read() {
    let lines = parse(
        "# a comment
        packet 1 00 ff
        expect 2 0* $
        add c.t 5 a.b:0x10/8 x:0b1* y:1..5 0x1&&&3 act(n:1, 0x2)  # behind
        setdefault t drop()
        add t x:1 drop() = one
        check_counter c.n(3) packets >= 0x10
        check_counter n ( $one )
        check_counter n($default) bytes == 2
        set_meter m(0) 1 2 3 4
        wait
        wait 1000
        expect_digest c.d 0a*0",
    )
    .unwrap();
    let commands: Vec<_> = lines.into_iter().map(|line| (line.number, line.command)).collect();
    assert_eq!(commands[0], (2, Command::Packet(1, vec![0, 255])));
    let pattern = Pattern { digits: vec![Some(0), None], whole: true };
    assert_eq!(commands[1], (3, Command::Expect(2, pattern)));
    let number = |value: u32| BigInt::from(value);
    let add = Command::Add {
        table: "c.t".into(),
        priority: Some(5),
        keys: vec![
            (Some("a.b".into()), KeyText::Prefix(number(16), 8)),
            (Some("x".into()), KeyText::Mask(number(2), number(2))),
            (Some("y".into()), KeyText::Range(number(1), number(5))),
            (None, KeyText::Mask(number(1), number(3))),
        ],
        action: ActionText {
            name: "act".into(),
            arguments: vec![(Some("n".into()), number(1)), (None, number(2))],
        },
        name: None,
    };
    assert_eq!(commands[2], (4, add));
    let action = ActionText { name: "drop".into(), arguments: vec![] };
    assert_eq!(commands[3], (5, Command::SetDefault("t".into(), action)));
    for (line, why) in [
        ("pocket 1 00", "is none of packet"),
        ("packet x 00", "no port"),
        ("packet 1 0", "whole bytes"),
        ("packet 1 0g", "no hexadecimal digit"),
        ("packet 1 0*", "known whole"),
        ("add t x:1", "expected an action"),
        ("add t x:y a()", "`y` is no number"),
        ("add t x:1/b a()", "no prefix's length"),
        ("setdefault t", "expected a table and an action"),
        ("setdefault t a(1", "`)` is missing"),
        ("check_counter c", "expected a name and a cell"),
        ("check_counter c(1", "`)` is missing"),
        ("check_counter c(x)", "`x` is no number"),
        ("check_counter c(1) packet == 1", "expected `packets` or `bytes`"),
        ("check_counter c(1) packets = 1", "expected one of =="),
        ("check_counter c(1) packets == -1", "no number of 64 bits"),
        ("set_meter c(1) 1 2 3", "CIR CBURST PIR PBURST"),
        ("wait a bit", "no time in nanoseconds"),
        ("expect_digest d", "expected a digest"),
    ] {
        let told = parse(line).unwrap_err().to_string();
        assert!(told.starts_with("line 1: ") && told.contains(why), "{line}: {told}");
    }
}

const TABLE: &str = include_str!("../../tests/programs/table_exact.p4");

#[test]
fn what_differs_is_shown() {
    let is = |test: &str| result("test.p4", TABLE, test);
    assert!(is("add t a:1 set(7)\npacket 3 0100ff\nexpect 3 0107ff$\npacket 3 0200").is_empty());
    assert_eq!(
        is("add c.t hdr.h.a:1 c.set(to:7)\npacket 3 0100ff\nexpect 3 0108**"),
        [
            "line 3: another packet left by port 3\n  expected 0108**\n  found    0107ff\n              ^  "
        ]
    );
    for (test, why) in [
        ("packet 3 0100\nexpect 3 0100", "nothing left by port 3"),
        ("setdefault t set(1)\npacket 3 0100", "nobody expected what left by port 3: 0101"),
        ("add u a:1 set(1)", "there is no table `u`; there are `c.t`"),
        ("add t b:1 set(1)", "no part `b`; it has `hdr.h.a`"),
        ("add t set(1)", "has no value: it is compared exactly"),
        ("add t a:256 set(1)", "it is to be 0 to 255"),
        ("add t a:1/8 set(1)", "does not fit how the key is compared"),
        ("add t a:1 sat(1)", "has no action `sat`"),
        ("add t a:1 set()", "takes 1 arguments"),
        ("add t a:1 set(too:1)", "`to` has no value"),
    ] {
        let told = is(test);
        assert!(told.len() == 1 && told[0].contains(why), "{test}: {told:?}");
    }
}

#[test]
fn what_the_program_keeps_to_itself_is_refused() {
    let begin = TABLE.split("    action").next().unwrap();
    let program = format!(
        "{begin}
    action a() {{ }}
    action b() {{ }}
    action c() {{ }}
    table fixed {{
        key = {{ hdr.h.a: exact; }}
        actions = {{ a; }}
        const default_action = a();
        const entries = {{ 1: a(); }}
    }}
    table open {{
        key = {{ hdr.h.a: exact; }}
        actions = {{ a; @defaultonly b; @tableonly c; }}
        default_action = b();
    }}
    apply {{ fixed.apply(); open.apply(); }}
}}
control dprs(packet_out p, in headers hdr) {{ apply {{ p.emit(hdr.h); }} }}
ubpf(prs(), c(), dprs()) main;"
    );
    let is = |test: &str| result("test.p4", &program, test);
    assert_eq!(is("add open a:1 c()\nsetdefault open b()"), Vec::<String>::new());
    for (test, why) in [
        ("add fixed a:1 a()", "the entries of `c.fixed` are constant"),
        ("setdefault fixed a()", "what `c.fixed` does by default is constant"),
        ("add open a:1 b()", "`b` is only run by default in `c.open`"),
        ("setdefault open c()", "`c` is only an entry's in `c.open`"),
    ] {
        let told = is(test);
        assert!(told.len() == 1 && told[0].contains(why), "{test}: {told:?}");
    }
}
