//! The STF parser.

use std::net::Ipv4Addr;

use num_bigint::BigInt;
use num_traits::{Num, One, ToPrimitive};
use p4_object::cells::Rates;
use p4_object::vm::is_name;

use super::{
    ActionText, BadLine, CellText, Command, Comparison, Counted, KeyText, Line, Pattern, Said,
};

/// Parses a test.
///
/// # Errors
///
/// If a line is invalid. The error is that of the first one.
pub fn parse(text: &str) -> Result<Vec<Line>, BadLine> {
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let command = command(line).map_err(|why| BadLine { line: number, why })?;
        lines.push(Line { number, command });
    }
    Ok(lines)
}

fn command(line: &str) -> Result<Command, String> {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    match word {
        "packet" => {
            let (port, hex) = port_and_rest(rest)?;
            Ok(Command::Packet(port, bytes(hex)?))
        }
        "expect" => {
            let (port, hex) = port_and_rest(rest)?;
            Ok(Command::Expect(port, pattern(hex)?))
        }
        "add" => add(rest),
        "setdefault" => {
            let (table, action) =
                rest.split_once(char::is_whitespace).ok_or("expected a table and an action")?;
            Ok(Command::SetDefault(table.to_owned(), action_text(action)?))
        }
        "publish" => publish(rest),
        "withdraw" => Ok(Command::Publish(vm_key(rest)?, None)),
        "check_counter" => check_counter(rest),
        "set_meter" => set_meter(rest),
        "wait" if rest.is_empty() => Ok(Command::Wait(0)),
        "wait" => {
            let time =
                rest.parse().map_err(|_| format!("`{rest}` is not a time in nanoseconds"))?;
            Ok(Command::Wait(time))
        }
        "expect_digest" => {
            let (name, hex) =
                rest.split_once(char::is_whitespace).ok_or("expected a digest and its value")?;
            Ok(Command::ExpectDigest(name.to_owned(), pattern(hex)?))
        }
        _ => Err(format!(
            "`{word}` is none of packet, expect, add, setdefault, check_counter, set_meter, wait, \
             expect_digest, publish, withdraw"
        )),
    }
}

fn vm_key(text: &str) -> Result<String, String> {
    if is_name(text) { Ok(text.to_owned()) } else { Err(format!("`{text}` is not a key")) }
}

fn publish(text: &str) -> Result<Command, String> {
    let mut words = text.split_whitespace();
    let key = vm_key(words.next().unwrap_or_default())?;
    let unsigned = |word: Option<&str>| {
        let word = word.ok_or("expected a number")?;
        u64::try_from(number(word)?).map_err(|_| format!("`{word}` is not from 0 to 2^64 - 1"))
    };
    let mut said = Said { value: unsigned(words.next())?, age_ns: 0, is_stale: false };
    while let Some(word) = words.next() {
        match word {
            "age" => said.age_ns = unsigned(words.next())?,
            "stale" => said.is_stale = true,
            _ => return Err(format!("`{word}` is neither `age NANOSECONDS` nor `stale`")),
        }
    }
    Ok(Command::Publish(key, Some(said)))
}

fn port_and_rest(text: &str) -> Result<(u32, &str), String> {
    let (port, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let port = port.parse().map_err(|_| format!("`{port}` is not a port"))?;
    Ok((port, rest))
}

fn bytes(hex: &str) -> Result<Vec<u8>, String> {
    let pattern = pattern(hex)?;
    let digits: Option<Vec<u8>> = pattern.digits.iter().copied().collect();
    let digits = digits.filter(|_| !pattern.whole).ok_or("a packet that goes in is known whole")?;
    if digits.len() % 2 != 0 {
        return Err("a packet has whole bytes: two digits each".to_owned());
    }
    Ok(digits.chunks_exact(2).map(|two| two[0] << 4 | two[1]).collect())
}

fn pattern(hex: &str) -> Result<Pattern, String> {
    let text: String = hex.chars().filter(|c| !c.is_whitespace()).collect();
    let (text, whole) = match text.strip_suffix('$') {
        Some(text) => (text, true),
        None => (&*text, false),
    };
    let digit = |c: char| match c {
        '*' => Ok(None),
        _ => match c.to_digit(16) {
            Some(digit) => Ok(Some(digit as u8)),
            None => Err(format!("`{c}` is not a hexadecimal digit")),
        },
    };
    Ok(Pattern { digits: text.chars().map(digit).collect::<Result<_, _>>()?, whole })
}

fn add(text: &str) -> Result<Command, String> {
    // Arguments may contain spaces; keys cannot.
    let text = text.replace(".isValid():", ".$valid$:");
    let (head, rest) = text.split_once('(').ok_or("expected an action: name(…)")?;
    let mut words: Vec<&str> = head.split_whitespace().collect();
    let name = words.pop().ok_or("expected an action: name(…)")?;
    let mut words = words.into_iter().peekable();
    let table = words.next().ok_or("expected a table")?.to_owned();
    let priority = words.peek().and_then(|word| word.parse().ok());
    if priority.is_some() {
        words.next();
    }
    let keys = words.map(|word| match word.rsplit_once(':') {
        Some((name, value)) => Ok((Some(name.to_owned()), key(value)?)),
        None => match word.split_once('=') {
            Some((name, value)) => Err(format!("expected NAME:VALUE: write `{name}:{value}`")),
            None => Ok((None, key(word)?)),
        },
    });
    let keys = keys.collect::<Result<_, String>>()?;
    let (arguments, behind) = rest.split_once(')').ok_or("`)` is missing")?;
    let entry = match behind.trim().strip_prefix('=') {
        Some(entry) => match entry.trim() {
            name if is_name(name) => Some(name.to_owned()),
            other => return Err(format!("`{other}` is not a name")),
        },
        None if behind.trim().is_empty() => None,
        None => return Err(format!("`{}` after the action is unexpected", behind.trim())),
    };
    let action = action_text(&format!("{name}({arguments})"))?;
    Ok(Command::Add { table, priority, keys, action, name: entry })
}

/// Parses `NAME(CELL)`. Returns the rest of the line too.
fn cell(text: &str) -> Result<(String, CellText, &str), String> {
    let (name, rest) = text.split_once('(').ok_or("expected a name and a cell: name(5)")?;
    let (cell, rest) = rest.split_once(')').ok_or("`)` is missing")?;
    let cell = match cell.trim().strip_prefix('$') {
        Some("default") => CellText::Default,
        Some(name) => CellText::Entry(name.to_owned()),
        None => CellText::Index(amount(cell.trim())?),
    };
    Ok((name.trim().to_owned(), cell, rest.trim()))
}

fn amount(text: &str) -> Result<u64, String> {
    number(text)?.to_u64().ok_or_else(|| format!("`{text}` is not a 64-bit number"))
}

fn check_counter(text: &str) -> Result<Command, String> {
    let (counter, cell, rest) = cell(text)?;
    if rest.is_empty() {
        return Ok(Command::CheckCounter { counter, cell, is: None });
    }
    let (counted, rest) = match (rest.strip_prefix("packets"), rest.strip_prefix("bytes")) {
        (Some(rest), _) => (Counted::Packets, rest.trim()),
        (_, Some(rest)) => (Counted::Bytes, rest.trim()),
        _ => return Err("expected `packets` or `bytes`".to_owned()),
    };
    let of = |(sign, how): &(&str, Comparison)| Some((*how, rest.strip_prefix(sign)?.trim()));
    let found = Comparison::ALL.iter().find_map(of);
    let (how, with) = found.ok_or("expected one of ==, !=, <, <=, >, >=")?;
    Ok(Command::CheckCounter { counter, cell, is: Some((counted, how, amount(with)?)) })
}

fn set_meter(text: &str) -> Result<Command, String> {
    let (meter, cell, rest) = cell(text)?;
    let all = rest.split_whitespace().map(amount).collect::<Result<Vec<_>, _>>()?;
    let [cir, cburst, pir, pburst] = all[..] else {
        return Err("expected two rates: CIR CBURST PIR PBURST".to_owned());
    };
    if pir < cir {
        return Err(format!("the peak rate, {pir}, is below the committed one, {cir}"));
    }
    Ok(Command::SetMeter(meter, cell, Rates { cir, cburst, pir, pburst }))
}

fn action_text(text: &str) -> Result<ActionText, String> {
    let (name, rest) = text.split_once('(').ok_or("expected an action: name(…)")?;
    let inside = rest.trim_end().strip_suffix(')').ok_or("`)` is missing")?;
    let arguments = inside.split(',').map(str::trim).filter(|one| !one.is_empty());
    let one = |text: &str| match text.split_once(':') {
        Some((name, value)) => Ok((Some(name.trim().to_owned()), number(value.trim())?)),
        None => match text.split_once('=') {
            Some((name, value)) => Err(format!("expected NAME:VALUE: write `{name}:{value}`")),
            None => Ok((None, number(text)?)),
        },
    };
    let arguments = arguments.map(one).collect::<Result<_, String>>()?;
    Ok(ActionText { name: name.trim().to_owned(), arguments })
}

fn key(text: &str) -> Result<KeyText, String> {
    if let Some((value, bits)) = text.split_once('/') {
        let bits = bits.parse().map_err(|_| format!("`{bits}` is not a prefix length"))?;
        return Ok(KeyText::Prefix(number(value)?, bits));
    }
    if let Some((value, mask)) = text.split_once("&&&") {
        return Ok(KeyText::Mask(number(value)?, number(mask)?));
    }
    if let Some((from, to)) = text.split_once("..") {
        return Ok(KeyText::Range(number(from)?, number(to)?));
    }
    if text.contains('*') {
        return wildcards(text);
    }
    Ok(KeyText::Exact(number(text)?))
}

/// Parses digits with wildcards, such as `0x1*`, to a value and a mask.
fn wildcards(text: &str) -> Result<KeyText, String> {
    let (base, digits) = based(text)?;
    let (value, mask) = (digits.replace('*', "0"), digits.chars());
    let ones = if base == 16 { 'f' } else { '1' };
    let mask: String = mask.map(|c| if c == '*' { '0' } else { ones }).collect();
    match (BigInt::from_str_radix(&value, base), BigInt::from_str_radix(&mask, base)) {
        (Ok(value), Ok(mask)) if base != 10 => Ok(KeyText::Mask(value, mask)),
        _ => Err(format!("`{text}` is not a number, nor one with `*` in base 16 or 2")),
    }
}

fn based(text: &str) -> Result<(u32, String), String> {
    let lower = text.to_ascii_lowercase();
    let (base, digits) = match lower.get(..2) {
        Some("0x") => (16, &lower[2..]),
        Some("0b") => (2, &lower[2..]),
        _ => (10, &lower[..]),
    };
    if digits.len() > 1024 {
        return Err("the number is too long".to_owned());
    }
    Ok((base, digits.to_owned()))
}

fn number(text: &str) -> Result<BigInt, String> {
    match text {
        "true" => return Ok(BigInt::one()),
        "false" => return Ok(BigInt::ZERO),
        _ => {}
    }
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Ok(u32::from(address).into());
    }
    let (base, digits) = based(text)?;
    let (negative, digits) = match digits.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, &*digits),
    };
    match BigInt::from_str_radix(digits, base) {
        Ok(value) if !digits.starts_with(['+', '-']) => Ok(if negative { -value } else { value }),
        _ => Err(format!("`{text}` is not a number")),
    }
}

/// Returns the mask of a prefix of this length.
pub(super) fn prefix_mask(bits: u32, width: u32) -> BigInt {
    let all = (BigInt::one() << width) - 1;
    let low: BigInt = (BigInt::one() << width.saturating_sub(bits)) - 1;
    all - low
}
