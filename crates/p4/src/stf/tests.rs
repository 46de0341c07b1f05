//! Language tests: each program in `tests/programs` with its `.stf` file.

use p4_syntax::NoIncludes as Nothing;
use testkit::programs::programs;

use super::*;
use crate::interpret::Machine;

/// Runs a test and returns its failures.
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
    failures.iter().map(ToString::to_string).collect()
}

#[test]
fn programs_pass_their_tests() {
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

/// Every run terminates on damaged packets, and on the packets after them.
#[test]
fn each_packet_comes_to_a_verdict() {
    let mut random: u64 = 1;
    let mut below = |bound: usize| {
        // Knuth's linear congruential generator produces the same packets in every run.
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
        ("packet x 00", "not a port"),
        ("packet 1 0", "whole bytes"),
        ("packet 1 0g", "not a hexadecimal digit"),
        ("packet 1 0*", "known whole"),
        ("add t x:1", "expected an action"),
        ("add t x:y a()", "`y` is not a number"),
        ("add t x:1/b a()", "not a prefix length"),
        ("add t x=1 a()", "write `x:1`"),
        ("add t x:1 a(n=2)", "write `n:2`"),
        ("add t x:1 a(2) = one two", "`one two` is not a name"),
        ("add t x:1 a(2) b", "`b` after the action is unexpected"),
        ("setdefault t", "expected a table and an action"),
        ("setdefault t a(1", "`)` is missing"),
        ("check_counter c", "expected a name and a cell"),
        ("check_counter c(1", "`)` is missing"),
        ("check_counter c(x)", "`x` is not a number"),
        ("check_counter c(1) packet == 1", "expected `packets` or `bytes`"),
        ("check_counter c(1) packets = 1", "expected one of =="),
        ("check_counter c(1) packets == -1", "not a 64-bit number"),
        ("set_meter c(1) 1 2 3", "CIR CBURST PIR PBURST"),
        ("set_meter c(1) 2 2 1 2", "the peak rate, 1, is below the committed one, 2"),
        ("wait a bit", "not a time in nanoseconds"),
        ("expect_digest d", "expected a digest"),
    ] {
        let told = parse(line).unwrap_err().to_string();
        assert!(told.starts_with("line 1: ") && told.contains(why), "{line}: {told}");
    }
}

const TABLE: &str = include_str!("../../tests/programs/table_exact.p4");

#[test]
fn differences_are_shown() {
    let is = |test: &str| result("test.p4", TABLE, test);
    assert!(is("add t a:1 set(7)\npacket 3 0100ff\nexpect 3 0107ff$\npacket 3 0200").is_empty());
    assert_eq!(
        is("add c.t hdr.h.a:1 c.set(to:7)\npacket 3 0100ff\nexpect 3 0108**"),
        [
            "line 3: another packet was sent on port 3\n  expected 0108**\n  found    0107ff\n              ^  "
        ]
    );
    for (test, why) in [
        ("packet 3 0100\nexpect 3 0100", "no packet was sent on port 3"),
        ("setdefault t set(1)\npacket 3 0100", "unexpected packets on port 3: 0101"),
        ("add u a:1 set(1)", "no table `u` (known: `c.t`"),
        ("add t b:1 set(1)", "no part `b`; it has `hdr.h.a`"),
        ("add t set(1)", "has no value: it is compared exactly"),
        ("add t a:256 set(1)", "it is to be 0 to 255"),
        ("add t a:1/8 set(1)", "`hdr.h.a`: expected VALUE: it is compared exactly"),
        ("expect 3", "no packet was sent on port 3, expected a packet"),
        ("add t a:1 sat(1)", "has no action `sat`"),
        ("add t a:1 set()", "takes 1 arguments"),
        ("add t a:1 set(too:1)", "`to` has no value"),
        ("add t a:1 hdr.h.a:2 set(1)", "`hdr.h.a` has two values"),
        ("add t a:1 set(1) = one\nadd t a:2 set(1) = one", "an entry is called `one`"),
    ] {
        let told = is(test);
        assert!(told.len() == 1 && told[0].contains(why), "{test}: {told:?}");
    }
}

#[test]
fn entries_and_defaults_that_the_program_reserves_are_refused() {
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
        ("setdefault fixed a()", "the default action of `c.fixed` is constant"),
        ("add open a:1 b()", "`b` can only be the default action of `c.open`"),
        ("setdefault open c()", "`c` can only be the action of an entry of `c.open`"),
    ] {
        let told = is(test);
        assert!(told.len() == 1 && told[0].contains(why), "{test}: {told:?}");
    }
}

/// Lines that can never succeed, or that have no effect.
#[test]
fn lines_without_effect_are_refused() {
    const LPM: &str = include_str!("../../tests/programs/table_lpm.p4");
    const COUNTERS: &str = include_str!("../../tests/programs/counters.p4");
    const FIREWALL: &str = include_str!("../../tests/programs/firewall.p4");
    for (program, test, why) in [
        (LPM, "add t hdr.h.to:0x0a010203/8 via(1)", "write 0xa000000/8"),
        (LPM, "add t hdr.h.to:0/33 via(1)", "a prefix has 0 to 32 bits"),
        (FIREWALL, "add rules 1 dport:5..3 allow()", "5..3 ends before it begins"),
        (
            FIREWALL,
            "add rules 1 src:0xa000001&&&0xff000000 allow()",
            "write 0xa000000&&&0xff000000",
        ),
        (COUNTERS, "check_counter c.packets(1) bytes < 9", "counts packets and no bytes"),
        (COUNTERS, "check_counter first.inner(1) packets == 1", "counts bytes and no packets"),
    ] {
        let told = result("test.p4", program, test);
        assert!(told.len() == 1 && told[0].contains(why), "{test}: {told:?}");
    }
    let lines = parse("publish a.b 1\npublish a.c 1\nwithdraw other").unwrap();
    let unread = |keys: &[&str]| {
        let keys: Vec<String> = keys.iter().map(|&key| key.to_owned()).collect();
        let told = unread(&lines, &keys).into_iter();
        told.map(|one| one.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(unread(&["a.b", "a.c", "other"]), [""; 0]);
    let told = unread(&["a.c", "some"]);
    assert!(told[0].starts_with("line 1: the program never reads `a.b`") && told.len() == 2);
    assert!(told[0].ends_with("it reads `a.c`") && told[1].ends_with("it reads a.c, some"));
    assert!(unread(&[])[0].ends_with("it reads nothing of its VM"));
}

/// An endless program is stopped, regardless of the amount of data it copies.
#[test]
fn an_endless_program_is_stopped() {
    let begin = "#include <ubpf_model.p4>
        header h_t { bit<8> a; }
        header wide_t { bit<2048> a; bit<2048> b; }
        struct headers { h_t h; wide_t[256] wide; }
        struct meta_t { headers copy; }";
    let end = "control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr.h); } }
        ubpf(prs(), c(), dprs()) main;";
    let parameters = "headers hdr, inout meta_t meta, inout standard_metadata std";
    let program = |state: &str, apply: &str| {
        format!(
            "{begin} parser prs(packet_in p, out {parameters}) {{
                state start {{ {state} }}
                state more {{ p.extract(hdr.h); transition accept; }}
            }}
            control c(inout {parameters}) {{ apply {{ {apply} }} }} {end}"
        )
    };
    // Copies do not count as steps: compiled code has none of them.
    let copies = "meta.copy = hdr; hdr = meta.copy; ".repeat(600);
    let text = program("p.extract(hdr.h); transition accept;", &copies);
    let checked = crate::check("test.p4", &text, &Nothing);
    let mut machine = Machine::new(&checked.program).expect("the program runs");
    let lines = parse("packet 1 02\nexpect 1 02 $").unwrap();
    assert_eq!(run(&checked.program, &mut machine, &lines), []);
    assert_eq!(machine.endless, [0_u64; 0]);

    let forever = "transition select(p.lookahead<bit<8>>()) { 1: start; default: more; }";
    for (state, apply) in [
        (forever.to_owned(), ""),
        (format!("meta.copy = hdr; hdr = meta.copy; {forever}"), ""),
        (format!("hdr.wide.push_front(1); {forever}"), ""),
        (format!("hdr.wide[0].setInvalid(); {forever}"), ""),
        (
            "p.extract(hdr.h); transition accept;".to_owned(),
            "for (bit<32> i = 0; hdr.h.a == 1; i += 1) { meta.copy = hdr; }",
        ),
    ] {
        let text = program(&state, apply);
        let checked = crate::check("test.p4", &text, &Nothing);
        assert!(!checked.diagnostics.has_errors(), "{state} {apply}");
        let mut machine = Machine::new(&checked.program).expect("the program runs");
        let lines = parse("packet 1 02\nexpect 1 02 $\npacket 1 01\npacket 1 03\nexpect 1 03 $");
        assert_eq!(run(&checked.program, &mut machine, &lines.unwrap()), [], "{state} {apply}");
        assert_eq!(machine.endless, [2], "{state} {apply}");
    }
}
