//! Tests of the checker: the meaning of valid programs, and the errors of invalid ones.

mod any_program;
mod cells;
mod limits;
mod meant;
mod parsers;
mod parts;
mod statements;
mod tables;

use p4_syntax::NoIncludes as Nothing;

use crate::Checked;

/// Start of every program here.
const PRELUDE: &str = "
#include <kaido.p4>
header eth_t { bit<48> dst; bit<48> src; bit<16> type; }
header ip_t { bit<8> ttl; bit<8> proto; bit<32> src; bit<32> dst; }
header opt_t { bit<8> len; varbit<320> data; }
header_union l3_t { ip_t ip; opt_t opt; }
struct headers { eth_t eth; ip_t ip; eth_t[3] tags; l3_t l3; opt_t opt; }
struct meta_t { bit<16> port; bool ok; int<8> s; }
enum bit<16> Ether { IPV4 = 0x800, IPV6 = 0x86dd }
enum Color { Red, Green }
";

/// End of every program here.
const REST: &str = "
parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.eth); transition accept; }
}
control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr.eth); } }
";

const MAIN: &str = "ubpf(prs(), c(), dprs()) main;";

fn check(text: &str) -> Checked {
    crate::check("test.p4", text, &Nothing)
}

fn said(checked: &Checked) -> String {
    checked.diagnostics.render(&checked.sources, false)
}

/// Checks a program with a control of these local declarations and statements.
fn control(locals: &str, apply: &str) -> Checked {
    check(&format!(
        "{PRELUDE}
control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {{
    {locals}
    apply {{ {apply} }}
}}
{REST}{MAIN}"
    ))
}

/// Checks a program with a parser of these local declarations and states.
fn parser(locals: &str, states: &str) -> Checked {
    check(&format!(
        "{PRELUDE}
parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {{
    {locals}
    {states}
}}
control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {{ apply {{ }} }}
control dprs(packet_out b, in headers hdr) {{ apply {{ b.emit(hdr); }} }}
{MAIN}"
    ))
}

#[track_caller]
fn accepts(checked: &Checked) {
    assert_eq!(said(checked), "");
    assert!(checked.program.main.is_some());
}

#[track_caller]
fn refuses(checked: &Checked, why: &str) {
    let said = said(checked);
    assert!(checked.diagnostics.has_errors() && said.contains(why), "wanted: {why}\n{said}");
}

/// Checks the error for each pair of local declarations and statements of a control.
#[track_caller]
fn tells(cases: &[(&str, &str, &str)]) {
    for (locals, apply, why) in cases {
        let said = said(&control(locals, apply));
        assert!(said.contains(why), "{locals} {apply}\nwanted: {why}\n{said}");
        assert!(said.contains("test.p4:"), "{said}");
    }
}
