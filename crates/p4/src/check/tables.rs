//! Tables, their keys and their actions (P4_16 specification, section 14.2).

use std::sync::Arc;

use p4_syntax::ast::{self, Direction, ExpressionKind as Kind, PropertyValue};
use p4_syntax::diagnostic::Diagnostic;
use p4_syntax::source::Span;
use p4_syntax::words::closest_word;

use super::scope::Symbol;
use super::{Checked, Checker, Reported, declared};
use crate::ir::{
    ActionCall, ActionId, InstanceId, Key, MatchKind, Parameter, Table, TableAction, TableId, Type,
    Value,
};
use crate::model::Object;

/// Default number of entries of a table.
const SIZE: u32 = 1024;
/// Known table properties.
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
/// Maximum number of entries of a table.
const MAX_SIZE: u32 = 1 << 24;

/// Properties of a table while they are collected.
#[derive(Default)]
pub(super) struct Parts<'a> {
    pub(super) keys: Vec<Key>,
    actions: Option<Vec<TableAction>>,
    default_action: Option<&'a ast::Property>,
    entries: Option<&'a ast::Property>,
    size: Option<u32>,
    pub(super) lowest_priority_first: bool,
    pub(super) priority_delta: Option<u32>,
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
                return self.wrong(name.span, format!("duplicate property `{}`", name.text));
            }
            wrong |= self.property(property, &mut parts).is_err();
        }
        if wrong {
            return Err(Reported);
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
        let counterpart = match name {
            "meters" => Some("psa_direct_meter".into()),
            "counters" => Some("psa_direct_counter".into()),
            _ => None,
        };
        let Some(near) = counterpart.or_else(|| closest_word(name, &PROPERTIES)) else {
            return self.unsupported(span, &format!("the property `{name}`"));
        };
        let diagnostic = Diagnostic::error(span, format!("a table has no property `{name}`"));
        self.refuse(diagnostic.help(format!("it has `{near}`")))
    }

    // ---- keys ----

    fn key(&mut self, written: &ast::KeyElement) -> Checked<Key> {
        let expression = self.expression(&written.expression, None)?;
        let matched = self.match_kind(&written.match_kind)?;
        let number = self.representation(&expression.of);
        let numeric = number.is_bits();
        let fits = match matched {
            MatchKind::Exact | MatchKind::Optional => {
                numeric || matches!(number, Type::Bool | Type::Enum(_) | Type::Error)
            }
            // Masks and ranges of signed numbers would be counterintuitive.
            _ => matches!(number, Type::Bits { signed: false, .. }) || number == Type::Bool,
        };
        if !fits {
            let what = self.describe(&expression.of);
            let diagnostic = Diagnostic::error(
                expression.span,
                format!("{what} cannot be a key of this match kind"),
            );
            return self.refuse(diagnostic.related(written.match_kind.span, "compared like this"));
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

    /// Returns the control plane name of a key without `@name`: its source text.
    fn key_name(&mut self, written: &ast::Expression) -> Checked<Arc<str>> {
        match written_path(written) {
            Some(path) => Ok(path.into()),
            None => {
                let diagnostic = Diagnostic::error(written.span, "this key has no name");
                self.refuse(diagnostic.help("give it one: `expression: kind @name(\"…\");`"))
            }
        }
    }

    fn check_keys(&mut self, span: Span, keys: &[Key]) -> Checked<()> {
        let prefixes = keys.iter().filter(|key| key.matched == MatchKind::Lpm).count();
        if prefixes > 1 {
            let diagnostic = Diagnostic::error(span, "only one part of a key is compared by `lpm`");
            return self.refuse(diagnostic.help("`ternary` has masks as well, and priorities"));
        }
        for (at, key) in keys.iter().enumerate() {
            if keys[..at].iter().any(|before| before.name == key.name) {
                let message = format!("two parts of the key are called `{}`", key.name);
                let diagnostic = Diagnostic::error(key.expression.span, message);
                return self
                    .refuse(diagnostic.help("`@name(\"…\")` gives one of them another name"));
            }
        }
        Ok(())
    }

    // ---- actions ----

    /// Reports an error if two actions have the same name.
    fn check_actions(&mut self, span: Span, all: &[TableAction]) -> Checked<()> {
        let mut names = std::collections::HashSet::new();
        for one in all {
            let name = self.program.actions[one.call.action.index()].declared.name.clone();
            if !names.insert(name.clone()) {
                return self.wrong(span, format!("duplicate action `{name}`"));
            }
        }
        Ok(())
    }

    pub(super) fn action_named(&mut self, written: &ast::Expression) -> Checked<ActionId> {
        let symbol = match &written.kind {
            Kind::Name(name) => self.find_text(name, written.span)?,
            Kind::TopName(name) => self.top_symbol(name)?,
            _ => return self.wrong(written.span, "expected the name of an action"),
        };
        match symbol {
            Symbol::Action(id) => Ok(id),
            Symbol::Wrong => Err(Reported),
            _ => self.wrong(written.span, "this is not an action"),
        }
    }

    /// Returns the parameters of an action: those bound by the table, and those supplied by an
    /// entry.
    pub(super) fn action_parameters(&self, id: ActionId) -> (Vec<Parameter>, Vec<Parameter>) {
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

    /// Adds `NoAction`, for a table without a `default_action`.
    fn no_action(&mut self, span: Span, actions: &mut Vec<TableAction>) -> Checked<usize> {
        let Some(Symbol::Action(action)) = self.scopes.find_at_top("NoAction").cloned() else {
            let diagnostic = Diagnostic::error(span, "this table has no `default_action`");
            return self.refuse(
                diagnostic.help("`#include <core.p4>` has `NoAction`, which is taken then"),
            );
        };
        if let Some(at) = actions.iter().position(|one| one.call.action == action) {
            return Ok(at);
        }
        let call = ActionCall { action, arguments: Vec::new() };
        actions.push(TableAction { call, table_only: false, default_only: true });
        Ok(actions.len() - 1)
    }

    fn default_action(
        &mut self,
        property: &ast::Property,
        actions: &[TableAction],
    ) -> Checked<(usize, Vec<Value>)> {
        match &property.value {
            PropertyValue::Expression(action) => self.entry_action(action, actions, true),
            _ => Err(Reported),
        }
    }
}

/// Formats a path such as `headers.ipv4.source`.
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
