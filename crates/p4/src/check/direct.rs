//! Direct counters and meters: the table that owns each, and their use by its actions only.

use std::collections::BTreeMap;
use std::ops::Range;

use p4_syntax::ast::{self, ExpressionKind as Kind};
use p4_syntax::diagnostic::Diagnostic;
use p4_syntax::source::Span;

use super::cells::property;
use super::scope::Symbol;
use super::{Checked, Checker, Place, Reported};
use crate::ir::{ActionId, ExternId, InstanceId, InstanceKind, TableId};
use crate::model::Object;

/// Uses of direct counters and meters.
#[derive(Default)]
pub(super) struct Direct {
    /// The table that owns each object.
    tables: BTreeMap<InstanceId, TableId>,
    /// Uses in the current action, with source spans.
    here: BTreeMap<InstanceId, Span>,
    /// Uses in each action, including the actions that it calls.
    actions: Vec<BTreeMap<InstanceId, Span>>,
}

impl Direct {
    pub(super) fn attach(&mut self, object: InstanceId, table: TableId) {
        self.tables.insert(object, table);
    }

    /// Starts an action.
    pub(super) fn open_action(&mut self) {
        self.here.clear();
    }

    /// Ends an action. It gets the program's next action id.
    pub(super) fn close_action(&mut self) {
        self.actions.push(std::mem::take(&mut self.here));
    }
}

impl Checker<'_> {
    /// Resolves the object in a table property.
    pub(super) fn direct_object(
        &mut self,
        written: &ast::Expression,
        wanted: Object,
    ) -> Checked<InstanceId> {
        let symbol = match &written.kind {
            Kind::Name(name) => self.find_text(name, written.span)?,
            Kind::TopName(name) => self.top_symbol(name)?,
            _ => Symbol::Unfinished,
        };
        let expected = match wanted {
            Object::DirectMeter => "a `DirectMeter`",
            _ => "a `DirectCounter`",
        };
        let id = match symbol {
            Symbol::Instance(id) if self.object_of(id) == Some(wanted) => id,
            Symbol::Wrong => return Err(Reported),
            _ => {
                let diagnostic = Diagnostic::error(written.span, format!("this is not {expected}"));
                return self.refuse(diagnostic.label(format!("expected the name of {expected}")));
            }
        };
        if let Some(table) = self.direct.tables.get(&id) {
            let table = self.program.tables[table.index()].declared.clone();
            let message = format!("this belongs to the table `{}` already", table.name);
            return self
                .refuse(Diagnostic::error(written.span, message).related(table.span, "here"));
        }
        Ok(id)
    }

    fn object_of(&self, id: InstanceId) -> Option<Object> {
        match &self.program.instances[id.index()].of {
            InstanceKind::Extern(of, _) => self.program.model_object(*of),
            InstanceKind::Block(_) => None,
        }
    }

    /// Records a method call. Methods of a direct object are allowed only in actions.
    pub(super) fn uses_direct(&mut self, id: InstanceId, of: ExternId, span: Span) -> Checked<()> {
        if !self.program.model_object(of).is_some_and(Object::is_direct) {
            return Ok(());
        }
        if self.place != Place::Action {
            let name = self.program.instances[id.index()].declared.name.clone();
            let message =
                format!("`{name}` belongs to a table: it is used in that table's actions");
            return self.wrong(span, message);
        }
        self.direct.here.entry(id).or_insert(span);
        Ok(())
    }

    /// Records the call of an action by another action. A call by the control itself has no table
    /// entry, so it is an error if the action uses a direct object.
    pub(super) fn calls_action(&mut self, id: ActionId, span: Span) -> Checked<()> {
        let used = self.direct.actions.get(id.index()).cloned().unwrap_or_default();
        if self.place == Place::Action {
            for (object, at) in used {
                self.direct.here.entry(object).or_insert(at);
            }
            return Ok(());
        }
        let Some((object, at)) = used.first_key_value() else { return Ok(()) };
        let name = self.program.instances[object.index()].declared.name.clone();
        let diagnostic = Diagnostic::error(span, "this action is run by its table only");
        self.refuse(
            diagnostic.related(*at, format!("`{name}` belongs to a table, and is used here")),
        )
    }

    /// Checks, at the end of a control, that each direct object has a table, and that only actions
    /// of this table use it.
    pub(super) fn check_direct(&mut self, tables: Range<usize>) -> Checked<()> {
        for id in self.instances.clone() {
            let object = self.object_of(id).filter(|object| object.is_direct());
            if let Some(object) = object.filter(|_| !self.direct.tables.contains_key(&id)) {
                let declared = self.program.instances[id.index()].declared.clone();
                let message = format!("`{}` belongs to no table", declared.name);
                let help =
                    format!("`{} = {};` in a table says which", property(object), declared.name);
                return self.refuse(Diagnostic::error(declared.span, message).help(help));
            }
        }
        for at in tables {
            let table = &self.program.tables[at];
            for action in &table.actions {
                let used = self.direct.actions.get(action.call.action.index());
                let other = |(object, _): &(&InstanceId, &Span)| {
                    self.direct.tables.get(object) != Some(&TableId(at as u32))
                };
                let Some((object, span)) = used.and_then(|used| used.iter().find(other)) else {
                    continue;
                };
                let name = &self.program.instances[object.index()].declared.name;
                let action = &self.program.actions[action.call.action.index()].declared.name;
                let diagnostic = Diagnostic::error(
                    table.declared.span,
                    format!(
                        "`{}` has no `{name}`, which its action `{action}` uses",
                        table.declared.name
                    ),
                );
                let diagnostic =
                    diagnostic.related(*span, "used here, for the entry that was found");
                return self.refuse(diagnostic);
            }
        }
        Ok(())
    }
}
