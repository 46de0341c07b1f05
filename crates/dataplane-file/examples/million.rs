//! Measures the time to read a large data plane file: 1,000,000 SIDs and as many routes, unless an
//! argument gives another number. `--write` prints the file instead.

use std::fmt::Write;
use std::time::Instant;

/// A file with `entries` SIDs and `entries` routes.
fn file(entries: u32) -> String {
    let mut text = String::from(
        "source: fd00:0:1::1\nlocators: [fd00::/16]\nports: {eth0: {}, eth1: {tenant: blue}}\n\
         policies: {to-osaka: [fd01:0:2::1, fd01:0:3::d4]}\nsids:\n",
    );
    for n in 0..entries {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  \"fd00:{:x}:{:x}::\": {{behavior: End.DT4, tenant: blue}}",
            n >> 16,
            n & 0xffff
        );
    }
    text += "tenants:\n  blue:\n    table: 100\n    routes:\n";
    for n in 0..entries {
        let [_, a, b, c] = n.to_be_bytes();
        let _ = match n % 2 {
            0 => writeln!(text, "      10.{a}.{b}.{c}/32: to-osaka"),
            _ => writeln!(text, "      10.{a}.{b}.{c}/32: [fd01:0:2::1, fd01:0:{c}::d4]"),
        };
    }
    text
}

fn main() {
    let argument = std::env::args().nth(1);
    let entries = argument.as_deref().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let text = file(entries);
    if std::env::args().any(|argument| argument == "--write") {
        print!("{text}");
        return;
    }
    let start = Instant::now();
    match dataplane_file::parse("million.yaml", &text) {
        Ok(file) => {
            let routes: usize = file.tenants.values().map(|tenant| tenant.routes.len()).sum();
            let (bytes, sids) = (text.len() / 1_000_000, file.sids.len());
            println!("{bytes} MB, {sids} SIDs, {routes} routes: {:.2?}", start.elapsed());
        }
        Err(problems) => eprintln!("{problems}"),
    }
}
