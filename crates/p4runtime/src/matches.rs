//! Conversion of match fields from and to messages ("Match Format").

use crate::device::{Key, Match};
use crate::error::{Error, KeyError, ValueError, named};
use crate::pipeline::{Field, MatchKind, Table};
use crate::v1::FieldMatch;
use crate::v1::field_match::{Exact, FieldMatchType as Message, Lpm, Optional, Range, Ternary};
use crate::values::{self, Bits};

/// Parses the complete key of an entry.
pub(crate) fn key(table: &Table, matches: &[FieldMatch], priority: i32) -> Result<Key, Error> {
    let matches = parse_fields(&table.fields, &table.name, matches)?;
    match (table.has_priorities(), priority) {
        (true, ..=0) => return Err(Error::Key(KeyError::PriorityNeeded(named(&table.name)))),
        (false, 1.. | ..=-1) => {
            return Err(Error::Key(KeyError::PriorityForbidden(named(&table.name))));
        }
        _ => {}
    }
    Ok(Key { matches, priority })
}

/// Parses the matches of a key: one for each field, in p4info order. `name` is the object's.
pub(crate) fn parse_fields(
    fields: &[Field],
    name: &str,
    matches: &[FieldMatch],
) -> Result<Vec<Match>, Error> {
    let mut parsed: Vec<Option<Match>> = vec![None; fields.len()];
    for field_match in matches {
        let id = field_match.field_id;
        let unknown = || Error::Key(KeyError::UnknownField { table: named(name), field: id });
        let index = fields.iter().position(|field| field.id == id).ok_or_else(unknown)?;
        let field = &fields[index];
        if parsed[index].is_some() {
            return Err(Error::Key(KeyError::DuplicateField(named(&field.name))));
        }
        parsed[index] = Some(parse_match(field, field_match)?);
    }
    let fields = parsed.into_iter().zip(fields);
    fields.map(|(parsed, field)| parsed.map_or_else(|| dont_care(field), Ok)).collect()
}

/// The match of an omitted field: "don't care".
fn dont_care(field: &Field) -> Result<Match, Error> {
    let zero = values::zero(field.width);
    match field.kind {
        MatchKind::Exact => Err(Error::Key(KeyError::MissingField(named(&field.name)))),
        MatchKind::Lpm => Ok(Match::Lpm { value: zero, length: 0 }),
        MatchKind::Ternary => Ok(Match::Ternary { value: zero.clone(), mask: zero }),
        MatchKind::Range => Ok(Match::Range { low: zero, high: values::ones(field.width) }),
        MatchKind::Optional => Ok(Match::Optional(None)),
    }
}

fn parse_match(field: &Field, field_match: &FieldMatch) -> Result<Match, Error> {
    let name = || named(&field.name);
    let parse_value = |bytes: &[u8]| -> Result<Bits, Error> {
        let bits = values::unsigned(bytes, field.width);
        bits.ok_or_else(|| Error::Value(ValueError::Width { of: name(), width: field.width }))
    };
    let parsed = match (&field_match.field_match_type, field.kind) {
        (Some(Message::Exact(exact)), MatchKind::Exact) => Match::Exact(parse_value(&exact.value)?),
        (Some(Message::Optional(optional)), MatchKind::Optional) => {
            Match::Optional(Some(parse_value(&optional.value)?))
        }
        (Some(Message::Lpm(lpm)), MatchKind::Lpm) => {
            let out_of_range = || {
                Error::Key(KeyError::PrefixLength {
                    field: name(),
                    length: lpm.prefix_len,
                    width: field.width,
                })
            };
            let length = u32::try_from(lpm.prefix_len).ok().filter(|length| *length <= field.width);
            let length = length.ok_or_else(out_of_range)?;
            let value = parse_value(&lpm.value)?;
            if values::is_outside(&value, &values::prefix(length, field.width)) {
                return Err(Error::Key(KeyError::AfterPrefix(name())));
            }
            Match::Lpm { value, length }
        }
        (Some(Message::Ternary(ternary)), MatchKind::Ternary) => {
            let (value, mask) = (parse_value(&ternary.value)?, parse_value(&ternary.mask)?);
            if values::is_outside(&value, &mask) {
                return Err(Error::Key(KeyError::OutsideMask(name())));
            }
            Match::Ternary { value, mask }
        }
        (Some(Message::Range(range)), MatchKind::Range) => {
            let (low, high) = (parse_value(&range.low)?, parse_value(&range.high)?);
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
    if field.kind != MatchKind::Exact && dont_care(field)? == parsed {
        return Err(Error::Key(KeyError::DontCare(name())));
    }
    Ok(parsed)
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
    let to_message = |(field, parsed): (&Field, &Match)| {
        if field.kind != MatchKind::Exact && dont_care(field).is_ok_and(|any| any == *parsed) {
            return None;
        }
        let short = |bits: &Bits| values::shortest(bits);
        let message = match parsed {
            Match::Exact(value) => Message::Exact(Exact { value: short(value) }),
            Match::Lpm { value, length } => {
                Message::Lpm(Lpm { value: short(value), prefix_len: *length as i32 })
            }
            Match::Ternary { value, mask } => {
                Message::Ternary(Ternary { value: short(value), mask: short(mask) })
            }
            Match::Range { low, high } => {
                Message::Range(Range { low: short(low), high: short(high) })
            }
            Match::Optional(value) => Message::Optional(Optional { value: short(value.as_ref()?) }),
        };
        Some(FieldMatch { field_id: field.id, field_match_type: Some(message) })
    };
    fields.iter().zip(matches).filter_map(to_message).collect()
}
