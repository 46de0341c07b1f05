//! Table entries in the program (P4_16 specification, section 14.2.1.4), and their actions.

use num_bigint::BigInt;
use p4_syntax::ast::{self, ExpressionKind as Kind, PropertyValue};
use p4_syntax::diagnostic::Diagnostic;

use super::tables::Parts;
use super::{Checked, Checker, Reported};
use crate::ir::{Entry, Expression, Key, MatchKind, Set, TableAction, Type, Value};

/// Maximum priority of an entry.
const MAX_PRIORITY: u32 = i32::MAX as u32;

impl Checker<'_> {
    pub(super) fn entries(
        &mut self,
        property: &ast::Property,
        parts: &Parts<'_>,
        actions: &[TableAction],
    ) -> Checked<Vec<Entry>> {
        let PropertyValue::Entries(written) = &property.value else { return Err(Reported) };
        if parts.keys.is_empty() {
            return self.wrong(property.name.span, "a table without a key has no entries");
        }
        let types: Vec<Type> = parts.keys.iter().map(|key| key.expression.of.clone()).collect();
        if let (true, Some(said)) =
            (property.constant, written.iter().find_map(|one| one.priority.as_ref()))
        {
            let diagnostic = Diagnostic::error(said.span, "constant entries have no priorities");
            return self.refuse(diagnostic.help("the first matching entry wins: order them"));
        }
        let priorities = self.priorities(written, parts)?;
        let mut all = Vec::with_capacity(written.len());
        let mut wrong = false;
        for (entry, priority) in written.iter().zip(priorities) {
            match self.entry(property, entry, (parts, &types), actions, priority) {
                Ok(entry) => all.push(entry),
                Err(Reported) => wrong = true,
            }
        }
        if wrong { Err(Reported) } else { Ok(all) }
    }

    /// Returns the priorities of entries; the highest wins (section 14.2.1.4). If the program
    /// specifies none, the first matching entry wins. Otherwise, an entry without a priority
    /// continues from the preceding one.
    fn priorities(&mut self, written: &[ast::Entry], parts: &Parts<'_>) -> Checked<Vec<u32>> {
        let delta = u64::from(parts.priority_delta.unwrap_or(1));
        let lowest_first = parts.lowest_priority_first;
        let is_said = written.iter().any(|entry| entry.priority.is_some());
        let first = if lowest_first || is_said {
            1
        } else {
            1 + delta * (written.len() as u64).saturating_sub(1)
        };
        let mut all = Vec::with_capacity(written.len());
        let mut before: Option<u64> = None;
        for entry in written {
            let priority = match (&entry.priority, before) {
                (Some(said), _) => {
                    u64::from(self.known_size(said, "a priority", 0..=MAX_PRIORITY)?)
                }
                (None, None) if is_said => {
                    let diagnostic =
                        Diagnostic::error(entry.action.span, "this entry has no priority");
                    return self.refuse(
                        diagnostic.help("the first has one where others have: `priority = 1: …`"),
                    );
                }
                (None, None) => first,
                (None, Some(before)) if lowest_first => before + delta,
                (None, Some(before)) => before.checked_sub(delta).unwrap_or(u64::MAX),
            };
            if priority > u64::from(MAX_PRIORITY) {
                let diagnostic =
                    Diagnostic::error(entry.action.span, "this entry's priority is out of range");
                return self.refuse(diagnostic.help("say it: `priority = 1: …`"));
            }
            before = Some(priority);
            let most = u64::from(MAX_PRIORITY);
            all.push((if lowest_first { most - priority } else { priority }) as u32);
        }
        Ok(all)
    }

    fn entry(
        &mut self,
        property: &ast::Property,
        written: &ast::Entry,
        (parts, types): (&Parts<'_>, &[Type]),
        actions: &[TableAction],
        priority: u32,
    ) -> Checked<Entry> {
        let sets = self.sets(property.name.span, &written.keys, types)?;
        for (set, key) in sets.iter().zip(&parts.keys) {
            self.check_entry_set(set, key)?;
        }
        let action = self.entry_action(&written.action, actions, false)?;
        let constant = written.constant || property.constant;
        Ok(Entry { keys: sets, action, priority, constant })
    }

    /// Reports an error unless the keyset is constant and valid for the key's match kind.
    fn check_entry_set(&mut self, set: &Set, key: &Key) -> Checked<()> {
        let (kind, span) = (key.matched, key.expression.span);
        let fits = match (set, kind) {
            (Set::Value(value), _) => {
                self.known_value(value)?;
                true
            }
            (Set::Any, MatchKind::Exact) => false,
            (Set::Any, _) => true,
            (Set::Mask(value, mask), MatchKind::Ternary | MatchKind::Lpm) => {
                self.known_value(value)?;
                let mask_value = self.known_value(mask)?;
                if kind == MatchKind::Lpm && !is_prefix(&mask_value, &self.representation(&mask.of))
                {
                    let message = "this mask is not a prefix: its 1 bits are not all leading";
                    return self.wrong(mask.span, message);
                }
                true
            }
            (Set::Range(from, to), MatchKind::Range) => {
                if let (Value::Integer(first), Value::Integer(last)) =
                    (self.known_value(from)?, self.known_value(to)?)
                    && first > last
                {
                    return self.wrong(from.span.to(to.span), "nothing is in this range");
                }
                true
            }
            _ => false,
        };
        if fits {
            return Ok(());
        }
        let at = match set {
            Set::Mask(one, other) | Set::Range(one, other) => one.span.to(other.span),
            _ => span,
        };
        let what = match kind {
            MatchKind::Exact => "`exact` compares with one value",
            MatchKind::Lpm => "`lpm` compares with a value, or a value and a mask (`&&&`)",
            MatchKind::Ternary => "`ternary` compares with a value, or a value and a mask (`&&&`)",
            MatchKind::Range => "`range` compares with a value, or a range (`..`)",
            MatchKind::Optional => "`optional` compares with a value, or any (`_`)",
        };
        let diagnostic = Diagnostic::error(at, "this entry does not fit the key");
        self.refuse(diagnostic.related(span, what))
    }

    // ---- actions of entries ----

    /// Resolves the action of an entry. Returns its index in the table, and the arguments.
    pub(super) fn entry_action(
        &mut self,
        written: &ast::Expression,
        actions: &[TableAction],
        by_default: bool,
    ) -> Checked<(usize, Vec<Value>)> {
        let (name, given) = match &written.kind {
            Kind::Call(callee, _, given) => (&**callee, &given[..]),
            _ => (written, &[][..]),
        };
        let id = self.action_named(name)?;
        let Some(at) = actions.iter().position(|one| one.call.action == id) else {
            let diagnostic = Diagnostic::error(name.span, "this is not an action of the table");
            return self.refuse(diagnostic.help("name it in `actions` as well"));
        };
        if by_default && actions[at].table_only {
            return self.wrong(name.span, "this action is `@tableonly`");
        }
        if !by_default && actions[at].default_only {
            return self.wrong(name.span, "this action is `@defaultonly`");
        }
        let (directed, open) = self.action_parameters(id);
        // An entry may repeat the arguments bound by the table, if they are the same.
        let given = match given.len() == directed.len() + open.len() {
            true => {
                let (again, given) = given.split_at(directed.len());
                let again = self.arguments(written.span, &directed, &mut [], again)?;
                let bound = &actions[at].call.arguments;
                if let Some((other, _)) =
                    again.iter().zip(bound).find(|(one, two)| !one.is_like(two))
                {
                    let diagnostic =
                        Diagnostic::error(other.span, "the table binds something else here");
                    return self.refuse(diagnostic.help("write it as it stands in `actions`"));
                }
                given
            }
            false => given,
        };
        let arguments = self.arguments(written.span, &open, &mut [], given)?;
        let mut values = Vec::with_capacity(arguments.len());
        for argument in &arguments {
            values.push(self.known_value(argument)?);
        }
        Ok((at, values))
    }

    fn known_value(&mut self, value: &Expression) -> Checked<Value> {
        match value.constant() {
            Some(known) => Ok(known.clone()),
            None => self.wrong(value.span, "this is not known when the program is compiled"),
        }
    }
}

/// Returns true if the mask consists of leading ones.
fn is_prefix(mask: &Value, of: &Type) -> bool {
    let (Value::Integer(mask), Type::Bits { width, .. }) = (mask, of) else { return false };
    let all = (BigInt::from(1) << *width) - 1;
    let holes: BigInt = all - mask;
    let carried: BigInt = &holes + 1;
    holes & carried == BigInt::ZERO
}
