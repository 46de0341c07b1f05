//! Table entries in the syntax of the command line.

use std::collections::BTreeMap;

use num_bigint::BigUint;
use p4runtime::v1::{self, field_match, table_action};
use p4runtime::{Action, Field, MatchKind, Pipeline, Table};

use super::value;
use super::value::short;

type Wrong = String;

/// Returns the object with this name, or the only one with a name that ends with it.
pub(super) fn named<'a, T>(
    all: impl Iterator<Item = (&'a str, T)> + Clone,
    name: &str,
    what: &str,
) -> Result<T, Wrong> {
    let mut found = Vec::new();
    for (one, thing) in all.clone() {
        if one == name {
            return Ok(thing);
        }
        if one.strip_suffix(name).is_some_and(|rest| rest.ends_with('.')) {
            found.push(thing);
        }
    }
    match (found.len(), found.pop()) {
        (1, Some(thing)) => Ok(thing),
        (0, _) => Err(unknown(all.map(|(one, _)| one), name, what)),
        _ => Err(format!("several {what}s `{}`: use a longer suffix of its name", short(name))),
    }
}

/// Describes an unknown name, with some of the known ones.
fn unknown<'a>(all: impl Iterator<Item = &'a str>, name: &str, what: &str) -> Wrong {
    /// Maximum number of names.
    const LISTED: usize = 32;
    let mut names: Vec<_> = all.take(LISTED + 1).map(|one| format!("`{}`", short(one))).collect();
    let name = short(name);
    if names.is_empty() {
        return format!("no {what} `{name}`: the program has none");
    }
    if names.len() > LISTED {
        names[LISTED] = "...".to_owned();
    }
    format!("no {what} `{name}` (known: {})", names.join(", "))
}

/// Returns a table and its id.
pub(super) fn table<'p>(pipeline: &'p Pipeline, name: &str) -> Result<(u32, &'p Table), Wrong> {
    let all = pipeline.tables.iter().map(|(id, table)| (&*table.name, (*id, table)));
    named(all, name, "table")
}

/// Returns true if a word is a name, possibly followed by arguments.
fn may_be_action(word: &str) -> bool {
    let name = word.split('(').next().unwrap_or_default();
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$');
    name.chars().all(is_part) && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// Parses an entry from words: fields with values, `priority=N` for tables with priorities, and an
/// action if `acts`.
pub(super) fn entry(
    pipeline: &Pipeline,
    name: &str,
    words: &[String],
    priority: Option<i32>,
    acts: bool,
) -> Result<v1::TableEntry, Wrong> {
    let (table_id, table) = table(pipeline, name)?;
    let mut matches = BTreeMap::new();
    let mut actions = Vec::new();
    let mut priority = priority;
    for word in words {
        // The validity of a header, in the spelling of P4Info.
        let word = word.replacen(".isValid()=", ".$valid$=", 1);
        // `set(port=3)` is an action, `port=3` a field.
        match word.split_once('=') {
            Some(("priority" | "--priority", number)) if table.has_priorities() => {
                let number = number
                    .parse()
                    .map_err(|_| format!("`{}` is not a valid priority", short(number)))?;
                if priority.replace(number).is_some() {
                    return Err("a second priority".to_owned());
                }
            }
            Some((field, value)) if !field.contains('(') => {
                let all = table.fields.iter().map(|field| (&*field.name, field));
                let field = named(all, field.trim(), "field")?;
                let one = field_match(field, value.trim())
                    .map_err(|why| format!("field `{}`: {why}", field.name))?;
                if matches.insert(field.id, one).is_some() {
                    return Err(format!("duplicate field `{}`", field.name));
                }
            }
            None if !may_be_action(&word) => {
                let fields: Vec<_> =
                    table.fields.iter().map(|one| format!("`{}`", one.name)).collect();
                return Err(format!(
                    "`{}` is neither FIELD=VALUE nor an action; the fields are {}",
                    short(&word),
                    fields.join(", ")
                ));
            }
            _ => actions.push(word),
        }
    }
    let is_missing =
        |field: &&Field| field.kind == MatchKind::Exact && !matches.contains_key(&field.id);
    if let Some(field) = table.fields.iter().find(is_missing) {
        return Err(format!("field `{}` has no value: it is compared exactly", field.name));
    }
    let action = match (&actions[..], acts) {
        ([], false) => None,
        ([one], true) => Some(action(pipeline, table, one)?),
        ([], true) => return Err("an action is missing, as `drop()`".to_owned()),
        ([one, ..], false) => return Err(format!("`{one}` is not a field with a value")),
        ([_, other, ..], true) => return Err(format!("a second action: `{other}`")),
    };
    let priority = match (table.has_priorities(), priority) {
        (true, None) => {
            return Err("entries of this table need a priority: `priority=10`".to_owned());
        }
        (false, Some(_)) => return Err("entries of this table have no priority".to_owned()),
        (_, priority) => priority.unwrap_or(0),
    };
    let r#match = matches.into_values().flatten().collect();
    Ok(v1::TableEntry { table_id, r#match, action, priority, ..Default::default() })
}

/// Parses `value/length` into a number and a prefix length; `None` if the text is not a prefix.
fn prefix(field: &Field, text: &str) -> Option<Result<(BigUint, u32), Wrong>> {
    let width = field.width;
    let (address, length) = text.split_once('/')?;
    let parsed = || {
        let number = value::parse(address.trim(), width)?;
        let length = length.parse().ok().filter(|length| *length <= width);
        let length: u32 = length.ok_or_else(|| format!("a prefix has 0 to {width} bits"))?;
        let meant = &number & value::prefix(length, width);
        if meant != number {
            let meant = value::show(&value::bytes(&meant, width), width, &field.name);
            return Err(format!(
                "`{}` has bits set after its prefix; {meant}/{length} has none",
                short(text)
            ));
        }
        Ok((number, length))
    };
    Some(parsed())
}

/// Parses `value&&&mask`, a prefix, or a value with a full mask.
fn masked(
    text: &str,
    width: u32,
    prefixed: Option<Result<(BigUint, u32), Wrong>>,
) -> Result<(BigUint, BigUint), Wrong> {
    let parse = |text: &str| value::parse(text.trim(), width);
    let (number, mask) = match (prefixed, text.split_once("&&&")) {
        (Some(prefixed), _) => {
            let (number, length) = prefixed?;
            (number, value::prefix(length, width))
        }
        (None, Some((number, mask))) => (parse(number)?, parse(mask)?),
        (None, None) => (parse(text)?, value::prefix(width, width)),
    };
    if &number & &mask != number {
        return Err(format!("`{}` has bits outside of its mask", short(text)));
    }
    Ok((number, mask))
}

/// Parses `low..high`, or one value.
fn range(text: &str, width: u32) -> Result<(BigUint, BigUint), Wrong> {
    let (low, high) = text.split_once("..").unwrap_or((text, text));
    let (low, high) = (value::parse(low.trim(), width)?, value::parse(high.trim(), width)?);
    if low > high {
        return Err(format!("`{}` ends before it begins", short(text)));
    }
    Ok((low, high))
}

/// Parses the match of a field; `None` for a wildcard.
fn field_match(field: &Field, text: &str) -> Result<Option<v1::FieldMatch>, Wrong> {
    use field_match::FieldMatchType as Message;
    let width = field.width;
    let parse = |text: &str| value::parse(text.trim(), width);
    let bytes = |number: &BigUint| value::bytes(number, width);
    let any = matches!(text, "*" | "_");
    let prefixed = prefix(field, text);
    let other = |expected: &str| Err(format!("`{}`: {expected} is expected", short(text)));
    let message = match field.kind {
        MatchKind::Exact if any || prefixed.is_some() || text.contains("&&&") => {
            return other("a value, compared exactly,");
        }
        MatchKind::Exact => Message::Exact(field_match::Exact { value: bytes(&parse(text)?) }),
        MatchKind::Optional if any => return Ok(None),
        MatchKind::Optional => {
            Message::Optional(field_match::Optional { value: bytes(&parse(text)?) })
        }
        MatchKind::Lpm if any => return Ok(None),
        MatchKind::Lpm if text.contains("&&&") => return other("a prefix, as value/length,"),
        MatchKind::Lpm => {
            let (number, length) = prefixed.unwrap_or_else(|| Ok((parse(text)?, width)))?;
            if length == 0 {
                return Ok(None);
            }
            Message::Lpm(field_match::Lpm { value: bytes(&number), prefix_len: length as i32 })
        }
        MatchKind::Ternary if any => return Ok(None),
        MatchKind::Ternary => {
            let (number, mask) = masked(text, width, prefixed)?;
            if mask == BigUint::ZERO {
                return Ok(None);
            }
            Message::Ternary(field_match::Ternary { value: bytes(&number), mask: bytes(&mask) })
        }
        MatchKind::Range if any => return Ok(None),
        MatchKind::Range if prefixed.is_some() || text.contains("&&&") => {
            return other("a range, as low..high,");
        }
        MatchKind::Range => {
            let (low, high) = range(text, width)?;
            if low == BigUint::ZERO && high == value::prefix(width, width) {
                return Ok(None);
            }
            Message::Range(field_match::Range { low: bytes(&low), high: bytes(&high) })
        }
    };
    Ok(Some(v1::FieldMatch { field_id: field.id, field_match_type: Some(message) }))
}

/// Parses an action of a table with its arguments: `set(port=3)`, `set(3)`, `drop`.
pub(super) fn action(
    pipeline: &Pipeline,
    table: &Table,
    text: &str,
) -> Result<v1::TableAction, Wrong> {
    let (name, arguments) = match text.split_once('(') {
        None => (text, ""),
        Some((name, rest)) => {
            let inside = rest.trim_end().strip_suffix(')');
            (name, inside.ok_or_else(|| format!("`{}` does not end with `)`", short(text)))?)
        }
    };
    let all = table.actions.keys().filter_map(|id| {
        let action = pipeline.actions.get(id)?;
        Some((&*action.name, (*id, action)))
    });
    let (action_id, action): (u32, &Action) = named(all, name.trim(), "action")?;
    let arguments: Vec<&str> =
        arguments.split(',').map(str::trim).filter(|one| !one.is_empty()).collect();
    if arguments.len() != action.params.len() {
        let names: Vec<_> = action.params.iter().map(|one| format!("`{}`", one.name)).collect();
        let (wanted, given) = (names.len(), arguments.len());
        let which =
            if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
        return Err(format!(
            "action `{}` takes {wanted} arguments{which}, {given} are given",
            action.name
        ));
    }
    let mut given = BTreeMap::new();
    for (at, argument) in arguments.into_iter().enumerate() {
        let (param, text) = match argument.split_once('=') {
            Some((name, text)) => {
                let all = action.params.iter().map(|param| (&*param.name, param));
                (named(all, name.trim(), "parameter")?, text.trim())
            }
            None => (&action.params[at], argument),
        };
        let number = value::parse(text, param.width)
            .map_err(|why| format!("parameter `{}` of `{}`: {why}", param.name, action.name))?;
        let value = value::bytes(&number, param.width);
        if given.insert(param.id, value).is_some() {
            return Err(format!("duplicate parameter `{}`", param.name));
        }
    }
    let params = given.into_iter();
    let params = params.map(|(param_id, value)| v1::action::Param { param_id, value }).collect();
    let action = v1::Action { action_id, params };
    Ok(v1::TableAction { r#type: Some(table_action::Type::Action(action)) })
}

/// Formats the match fields of an entry as names and values.
pub(super) fn shown_key(table: &Table, entry: &v1::TableEntry) -> Vec<(String, String)> {
    use field_match::FieldMatchType as Message;
    let one = |matched: &v1::FieldMatch| {
        let field = table.fields.iter().find(|field| field.id == matched.field_id)?;
        let show = |value: &[u8]| value::show(value, field.width, &field.name);
        let text = match matched.field_match_type.as_ref()? {
            Message::Exact(one) => show(&one.value),
            Message::Optional(one) => show(&one.value),
            Message::Lpm(one) => format!("{}/{}", show(&one.value), one.prefix_len),
            Message::Ternary(one) => {
                let mask = BigUint::from_bytes_be(&one.mask);
                let ones = mask.count_ones() as u32;
                match mask == value::prefix(ones, field.width) {
                    true if ones == field.width => show(&one.value),
                    true if field.width >= 32 => format!("{}/{ones}", show(&one.value)),
                    _ => format!("{}&&&{mask:#x}", show(&one.value)),
                }
            }
            Message::Range(one) if one.low == one.high => show(&one.low),
            Message::Range(one) => format!("{}..{}", show(&one.low), show(&one.high)),
            Message::Other(_) => return None,
        };
        Some((field.name.clone(), text))
    };
    entry.r#match.iter().filter_map(one).collect()
}

/// Formats the key of an entry in one line.
pub(super) fn shown_which(table: &Table, entry: &v1::TableEntry) -> String {
    if entry.is_default_action {
        return "(default)".to_owned();
    }
    let key = shown_key(table, entry).into_iter().map(|(name, text)| format!("{name}={text}"));
    let key: Vec<String> = key.collect();
    if key.is_empty() { "(any)".to_owned() } else { key.join(" ") }
}

/// Formats the action of an entry in the input syntax.
pub(super) fn shown_action(pipeline: &Pipeline, entry: &v1::TableEntry) -> String {
    let Some(table_action::Type::Action(call)) =
        entry.action.as_ref().and_then(|action| action.r#type.as_ref())
    else {
        return String::new();
    };
    let Some(action) = pipeline.actions.get(&call.action_id) else {
        return format!("{:#x}", call.action_id);
    };
    let argument = |given: &v1::action::Param| {
        let param = action.params.iter().find(|param| param.id == given.param_id)?;
        Some(format!("{}={}", param.name, value::show(&given.value, param.width, &param.name)))
    };
    let arguments: Vec<_> = call.params.iter().filter_map(argument).collect();
    format!("{}({})", action.name, arguments.join(", "))
}
