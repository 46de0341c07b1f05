//! Tables (P4_16 specification, section 14.2).

use std::sync::Arc;

use num_bigint::BigInt;

use super::scope::Symbol;
use super::{Checked, Checker, Told, declared};
use crate::diagnostic::Diagnostic;
use crate::ir::{
    ActionCall, ActionId, Entry, Expression, InstanceId, Key, MatchKind, Parameter, Set, Table,
    TableAction, TableId, Type, Value,
};
use crate::model::Object;
use crate::source::Span;
use crate::syntax::ast::{self, Direction, ExpressionKind as Kind, PropertyValue};
use crate::words::closest_word;

/// As many entries as a table has that does not say its size.
const SIZE: u32 = 1024;
/// What a table may have.
const PROPERTIES: [&str; 9] = [
    "key",
    "actions",
    "default_action",
    "entries",
    "size",
    "largest_priority_wins",
    "priority_delta",
    "psa_direct_counter",
    "psa_direct_meter",
];
/// The most entries that a table may have.
const MAX_SIZE: u32 = 1 << 24;
/// The highest priority that an entry may have.
const MAX_PRIORITY: u32 = i32::MAX as u32;

/// A table while its properties are read.
#[derive(Default)]
struct Parts<'a> {
    keys: Vec<Key>,
    actions: Option<Vec<TableAction>>,
    default_action: Option<&'a ast::Property>,
    entries: Option<&'a ast::Property>,
    size: Option<u32>,
    lowest_priority_first: bool,
    priority_delta: Option<u32>,
    direct_counter: Option<InstanceId>,
    direct_meter: Option<InstanceId>,
}

impl Checker<'_> {
    pub(super) fn table(&mut self, written: &ast::Declaration, table: &ast::Table) -> Checked<()> {
        self.declare(&written.name, Symbol::Unfinished);
        let mut parts = Parts::default();
        let mut wrong = false;
        for (at, property) in table.properties.iter().enumerate() {
            let name = &property.name;
            if table.properties[..at].iter().any(|before| before.name.text == name.text) {
                return self.wrong(name.span, format!("`{}` is there twice", name.text));
            }
            wrong |= self.property(property, &mut parts).is_err();
        }
        if wrong {
            return Err(Told);
        }
        let mut actions = parts.actions.take().unwrap_or_default();
        let default_action = match parts.default_action {
            Some(property) => self.default_action(property, &actions)?,
            None => (self.no_action(written.name.span, &mut actions)?, Vec::new()),
        };
        let entries = match parts.entries {
            Some(property) => self.entries(property, &parts, &actions)?,
            None => Vec::new(),
        };
        let size = parts.size.unwrap_or(SIZE).max(entries.len() as u32);
        let depths = actions.iter().map(|one| self.depths.actions[one.call.action.index()]);
        let depth = 1 + depths.max().unwrap_or(0);
        self.depths.tables.push(depth);
        let id = TableId(self.program.tables.len() as u32);
        self.program.tables.push(Table {
            declared: declared(&written.name, &written.annotations),
            keys: parts.keys,
            actions,
            default_action,
            default_is_constant: parts.default_action.is_some_and(|property| property.constant),
            entries,
            entries_are_constant: parts.entries.is_some_and(|property| property.constant),
            size,
            direct_counter: parts.direct_counter,
            direct_meter: parts.direct_meter,
        });
        for object in parts.direct_counter.into_iter().chain(parts.direct_meter) {
            self.direct.attach(object, id);
        }
        self.declare(&written.name, Symbol::Table(id));
        Ok(())
    }

    fn property<'a>(&mut self, property: &'a ast::Property, parts: &mut Parts<'a>) -> Checked<()> {
        let span = property.name.span;
        match (&*property.name.text, &property.value) {
            ("key", PropertyValue::Key(keys)) => {
                let all: Vec<_> = keys.iter().map(|key| self.key(key)).collect();
                parts.keys = all.into_iter().collect::<Checked<Vec<_>>>()?;
                self.check_keys(span, &parts.keys)?;
            }
            ("actions", PropertyValue::Actions(all)) => {
                let all: Vec<_> =
                    all.iter().map(|(said, one)| self.table_action(said, one)).collect();
                let all = all.into_iter().collect::<Checked<Vec<_>>>()?;
                self.check_actions(span, &all)?;
                parts.actions = Some(all);
            }
            ("default_action", PropertyValue::Expression(_)) => {
                parts.default_action = Some(property);
            }
            ("entries", PropertyValue::Entries(_)) => parts.entries = Some(property),
            ("size", PropertyValue::Expression(size)) => {
                parts.size = Some(self.known_size(size, "a table's size", 1..=MAX_SIZE)?);
            }
            ("largest_priority_wins", PropertyValue::Expression(value)) => {
                let value = self.expression_as(value, &Type::Bool)?;
                parts.lowest_priority_first = value.constant() == Some(&Value::Bool(false));
            }
            ("priority_delta", PropertyValue::Expression(delta)) => {
                parts.priority_delta =
                    Some(self.known_size(delta, "a difference of priorities", 1..=MAX_SIZE)?);
            }
            (name @ ("psa_direct_counter" | "psa_direct_meter"), PropertyValue::Expression(of)) => {
                let counts = name == "psa_direct_counter";
                let wanted = if counts { Object::DirectCounter } else { Object::DirectMeter };
                let object = Some(self.direct_object(of, wanted)?);
                let place =
                    if counts { &mut parts.direct_counter } else { &mut parts.direct_meter };
                *place = object;
            }
            (name, _) => return self.no_property(name, span),
        }
        Ok(())
    }

    fn no_property(&mut self, name: &str, span: Span) -> Checked<()> {
        let Some(near) = closest_word(name, &PROPERTIES) else {
            return self.unsupported(span, &format!("the property `{name}`"));
        };
        let told = Diagnostic::error(span, format!("a table has no property `{name}`"));
        self.refuse(told.help(format!("it has `{near}`")))
    }

    // ---- keys ----

    fn key(&mut self, written: &ast::KeyElement) -> Checked<Key> {
        let expression = self.expression(&written.expression, None)?;
        let matched = self.match_kind(&written.matched)?;
        let number = self.representation(&expression.of);
        let numeric = number.is_bits();
        let fits = match matched {
            MatchKind::Exact | MatchKind::Optional => {
                numeric || matches!(number, Type::Bool | Type::Enum(_) | Type::Error)
            }
            // In two's complement, bits and order are not what people expect.
            _ => matches!(number, Type::Bits { signed: false, .. }) || number == Type::Bool,
        };
        if !fits {
            let what = self.describe(&expression.of);
            let told = Diagnostic::error(expression.span, format!("{what} is no key for this"));
            return self.refuse(told.related(written.matched.span, "compared like this"));
        }
        let name = match crate::ir::name_annotation(&written.annotations) {
            Some(name) => name,
            None => self.key_name(&written.expression)?,
        };
        Ok(Key { name, annotations: written.annotations.clone(), expression, matched })
    }

    fn match_kind(&mut self, written: &ast::Name) -> Checked<MatchKind> {
        if !self.program.match_kinds.contains(&written.text) {
            let known = self.program.match_kinds.clone();
            if matches!(&*written.text, "exact" | "lpm" | "ternary" | "range" | "optional") {
                let message = format!("`{}` is not declared", written.text);
                let help = "`#include <ubpf_model.p4>` at the beginning declares it";
                return self.refuse(Diagnostic::error(written.span, message).help(help));
            }
            return self.no_member(written, &Type::MatchKind, known.into_iter());
        }
        Ok(match &*written.text {
            "exact" => MatchKind::Exact,
            "lpm" => MatchKind::Lpm,
            "ternary" => MatchKind::Ternary,
            "range" => MatchKind::Range,
            "optional" => MatchKind::Optional,
            other => {
                let what = format!("a key that is compared by `{other}`");
                return self.unsupported(written.span, &what);
            }
        })
    }

    /// What the control plane calls a key that has no `@name`: as it is written.
    fn key_name(&mut self, written: &ast::Expression) -> Checked<Arc<str>> {
        match written_path(written) {
            Some(path) => Ok(path.into()),
            None => {
                let told = Diagnostic::error(written.span, "this key has no name");
                self.refuse(told.help("give it one: `expression: kind @name(\"…\");`"))
            }
        }
    }

    fn check_keys(&mut self, span: Span, keys: &[Key]) -> Checked<()> {
        let prefixes = keys.iter().filter(|key| key.matched == MatchKind::Lpm).count();
        if prefixes > 1 {
            let told = Diagnostic::error(span, "only one part of a key is compared by `lpm`");
            return self.refuse(told.help("`ternary` has masks as well, and priorities"));
        }
        for (at, key) in keys.iter().enumerate() {
            if keys[..at].iter().any(|before| before.name == key.name) {
                let message = format!("two parts of the key are called `{}`", key.name);
                let told = Diagnostic::error(key.expression.span, message);
                return self.refuse(told.help("`@name(\"…\")` gives one of them another name"));
            }
        }
        Ok(())
    }

    // ---- actions ----

    /// An error if two actions have one name.
    fn check_actions(&mut self, span: Span, all: &[TableAction]) -> Checked<()> {
        let mut names = std::collections::HashSet::new();
        for one in all {
            let name = self.program.actions[one.call.action.index()].declared.name.clone();
            if !names.insert(name.clone()) {
                return self.wrong(span, format!("the action `{name}` is there twice"));
            }
        }
        Ok(())
    }

    fn action_named(&mut self, written: &ast::Expression) -> Checked<ActionId> {
        let symbol = match &written.kind {
            Kind::Name(name) => self.find_text(name, written.span)?,
            Kind::TopName(name) => self.top_symbol(name)?,
            _ => return self.wrong(written.span, "expected the name of an action"),
        };
        match symbol {
            Symbol::Action(id) => Ok(id),
            Symbol::Wrong => Err(Told),
            _ => self.wrong(written.span, "this is no action"),
        }
    }

    /// What an action takes: from the table, and from an entry.
    fn action_parameters(&self, id: ActionId) -> (Vec<Parameter>, Vec<Parameter>) {
        let all = self.parameters_of(&self.program.actions[id.index()].parameters);
        all.into_iter().partition(|one| one.direction != Direction::None)
    }

    fn table_action(
        &mut self,
        said: &[ast::Annotation],
        written: &ast::Expression,
    ) -> Checked<TableAction> {
        let (name, given) = match &written.kind {
            Kind::Call(callee, _, given) => (&**callee, &given[..]),
            _ => (written, &[][..]),
        };
        let action = self.action_named(name)?;
        let (directed, _) = self.action_parameters(action);
        let arguments = self.arguments(written.span, &directed, &mut [], given)?;
        let has = |what: &str| said.iter().any(|one| &*one.name.text == what);
        Ok(TableAction {
            call: ActionCall { action, arguments },
            table_only: has("tableonly"),
            default_only: has("defaultonly"),
        })
    }

    /// `NoAction`, for a table that does not say what it does by default.
    fn no_action(&mut self, span: Span, actions: &mut Vec<TableAction>) -> Checked<usize> {
        let Some(Symbol::Action(action)) = self.scopes.find_at_top("NoAction").cloned() else {
            let told = Diagnostic::error(span, "this table says no `default_action`");
            return self
                .refuse(told.help("`#include <core.p4>` has `NoAction`, which is taken then"));
        };
        if let Some(at) = actions.iter().position(|one| one.call.action == action) {
            return Ok(at);
        }
        let call = ActionCall { action, arguments: Vec::new() };
        actions.push(TableAction { call, table_only: false, default_only: true });
        Ok(actions.len() - 1)
    }

    /// The table's action that is meant, and the arguments that an entry has.
    fn entry_action(
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
            let told = Diagnostic::error(name.span, "this is no action of the table");
            return self.refuse(told.help("name it in `actions` as well"));
        };
        if by_default && actions[at].table_only {
            return self.wrong(name.span, "this action is `@tableonly`");
        }
        if !by_default && actions[at].default_only {
            return self.wrong(name.span, "this action is `@defaultonly`");
        }
        let (directed, open) = self.action_parameters(id);
        // What the table binds may be said again, as it is.
        let given = match given.len() == directed.len() + open.len() {
            true => {
                let (again, given) = given.split_at(directed.len());
                let again = self.arguments(written.span, &directed, &mut [], again)?;
                let bound = &actions[at].call.arguments;
                if let Some((other, _)) =
                    again.iter().zip(bound).find(|(one, two)| !one.is_like(two))
                {
                    let told = Diagnostic::error(other.span, "the table binds something else here");
                    return self.refuse(told.help("write it as it stands in `actions`"));
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

    fn default_action(
        &mut self,
        property: &ast::Property,
        actions: &[TableAction],
    ) -> Checked<(usize, Vec<Value>)> {
        match &property.value {
            PropertyValue::Expression(action) => self.entry_action(action, actions, true),
            _ => Err(Told),
        }
    }

    // ---- entries ----

    fn entries(
        &mut self,
        property: &ast::Property,
        parts: &Parts<'_>,
        actions: &[TableAction],
    ) -> Checked<Vec<Entry>> {
        let PropertyValue::Entries(written) = &property.value else { return Err(Told) };
        if parts.keys.is_empty() {
            return self.wrong(property.name.span, "a table without a key has no entries");
        }
        let types: Vec<Type> = parts.keys.iter().map(|key| key.expression.of.clone()).collect();
        if let (true, Some(said)) =
            (property.constant, written.iter().find_map(|one| one.priority.as_ref()))
        {
            let told = Diagnostic::error(said.span, "constant entries have no priorities");
            return self.refuse(told.help("the first that fits is taken: their order says it"));
        }
        let priorities = self.priorities(written, parts)?;
        let mut all = Vec::with_capacity(written.len());
        let mut wrong = false;
        for (entry, priority) in written.iter().zip(priorities) {
            match self.entry(property, entry, (parts, &types), actions, priority) {
                Ok(entry) => all.push(entry),
                Err(Told) => wrong = true,
            }
        }
        if wrong { Err(Told) } else { Ok(all) }
    }

    /// The priorities of entries, the highest to be taken first (section 14.2.1.4): where none is
    /// said, the first entry that fits is taken; else those that are not said go on from the one
    /// before.
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
                    let told = Diagnostic::error(entry.action.span, "this entry has no priority");
                    return self.refuse(
                        told.help("the first has one where others have: `priority = 1: …`"),
                    );
                }
                (None, None) => first,
                (None, Some(before)) if lowest_first => before + delta,
                (None, Some(before)) => before.checked_sub(delta).unwrap_or(u64::MAX),
            };
            if priority > u64::from(MAX_PRIORITY) {
                let told =
                    Diagnostic::error(entry.action.span, "this entry's priority is no number");
                return self.refuse(told.help("say it: `priority = 1: …`"));
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

    /// An error unless the set is known, and one that this kind of key has.
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
                    let message = "this mask is no prefix: its ones are not all in front";
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
        let told = Diagnostic::error(at, "this entry does not fit the key");
        self.refuse(told.related(span, what))
    }
}

/// Whether all ones of a mask are in front.
fn is_prefix(mask: &Value, of: &Type) -> bool {
    let (Value::Integer(mask), Type::Bits { width, .. }) = (mask, of) else { return false };
    let all = (BigInt::from(1) << *width) - 1;
    let holes: BigInt = all - mask;
    let carried: BigInt = &holes + 1;
    holes & carried == BigInt::ZERO
}

/// `headers.ipv4.source` and the like.
fn written_path(written: &ast::Expression) -> Option<String> {
    Some(match &written.kind {
        Kind::Name(name) => name.to_string(),
        Kind::TopName(name) => name.text.to_string(),
        Kind::Member(of, name) => format!("{}.{}", written_path(of)?, name.text),
        Kind::Index(of, at) => match &at.kind {
            Kind::Integer(at) => format!("{}[{}]", written_path(of)?, at.value),
            _ => return None,
        },
        Kind::Slice(of, high, low) => match (&high.kind, &low.kind) {
            (Kind::Integer(high), Kind::Integer(low)) => {
                format!("{}[{}:{}]", written_path(of)?, high.value, low.value)
            }
            _ => return None,
        },
        Kind::Call(callee, ..) => match &callee.kind {
            Kind::Member(of, name) if &*name.text == "isValid" => {
                format!("{}.$valid$", written_path(of)?)
            }
            _ => return None,
        },
        _ => return None,
    })
}
