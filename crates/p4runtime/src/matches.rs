//! Conversion of match fields from and to messages ("Match Format").

use crate::device::{Key, Match};
use crate::error::{Error, KeyError, ValueError, named};
use crate::pipeline::{Field, MatchKind, Table};
use crate::v1::{FieldMatch, field_match};
use crate::values::{self, Bits};

/// Parses the complete key of an entry.
pub(crate) fn key(table: &Table, matches: &[FieldMatch], priority: i32) -> Result<Key, Error> {
    let matches = all(&table.fields, &table.name, matches)?;
    match (table.has_priorities(), priority) {
        (true, ..=0) => return Err(Error::Key(KeyError::PriorityNeeded(named(&table.name)))),
        (false, 1.. | ..=-1) => {
            return Err(Error::Key(KeyError::PriorityForbidden(named(&table.name))));
        }
        _ => {}
    }
    Ok(Key { matches, priority })
}

/// One match for each field, in p4info order.
pub(crate) fn all(fields: &[Field], of: &str, matches: &[FieldMatch]) -> Result<Vec<Match>, Error> {
    let mut found: Vec<Option<Match>> = vec![None; fields.len()];
    for one in matches {
        let at = fields.iter().position(|field| field.id == one.field_id);
        let unknown =
            || Error::Key(KeyError::UnknownField { table: named(of), field: one.field_id });
        let at = at.ok_or_else(unknown)?;
        if found[at].is_some() {
            return Err(Error::Key(KeyError::DuplicateField(named(&fields[at].name))));
        }
        found[at] = Some(read(&fields[at], one)?);
    }
    let whole = found.into_iter().zip(fields);
    whole.map(|(found, field)| found.map_or_else(|| anything(field), Ok)).collect()
}

/// The match of an omitted field: "don't care".
fn anything(field: &Field) -> Result<Match, Error> {
    let zero = values::zero(field.width);
    match field.kind {
        MatchKind::Exact => Err(Error::Key(KeyError::MissingField(named(&field.name)))),
        MatchKind::Lpm => Ok(Match::Lpm { value: zero, length: 0 }),
        MatchKind::Ternary => Ok(Match::Ternary { value: zero.clone(), mask: zero }),
        MatchKind::Range => Ok(Match::Range { low: zero, high: values::ones(field.width) }),
        MatchKind::Optional => Ok(Match::Optional(None)),
    }
}

fn read(field: &Field, one: &FieldMatch) -> Result<Match, Error> {
    use field_match::FieldMatchType as Message;
    let name = || named(&field.name);
    let value = |string: &[u8]| -> Result<Bits, Error> {
        let bits = values::unsigned(string, field.width);
        bits.ok_or_else(|| Error::Value(ValueError::Width { of: name(), width: field.width }))
    };
    let given = match (&one.field_match_type, field.kind) {
        (Some(Message::Exact(one)), MatchKind::Exact) => Match::Exact(value(&one.value)?),
        (Some(Message::Optional(one)), MatchKind::Optional) => {
            Match::Optional(Some(value(&one.value)?))
        }
        (Some(Message::Lpm(one)), MatchKind::Lpm) => {
            let length = u32::try_from(one.prefix_len).ok().filter(|length| *length <= field.width);
            let wrong = Error::Key(KeyError::PrefixLength {
                field: name(),
                length: one.prefix_len,
                width: field.width,
            });
            let length = length.ok_or(wrong)?;
            let value = value(&one.value)?;
            if values::is_outside(&value, &values::prefix(length, field.width)) {
                return Err(Error::Key(KeyError::AfterPrefix(name())));
            }
            Match::Lpm { value, length }
        }
        (Some(Message::Ternary(one)), MatchKind::Ternary) => {
            let (value, mask) = (value(&one.value)?, value(&one.mask)?);
            if values::is_outside(&value, &mask) {
                return Err(Error::Key(KeyError::OutsideMask(name())));
            }
            Match::Ternary { value, mask }
        }
        (Some(Message::Range(one)), MatchKind::Range) => {
            let (low, high) = (value(&one.low)?, value(&one.high)?);
            if low > high {
                return Err(Error::Key(KeyError::EmptyRange(name())));
            }
            Match::Range { low, high }
        }
        (_, kind) => {
            return Err(Error::Key(KeyError::MatchKind { field: name(), wanted: kind.name() }));
        }
    };
    // Reject the explicit "don't care" form, so that a read returns exactly the written form.
    match field.kind != MatchKind::Exact && anything(field)? == given {
        true => Err(Error::Key(KeyError::DontCare(name()))),
        false => Ok(given),
    }
}

impl MatchKind {
    fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Lpm => "lpm",
            Self::Ternary => "ternary",
            Self::Range => "range",
            Self::Optional => "optional",
        }
    }
}

/// Converts a key to messages; "don't care" matches are omitted.
pub(crate) fn to_messages(fields: &[Field], matches: &[Match]) -> Vec<FieldMatch> {
    use field_match::FieldMatchType as Message;
    let write = |(field, one): (&Field, &Match)| {
        if field.kind != MatchKind::Exact && anything(field).is_ok_and(|any| any == *one) {
            return None;
        }
        let short = |bits: &Bits| values::shortest(bits);
        let message = match one {
            Match::Exact(value) => Message::Exact(field_match::Exact { value: short(value) }),
            Match::Lpm { value, length } => {
                Message::Lpm(field_match::Lpm { value: short(value), prefix_len: *length as i32 })
            }
            Match::Ternary { value, mask } => {
                Message::Ternary(field_match::Ternary { value: short(value), mask: short(mask) })
            }
            Match::Range { low, high } => {
                Message::Range(field_match::Range { low: short(low), high: short(high) })
            }
            Match::Optional(value) => {
                Message::Optional(field_match::Optional { value: short(value.as_ref()?) })
            }
        };
        Some(FieldMatch { field_id: field.id, field_match_type: Some(message) })
    };
    fields.iter().zip(matches).filter_map(write).collect()
}
