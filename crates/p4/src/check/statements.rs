//! Statements (P4_16 specification, section 12).

use p4_syntax::ast::{self, DeclarationKind, ExpressionKind as Kind, StatementKind as Written};
use p4_syntax::diagnostic::Diagnostic;
use p4_syntax::source::Span;

use super::calls::{Call, Called};
use super::evaluation::has_call;
use super::scope::Symbol;
use super::{Checked, Checker, Place, Reported, declared};
use crate::ir::{Action, ActionId, Binary, Statement, StatementKind, TableId, Type};

impl Checker<'_> {
    /// Checks a block in a new scope.
    pub(super) fn block_of(&mut self, block: &ast::Block) -> Checked<Vec<Statement>> {
        self.scopes.open();
        let all = self.statements(&block.statements);
        self.scopes.close();
        all
    }

    pub(super) fn statements(&mut self, written: &[ast::Statement]) -> Checked<Vec<Statement>> {
        let mut all = Vec::with_capacity(written.len());
        let mut wrong = false;
        for one in written {
            match self.statement(one) {
                Ok(Some(statement)) => all.push(statement),
                Ok(None) => {}
                Err(Reported) => wrong = true,
            }
        }
        if wrong { Err(Reported) } else { Ok(all) }
    }

    pub(super) fn one_statement(&mut self, written: &ast::Statement) -> Checked<Vec<Statement>> {
        self.scopes.open();
        let one = self.statement(written);
        self.scopes.close();
        Ok(one?.into_iter().collect())
    }

    /// Checks a statement; None if it has no effect.
    fn statement(&mut self, written: &ast::Statement) -> Checked<Option<Statement>> {
        let span = written.span;
        let kind = match &written.kind {
            Written::Empty => return Ok(None),
            Written::Assign(place, operator, value) => {
                self.assign(span, place, *operator, value)?
            }
            Written::Call(call) => self.call_statement(call)?,
            Written::If(condition, yes, no) => {
                let condition = self.expression_as(condition, &Type::Bool);
                let yes = self.one_statement(yes);
                let no = no.as_ref().map(|no| self.one_statement(no)).transpose();
                StatementKind::If(condition?, yes?, no?.unwrap_or_default())
            }
            Written::Switch(value, cases) => self.switch(span, value, cases)?,
            Written::For(first, condition, step, body) => {
                self.for_loop(span, first, condition.as_ref(), step, body)?
            }
            Written::ForIn(of, name, values, body) => self.for_in(of, name, values, body)?,
            Written::Break | Written::Continue if self.loops == 0 => {
                return self.wrong(span, "this belongs in a loop");
            }
            Written::Break => StatementKind::Break,
            Written::Continue => StatementKind::Continue,
            Written::Return(value) => self.return_statement(span, value.as_ref())?,
            Written::Exit => match self.place {
                Place::Apply | Place::Action => StatementKind::Exit,
                _ => return self.wrong(span, "`exit` belongs in a control"),
            },
            Written::Block(block) => StatementKind::Block(self.block_of(block)?),
            Written::Declare(declaration) => return self.local(declaration),
        };
        Ok(Some(Statement { span, kind }))
    }

    fn assign(
        &mut self,
        span: Span,
        place: &ast::Expression,
        operator: Option<Binary>,
        value: &ast::Expression,
    ) -> Checked<StatementKind> {
        let place = self.expression(place, None);
        let wanted = place.as_ref().ok().map(|place| place.of.clone());
        let shift = matches!(operator, Some(Binary::ShiftLeft | Binary::ShiftRight));
        let value = self.expression(value, wanted.as_ref().filter(|_| !shift));
        let (place, value) = (place?, value?);
        self.check_place(&place)?;
        let value = match operator {
            Some(operator) => {
                if has_call(&place) {
                    let diagnostic =
                        Diagnostic::error(place.span, "this place is looked for twice");
                    return self.refuse(diagnostic.help("put the index into a variable first"));
                }
                self.binary(span, operator, place.clone(), value)?
            }
            None => value,
        };
        let of = place.of.clone();
        let value = self.convert(value, &of)?;
        Ok(StatementKind::Assign(place, value))
    }

    fn call_statement(&mut self, written: &ast::Expression) -> Checked<StatementKind> {
        let Kind::Call(callee, types, arguments) = &written.kind else {
            return self.wrong(written.span, "this does nothing");
        };
        match self.call(callee, Call { span: written.span, types, arguments })? {
            Called::Done(done) => Ok(done),
            Called::Value(value) => Ok(StatementKind::Evaluate(value)),
        }
    }

    fn return_statement(
        &mut self,
        span: Span,
        value: Option<&ast::Expression>,
    ) -> Checked<StatementKind> {
        if !matches!(self.place, Place::Apply | Place::Action | Place::Function) {
            return self.wrong(span, "`return` belongs in a function, an action or a control");
        }
        let of = self.returns.clone();
        let value = match (value, &of) {
            (None, Type::Void) => None,
            (Some(value), Type::Void) => {
                return self.wrong(value.span, "nothing is returned from here");
            }
            (Some(value), of) => Some(self.expression_as(value, of)?),
            (None, of) => {
                let what = self.describe(of);
                return self.wrong(span, format!("expected {what} to be returned"));
            }
        };
        Ok(StatementKind::Return(value))
    }

    // ---- switch ----

    fn switch(
        &mut self,
        span: Span,
        value: &ast::Expression,
        cases: &[ast::SwitchCase],
    ) -> Checked<StatementKind> {
        if let Some(table) = self.action_run(value) {
            self.require(span, Place::Apply, "a table is applied in `apply`")?;
            return self.switch_action(table, cases);
        }
        let value = self.expression(value, None)?;
        if value.of == Type::Integer
            || !(self.representation(&value.of).is_bits()
                || matches!(value.of, Type::Enum(_) | Type::Error | Type::Bool))
        {
            let what = self.describe(&value.of);
            return self.wrong(value.span, format!("{what} is nothing to switch over"));
        }
        let mut labels = Vec::new();
        let mut seen: Vec<crate::ir::Value> = Vec::new();
        let (mut all, mut other) = (Vec::new(), None);
        for case in self.cases(cases)? {
            let Some(label) = &case.label else {
                other = self.case_body(case)?;
                continue;
            };
            let label = self.expression_as(label, &value.of)?;
            match label.constant() {
                Some(known) if seen.contains(known) => {
                    return self.wrong(label.span, "duplicate value");
                }
                Some(known) => seen.push(known.clone()),
                None => {
                    return self
                        .wrong(label.span, "this is not known when the program is compiled");
                }
            }
            labels.push(label);
            if let Some(body) = self.case_body(case)? {
                all.push((std::mem::take(&mut labels), body));
            }
        }
        Ok(StatementKind::Switch(value, all, other.unwrap_or_default()))
    }

    /// Returns the table of `table.apply().action_run`.
    fn action_run(&self, value: &ast::Expression) -> Option<TableId> {
        let Kind::Member(of, name) = &value.kind else { return None };
        let Kind::Call(callee, ..) = &of.kind else { return None };
        if &*name.text == "action_run" { self.table_applied(callee) } else { None }
    }

    fn switch_action(
        &mut self,
        table: TableId,
        cases: &[ast::SwitchCase],
    ) -> Checked<StatementKind> {
        let mut labels: Vec<ActionId> = Vec::new();
        let mut seen: Vec<ActionId> = Vec::new();
        let (mut all, mut other) = (Vec::new(), None);
        for case in self.cases(cases)? {
            let Some(label) = &case.label else {
                other = self.case_body(case)?;
                continue;
            };
            let action = self.action_label(table, label)?;
            if seen.contains(&action) {
                return self.wrong(label.span, "duplicate action");
            }
            seen.push(action);
            labels.push(action);
            if let Some(body) = self.case_body(case)? {
                all.push((std::mem::take(&mut labels), body));
            }
        }
        Ok(StatementKind::SwitchAction(table, all, other.unwrap_or_default()))
    }

    fn action_label(&mut self, table: TableId, label: &ast::Expression) -> Checked<ActionId> {
        let symbol = match &label.kind {
            Kind::Name(name) => self.find_text(name, label.span)?,
            Kind::TopName(name) => self.top_symbol(name)?,
            _ => return self.wrong(label.span, "expected the name of an action"),
        };
        let table = &self.program.tables[table.index()];
        match symbol {
            Symbol::Action(id) if table.actions.iter().any(|one| one.call.action == id) => Ok(id),
            Symbol::Wrong => Err(Reported),
            _ => {
                let name = table.declared.name.clone();
                self.wrong(label.span, format!("this is not an action of `{name}`"))
            }
        }
    }

    /// Returns the cases. Reports an error if `default` is not the last case, or if the last case
    /// has no body.
    fn cases<'a>(&mut self, cases: &'a [ast::SwitchCase]) -> Checked<&'a [ast::SwitchCase]> {
        let Some((last, others)) = cases.split_last() else { return Ok(cases) };
        if let Some(early) = others.iter().find(|one| one.label.is_none()) {
            return self.wrong(early.span, "`default` is the last case");
        }
        if last.body.is_none() {
            let diagnostic =
                Diagnostic::warning(last.span, "nothing is done here: this case has no block");
            self.problems.add(diagnostic);
        }
        Ok(cases)
    }

    fn case_body(&mut self, case: &ast::SwitchCase) -> Checked<Option<Vec<Statement>>> {
        case.body.as_ref().map(|body| self.block_of(body)).transpose()
    }

    // ---- local declarations ----

    /// Checks the declaration of a variable, a constant or an instance; None if it needs no
    /// run-time action.
    pub(super) fn local(&mut self, written: &ast::Declaration) -> Checked<Option<Statement>> {
        let result = match &written.kind {
            DeclarationKind::Variable(of, value) => {
                self.local_variable(written, of, value.as_ref())
            }
            DeclarationKind::Constant(of, value) => {
                self.constant_declaration(written, of, value).map(|()| None)
            }
            DeclarationKind::Instance(of, arguments) => {
                self.local_instance(written, of, arguments).map(|()| None)
            }
            _ => self.wrong(written.name.span, "this is not declared here"),
        };
        if result.is_err() {
            self.declare(&written.name, Symbol::Wrong);
        }
        result
    }

    fn local_variable(
        &mut self,
        written: &ast::Declaration,
        of: &ast::Type,
        value: Option<&ast::Expression>,
    ) -> Checked<Option<Statement>> {
        let of = self.type_of(of)?;
        if matches!(of, Type::Extern(..)) || !is_of_packets(&of) {
            let what = self.describe(&of);
            let diagnostic = Diagnostic::error(
                written.name.span,
                format!("a variable cannot be of type {what}"),
            );
            return self.refuse(if of == Type::Integer {
                diagnostic.help("say how many bits it has: `bit<32>`, or `int<32>` with a sign")
            } else {
                diagnostic
            });
        }
        let value = match value {
            Some(value) => Some(self.expression_as(value, &of)?),
            None => None,
        };
        let id = self.new_variable(declared(&written.name, &written.annotations), of, None);
        self.declare(&written.name, Symbol::Variable(id));
        let kind = StatementKind::Declare(id, value);
        Ok(Some(Statement { span: written.name.span, kind }))
    }

    /// Checks `action name(…) { … }`.
    pub(super) fn action(
        &mut self,
        written: &ast::Declaration,
        parameters: &[ast::Parameter],
        body: &ast::Block,
    ) -> Checked<()> {
        self.declare(&written.name, Symbol::Unfinished);
        let directed = |one: &ast::Parameter| one.direction != ast::Direction::None;
        let first_open =
            parameters.iter().position(|one| !directed(one)).unwrap_or(parameters.len());
        if let Some(late) = parameters[first_open..].iter().find(|one| directed(one)) {
            let diagnostic = Diagnostic::error(late.name.span, "this parameter stands too late");
            let _ = self.refuse::<()>(
                diagnostic
                    .help("parameters without a direction come last: table entries supply them"),
            );
        }
        self.direct.open_action();
        let checked = self.measured(written.name.span, |checker| {
            checker.within(Place::Action, |checker| {
                let parameters = checker.declare_parameters(parameters);
                let body = checker.statements(&body.statements);
                Ok((parameters?, body?))
            })
        });
        let ((parameters, body), depth) = checked?;
        self.depths.actions.push(depth);
        self.direct.close_action();
        let id = ActionId(self.program.actions.len() as u32);
        let action =
            Action { declared: declared(&written.name, &written.annotations), parameters, body };
        self.program.actions.push(action);
        self.declare(&written.name, Symbol::Action(id));
        Ok(())
    }
}

/// Returns true if values of this type exist at run time. Numbers then need a width.
pub(super) fn is_of_packets(of: &Type) -> bool {
    match of {
        Type::Integer | Type::Void | Type::Any | Type::String | Type::MatchKind => false,
        Type::Tuple(all) => all.iter().all(is_of_packets),
        Type::List(_) => false,
        _ => true,
    }
}

/// Returns true if no execution path continues after the statements.
pub(super) fn always_returns(statements: &[Statement]) -> bool {
    statements.iter().any(|one| match &one.kind {
        StatementKind::Return(_) | StatementKind::Exit => true,
        StatementKind::Block(all) => always_returns(all),
        StatementKind::If(_, yes, no) => always_returns(yes) && always_returns(no),
        StatementKind::Switch(_, cases, other) => {
            cases.iter().all(|(_, body)| always_returns(body)) && always_returns(other)
        }
        StatementKind::SwitchAction(_, cases, other) => {
            cases.iter().all(|(_, body)| always_returns(body)) && always_returns(other)
        }
        _ => false,
    })
}
