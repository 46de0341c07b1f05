//! Table entries in STF syntax.

use num_bigint::BigInt;
use p4_syntax::ast::Direction;

use super::parse::prefix_mask;
use super::{ActionText, KeyText};
use crate::interpret::tables::{Entry, Match};
use crate::ir::{
    ActionId, Elaborated, MatchKind, Program, Type, Value, arithmetic, control_plane_name,
};

/// Finds a table by name.
pub(super) fn find_table(elaborated: &Elaborated, name: &str) -> Result<usize, String> {
    let all: Vec<_> =
        (0..).zip(&elaborated.tables).map(|(at, (_, whole))| (at, &**whole)).collect();
    find_named(&all, name, "table")
}

/// Finds an index by full name or by a suffix of it. `_` may replace dots.
pub(super) fn find_named(all: &[(usize, &str)], name: &str, what: &str) -> Result<usize, String> {
    let is = |whole: &str| {
        whole == name
            || whole.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'))
            || whole.replace('.', "_") == name
    };
    let mut found = all.iter().filter(|(_, whole)| is(whole));
    match (found.next(), found.next()) {
        (Some((at, _)), None) => Ok(*at),
        (Some(_), Some(_)) => {
            Err(format!("several {what}s `{name}`: use a longer suffix of its name"))
        }
        (None, _) if all.is_empty() => Err(format!("the program has no {what}s")),
        (None, _) => {
            let all: Vec<_> = all.iter().map(|(_, whole)| format!("`{whole}`")).collect();
            Err(format!("no {what} `{name}` (known: {})", all.join(", ")))
        }
    }
}

/// Returns the entry that a line adds, and the index of its table.
pub fn added(
    program: &Program,
    elaborated: &Elaborated,
    table: &str,
    key: (Option<u32>, &[(Option<String>, KeyText)]),
    action: &ActionText,
) -> Result<(usize, Entry), String> {
    let at = find_table(elaborated, table)?;
    Ok((at, entry(program, elaborated, at, key, action)?))
}

fn entry(
    program: &Program,
    elaborated: &Elaborated,
    at: usize,
    (priority, keys): (Option<u32>, &[(Option<String>, KeyText)]),
    action: &ActionText,
) -> Result<Entry, String> {
    let table = &program.tables[elaborated.tables[at].0.index()];
    let mut matches = vec![None; table.keys.len()];
    for (behind, (name, text)) in keys.iter().enumerate() {
        let place = match name {
            Some(name) => table.keys.iter().position(|key| {
                &*key.name == name
                    || key.name.strip_suffix(&**name).is_some_and(|rest| rest.ends_with('.'))
            }),
            None => Some(behind).filter(|at| *at < table.keys.len()),
        };
        let Some(place) = place else {
            let all: Vec<_> = table.keys.iter().map(|key| format!("`{}`", key.name)).collect();
            let name = name.as_deref().unwrap_or("one more");
            return Err(format!("the key has no part `{name}`; it has {}", all.join(", ")));
        };
        let key = &table.keys[place];
        if matches[place].is_some() {
            return Err(format!("`{}` has two values", key.name));
        }
        let found = key_match(program, &key.expression.of, key.matched, text);
        matches[place] = Some(found.map_err(|why| format!("`{}`: {why}", key.name))?);
    }
    let mut all = Vec::with_capacity(matches.len());
    for (found, key) in matches.into_iter().zip(&table.keys) {
        match (found, key.matched) {
            (Some(found), _) => all.push(found),
            (None, MatchKind::Exact) => {
                return Err(format!("`{}` has no value: it is compared exactly", key.name));
            }
            (None, _) => all.push(Match::Any),
        }
    }
    let action = table_action(program, elaborated, at, action, false)?;
    Ok(Entry { keys: all, priority: priority.unwrap_or(0), action })
}

fn key_match(
    program: &Program,
    of: &Type,
    kind: MatchKind,
    text: &KeyText,
) -> Result<Match, String> {
    let width = program.size_of(of).map_or(32, |(bits, _)| bits);
    let value = |number: &BigInt| typed(program, of, number);
    let fits = |number: &BigInt| value(number).map(|_| number.clone());
    Ok(match (kind, text) {
        (
            MatchKind::Exact | MatchKind::Lpm | MatchKind::Ternary | MatchKind::Optional,
            KeyText::Exact(number),
        ) => Match::Exact(value(number)?),
        (MatchKind::Range, KeyText::Exact(number)) => Match::Range(fits(number)?, fits(number)?),
        (MatchKind::Lpm | MatchKind::Ternary, KeyText::Prefix(number, bits)) if *bits <= width => {
            let mask = prefix_mask(*bits, width);
            let within = fits(number)? & &mask;
            if within != *number {
                return Err(format!(
                    "{number:#x}/{bits} has bits set after its prefix: write {within:#x}/{bits}"
                ));
            }
            Match::Mask(within, mask)
        }
        (MatchKind::Lpm | MatchKind::Ternary, KeyText::Prefix(_, bits)) => {
            return Err(format!("/{bits}: a prefix has 0 to {width} bits"));
        }
        (MatchKind::Ternary | MatchKind::Lpm, KeyText::Mask(number, mask)) => {
            let within = fits(number)? & fits(mask)?;
            if within != *number {
                return Err(format!(
                    "{number:#x}&&&{mask:#x} has bits outside of its mask: write {within:#x}&&&{mask:#x}"
                ));
            }
            Match::Mask(within, mask.clone())
        }
        (MatchKind::Range, KeyText::Range(from, to)) if from > to => {
            return Err(format!("{from}..{to} ends before it begins"));
        }
        (MatchKind::Range, KeyText::Range(from, to)) => Match::Range(fits(from)?, fits(to)?),
        (kind, _) => return Err(format!("expected {}", form(kind))),
    })
}

/// Returns the expected syntax of a key field.
fn form(kind: MatchKind) -> &'static str {
    match kind {
        MatchKind::Exact => "VALUE: it is compared exactly",
        MatchKind::Optional => "VALUE, or nothing for any: it is optional",
        MatchKind::Lpm => "VALUE/BITS: it is a prefix",
        MatchKind::Ternary => "VALUE&&&MASK: it is ternary",
        MatchKind::Range => "FROM..TO: it is a range",
    }
}

/// Converts a number to a value of this type.
fn typed(program: &Program, of: &Type, number: &BigInt) -> Result<Value, String> {
    let small = || usize::try_from(number).map_err(|_| format!("{number} is too large"));
    Ok(match of {
        Type::Bool => Value::Bool(*number != BigInt::ZERO),
        Type::Error => Value::Error(small()?),
        Type::New(id) => typed(program, &program.new_types[id.index()].of, number)?,
        Type::Enum(id) => match &program.enums[id.index()].representation {
            Some(of) => typed(program, of, number)?,
            None => Value::Member(small()?),
        },
        _ => match arithmetic::range(of) {
            Some((least, most)) if !(&least..=&most).contains(&number) => {
                return Err(format!("{number} does not fit: it is to be {least} to {most}"));
            }
            _ => Value::Integer(number.clone()),
        },
    })
}

/// Resolves an action of the table at this index. Returns the index of the action in the table, and
/// its arguments.
pub(super) fn table_action(
    program: &Program,
    elaborated: &Elaborated,
    at: usize,
    text: &ActionText,
    by_default: bool,
) -> Result<(usize, Vec<Value>), String> {
    let (id, whole) = &elaborated.tables[at];
    let table = &program.tables[id.index()];
    if by_default && table.default_is_constant {
        return Err(format!("the default action of `{whole}` is constant"));
    }
    if !by_default && table.entries_are_constant {
        return Err(format!("the entries of `{whole}` are constant"));
    }
    let around = whole.rsplit_once('.').map_or("", |(around, _)| around);
    let is = |action: ActionId| {
        let declared = &program.actions[action.index()].declared;
        let name = control_plane_name(declared, around);
        name == text.name
            || *declared.name == *text.name
            || name.strip_suffix(&*text.name).is_some_and(|rest| rest.ends_with('.'))
            || name.replace('.', "_") == text.name
    };
    let Some(place) = table.actions.iter().position(|one| is(one.call.action)) else {
        return Err(format!("`{whole}` has no action `{}`", text.name));
    };
    let how = &table.actions[place];
    let is_refused = if by_default { how.table_only } else { how.default_only };
    if is_refused {
        let only = if by_default { "the action of an entry" } else { "the default action" };
        return Err(format!("`{}` can only be {only} of `{whole}`", text.name));
    }
    let parameters = &program.actions[table.actions[place].call.action.index()].parameters;
    let variables = parameters.iter().map(|one| &program.variables[one.index()]);
    let open: Vec<_> = variables.filter(|one| one.direction == Some(Direction::None)).collect();
    if open.len() != text.arguments.len() {
        let (name, count) = (&text.name, open.len());
        return Err(format!(
            "`{name}` takes {count} arguments, {} are given",
            text.arguments.len()
        ));
    }
    let mut values = Vec::with_capacity(open.len());
    for (behind, parameter) in open.iter().enumerate() {
        let name = &parameter.declared.name;
        let named = |(one, _): &&(Option<String>, BigInt)| one.as_deref() == Some(&**name);
        let given = text.arguments.iter().find(named).or(text.arguments.get(behind));
        match given {
            Some((given, number)) if given.as_deref().is_none_or(|given| given == &**name) => {
                values.push(typed(program, &parameter.of, number)?);
            }
            _ => return Err(format!("`{name}` has no value")),
        }
    }
    Ok((place, values))
}
