//! Calls (P4_16 specification, sections 8.20, 12.8, 13.1 and 15).

use num_bigint::BigInt;
use num_traits::ToPrimitive;
use p4_syntax::ast::{self, ExpressionKind as Kind};
use p4_syntax::diagnostic::Diagnostic;
use p4_syntax::source::Span;

use super::arguments::listed;
use super::scope::Symbol;
use super::{Checked, Checker, Place, Reported, externs};
use crate::ir::{
    ActionCall, ActionId, BlockBody, BlockId, Callee, Expression, ExpressionKind, ExternCall,
    ExternFunctionId, FunctionId, Instance, InstanceId, InstanceKind, Parameter, Prototype,
    RecordKind, StatementKind, TableId, Type, Value,
};

/// Result of checking a call.
pub(super) enum Called {
    /// An expression.
    Value(Expression),
    /// A statement, without a value.
    Done(StatementKind),
}

/// A call in the syntax tree.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) span: Span,
    pub(super) types: &'a [ast::Type],
    pub(super) arguments: &'a [ast::Argument],
}

impl Checker<'_> {
    /// Checks a call that returns a value.
    pub(super) fn call_value(
        &mut self,
        span: Span,
        callee: &ast::Expression,
        types: &[ast::Type],
        arguments: &[ast::Argument],
    ) -> Checked<Expression> {
        match self.call(callee, Call { span, types, arguments })? {
            Called::Value(value) if value.of != Type::Void => Ok(value),
            Called::Value(_) => self.wrong(span, "this call gives no value"),
            Called::Done(StatementKind::ApplyTable(_)) => {
                let diagnostic = Diagnostic::error(span, "a table that is applied is not a value");
                self.refuse(diagnostic.help("ask for `.hit`, `.miss` or `.action_run`"))
            }
            Called::Done(_) => self.wrong(span, "this call gives no value"),
        }
    }

    /// Checks a call.
    pub(super) fn call(&mut self, callee: &ast::Expression, call: Call<'_>) -> Checked<Called> {
        let (symbol, name) = match &callee.kind {
            Kind::Name(name) => (self.find_text(name, callee.span)?, name.clone()),
            Kind::TopName(name) => (self.top_symbol(name)?, name.text.clone()),
            Kind::Member(of, name) => return self.method(of, name, call),
            _ => return self.wrong(callee.span, "this cannot be called"),
        };
        match symbol {
            Symbol::Functions(all) => self.function_call(&name, &all, call).map(Called::Value),
            Symbol::ExternFunctions(all) => self.extern_call(&name, &all, call),
            Symbol::Action(id) => self.action_call(id, call),
            Symbol::Block(_) | Symbol::Table(_) | Symbol::Instance(_) => {
                let diagnostic = Diagnostic::error(call.span, format!("`{name}` cannot be called"));
                self.refuse(diagnostic.help(format!("`{name}.apply(…)` applies it")))
            }
            Symbol::Unfinished => self.calls_itself(&ast::Name { text: name, span: callee.span }),
            Symbol::Wrong => Err(Reported),
            _ => self.wrong(call.span, format!("`{name}` cannot be called")),
        }
    }

    fn function_call(
        &mut self,
        name: &str,
        all: &[FunctionId],
        call: Call<'_>,
    ) -> Checked<Expression> {
        let parameters = |checker: &Self, id: FunctionId| {
            checker.parameters_of(&checker.program.functions[id.index()].parameters)
        };
        let chosen = match all {
            [one] => *one,
            _ => {
                let fits =
                    |id: &&FunctionId| Self::may_take(&parameters(self, **id), call.arguments);
                match all.iter().find(fits) {
                    Some(id) => *id,
                    None => {
                        let all: Vec<_> = all.iter().map(|id| parameters(self, *id)).collect();
                        return self.no_overload(name, call.span, &all);
                    }
                }
            }
        };
        let arguments =
            self.arguments(call.span, &parameters(self, chosen), &mut [], call.arguments)?;
        let of = self.program.functions[chosen.index()].returns.clone();
        self.calls(self.depths.functions[chosen.index()]);
        Ok(Expression { span: call.span, of, kind: ExpressionKind::Call(chosen, arguments) })
    }

    fn no_overload<T>(&mut self, name: &str, span: Span, all: &[Vec<Parameter>]) -> Checked<T> {
        let diagnostic = Diagnostic::error(span, format!("no `{name}` takes these arguments"));
        let all: Vec<_> = all.iter().map(|one| listed(one)).collect();
        self.refuse(diagnostic.help(format!("it takes {}", all.join("; or "))))
    }

    fn extern_call(
        &mut self,
        name: &str,
        all: &[ExternFunctionId],
        call: Call<'_>,
    ) -> Checked<Called> {
        let function = |checker: &Self, id: ExternFunctionId| {
            checker.program.extern_functions[id.index()].clone()
        };
        let chosen = match all {
            [one] => *one,
            _ => {
                let fits = |id: &&ExternFunctionId| {
                    Self::may_take(&function(self, **id).parameters, call.arguments)
                };
                match all.iter().find(fits) {
                    Some(id) => *id,
                    None => {
                        let all: Vec<_> =
                            all.iter().map(|id| function(self, *id).parameters).collect();
                        return self.no_overload(name, call.span, &all);
                    }
                }
            }
        };
        let prototype = function(self, chosen);
        let (types, mut arguments, of) = self.instantiate(&prototype, &[], call)?;
        match name {
            "verify" => {
                self.require(call.span, Place::State, "`verify` belongs in a parser's states")?;
                let mut arguments = arguments.into_iter();
                match (arguments.next(), arguments.next()) {
                    (Some(condition), Some(error)) => {
                        Ok(Called::Done(StatementKind::Verify(condition, error)))
                    }
                    _ => Err(Reported),
                }
            }
            "static_assert" => self.static_assert(call.span, &arguments).map(Called::Value),
            _ => {
                let function = match self.vm_call(&prototype, &mut arguments)? {
                    Some(function) => function,
                    None => externs::function(&self.program, &prototype, arguments.len()),
                };
                let callee = Callee::Function(function);
                let kind = ExpressionKind::ExternCall(ExternCall { callee, types, arguments });
                Ok(Called::Value(Expression { span: call.span, of, kind }))
            }
        }
    }

    /// Infers the type arguments of a call. Returns them with the arguments and the return type.
    fn instantiate(
        &mut self,
        prototype: &Prototype,
        outer: &[Type],
        call: Call<'_>,
    ) -> Checked<(Vec<Type>, Vec<Expression>, Type)> {
        let (outer_count, count) = (outer.len(), prototype.generic.len());
        let mut types: Vec<Option<Type>> = outer.iter().cloned().map(Some).collect();
        types.resize(outer_count + count, None);
        if !call.types.is_empty() {
            if call.types.len() != count {
                let message =
                    format!("`{}` is generic over {count} types", prototype.declared.name);
                return self.wrong(call.span, message);
            }
            for (known, of) in types[outer_count..].iter_mut().zip(self.types_of(call.types)?) {
                *known = Some(of).filter(|of| *of != Type::Any);
            }
        }
        let arguments =
            self.arguments(call.span, &prototype.parameters, &mut types, call.arguments)?;
        let Some(known) = types.iter().cloned().collect::<Option<Vec<_>>>() else {
            let name = &prototype.declared.name;
            let diagnostic =
                Diagnostic::error(call.span, format!("cannot infer the type argument of `{name}`"));
            return self.refuse(diagnostic.help(format!("say the type: `{name}<TYPE>(…)`")));
        };
        let of = self.substitute(&prototype.returns, &types);
        Ok((known[outer_count..].to_vec(), arguments, of))
    }

    fn static_assert(&mut self, span: Span, arguments: &[Expression]) -> Checked<Expression> {
        match arguments.first().and_then(Expression::constant) {
            Some(Value::Bool(true)) => Ok(super::constant(span, Type::Bool, true)),
            Some(_) => {
                let why = match arguments.get(1).and_then(Expression::constant) {
                    Some(Value::String(why)) => format!(": {why}"),
                    _ => String::new(),
                };
                self.wrong(span, format!("this does not hold{why}"))
            }
            None => self.wrong(span, "this is not known when the program is compiled"),
        }
    }

    fn action_call(&mut self, id: ActionId, call: Call<'_>) -> Checked<Called> {
        if !matches!(self.place, Place::Apply | Place::Action) {
            return self.wrong(call.span, "an action is called in `apply` or by an action");
        }
        let parameters = self.parameters_of(&self.program.actions[id.index()].parameters.clone());
        let arguments = self.arguments(call.span, &parameters, &mut [], call.arguments)?;
        self.calls(self.depths.actions[id.index()]);
        self.calls_action(id, call.span)?;
        Ok(Called::Done(StatementKind::CallAction(ActionCall { action: id, arguments })))
    }

    /// Returns the table of `table.apply`.
    pub(super) fn table_applied(&self, callee: &ast::Expression) -> Option<TableId> {
        let Kind::Member(of, name) = &callee.kind else { return None };
        let Kind::Name(table) = &of.kind else { return None };
        match self.scopes.find(table)? {
            Symbol::Table(id) if &*name.text == "apply" => Some(*id),
            _ => None,
        }
    }

    fn method(
        &mut self,
        of: &ast::Expression,
        name: &ast::Name,
        call: Call<'_>,
    ) -> Checked<Called> {
        let symbol = match &of.kind {
            Kind::Name(text) => Some(self.find_text(text, of.span)?),
            Kind::TopName(text) => Some(self.top_symbol(text)?),
            _ => None,
        };
        match symbol {
            Some(Symbol::Table(id)) => self.apply_table(id, name, call),
            Some(Symbol::Instance(id)) => self.object_method(id, name, call),
            Some(Symbol::Block(id)) => {
                let id = self.unnamed_instance(id, of.span)?;
                self.object_method(id, name, call)
            }
            Some(Symbol::Wrong) => Err(Reported),
            Some(Symbol::Type(named)) if call.arguments.is_empty() => {
                match self.size_value(call.span, &named, &name.text) {
                    Some(size) => size.map(Called::Value),
                    None => self.no_member(name, &named, std::iter::empty()),
                }
            }
            _ => {
                let of = self.expression(of, None)?;
                self.value_method(of, name, call)
            }
        }
    }

    fn apply_table(&mut self, id: TableId, name: &ast::Name, call: Call<'_>) -> Checked<Called> {
        if &*name.text != "apply" || !call.arguments.is_empty() {
            return self.wrong(name.span, "a table has one method, `apply()`");
        }
        self.require(call.span, Place::Apply, "a table is applied in `apply`")?;
        self.calls(self.depths.tables[id.index()]);
        Ok(Called::Done(StatementKind::ApplyTable(id)))
    }

    /// Creates the anonymous instance for a direct call `control.apply(…)` (section 14.1.3).
    fn unnamed_instance(&mut self, id: BlockId, span: Span) -> Checked<InstanceId> {
        let block = self.block(id);
        if !block.constructor.is_empty() {
            let diagnostic = Diagnostic::error(span, "its constructor takes arguments");
            return self.refuse(diagnostic.help("make an object of it first: `Name(…) object;`"));
        }
        let declared = crate::ir::Declared { span, ..block.declared.clone() };
        Ok(self.new_instance(Instance {
            declared,
            of: InstanceKind::Block(id),
            arguments: Vec::new(),
        }))
    }

    fn object_method(
        &mut self,
        id: InstanceId,
        name: &ast::Name,
        call: Call<'_>,
    ) -> Checked<Called> {
        match self.program.instances[id.index()].of.clone() {
            InstanceKind::Block(block) => self.apply_block(id, block, name, call),
            InstanceKind::Extern(of, outer) => {
                let methods = self.extern_named(of).methods.clone();
                let named = |one: &&Prototype| one.declared.name == name.text;
                let fits = |one: &Prototype| {
                    one.declared.name == name.text
                        && Self::may_take(&one.parameters, call.arguments)
                };
                let at = methods.iter().position(fits);
                let Some(at) = at.or_else(|| methods.iter().position(|one| named(&one))) else {
                    let names = methods.iter().map(|one| one.declared.name.clone());
                    return self.no_member(name, &Type::Extern(of, outer.into()), names);
                };
                let (types, arguments, returned) = self.instantiate(&methods[at], &outer, call)?;
                self.uses_direct(id, of, call.span)?;
                let method = externs::method(self.extern_named(of), &methods[at]);
                let callee = Callee::Method(id, method);
                let kind = ExpressionKind::ExternCall(ExternCall { callee, types, arguments });
                Ok(Called::Value(Expression { span: call.span, of: returned, kind }))
            }
        }
    }

    fn apply_block(
        &mut self,
        id: InstanceId,
        block: BlockId,
        name: &ast::Name,
        call: Call<'_>,
    ) -> Checked<Called> {
        if &*name.text != "apply" {
            return self.wrong(name.span, "parsers and controls have one method, `apply(…)`");
        }
        match self.block(block).body {
            BlockBody::Parser { .. } => {
                self.require(call.span, Place::State, "a parser is applied in a parser's state")?;
            }
            BlockBody::Control { .. } => {
                self.require(call.span, Place::Apply, "a control is applied in `apply`")?;
            }
        }
        let parameters = self.parameters_of(&self.block(block).parameters.clone());
        let arguments = self.arguments(call.span, &parameters, &mut [], call.arguments)?;
        self.calls(self.depths.blocks[block.index()]);
        Ok(Called::Done(StatementKind::ApplyBlock(id, arguments)))
    }

    fn value_method(
        &mut self,
        of: Expression,
        name: &ast::Name,
        call: Call<'_>,
    ) -> Checked<Called> {
        if self.is_extern(&of.of, "packet_in") {
            return self.packet_in_method(name, call);
        }
        if self.is_extern(&of.of, "packet_out") {
            return self.packet_out_method(name, call);
        }
        if let Some(value) = self.builtin_value(call.span, &of, &name.text) {
            return match call.arguments {
                [] => value.map(Called::Value),
                _ => self.wrong(call.span, format!("`{}` takes no arguments", name.text)),
            };
        }
        let is_stack = matches!(of.of, Type::Stack(..));
        match &*name.text {
            valid @ ("setValid" | "setInvalid") if self.is_plain_header(&of.of) => {
                self.check_place(&of)?;
                Ok(Called::Done(StatementKind::SetValid(of, valid == "setValid")))
            }
            shift @ ("push_front" | "pop_front") if is_stack => {
                self.check_place(&of)?;
                let count = self.shift_count(call)?;
                let count = if shift == "push_front" { count } else { -count };
                Ok(Called::Done(StatementKind::Shift(of, count)))
            }
            _ => {
                let known: &[&str] = match &of.of {
                    Type::Stack(..) => &["push_front", "pop_front"],
                    other if self.is_header_or_union(other) && !self.is_plain_header(other) => {
                        &["isValid"]
                    }
                    other if self.is_header_or_union(other) => {
                        &["isValid", "setValid", "setInvalid"]
                    }
                    _ => &[],
                };
                self.no_member(name, &of.of, known.iter().map(|one| (*one).into()))
            }
        }
    }

    /// Returns true for a header, but not for a header union.
    fn is_plain_header(&self, of: &Type) -> bool {
        self.record(of).is_some_and(|one| one.kind == RecordKind::Header)
    }

    fn shift_count(&mut self, call: Call<'_>) -> Checked<i64> {
        let [ast::Argument { value: Some(count), .. }] = call.arguments else {
            return self.wrong(call.span, "this takes one number");
        };
        let found = self.expression(count, None)?;
        match found.constant() {
            Some(Value::Integer(value)) if *value > BigInt::ZERO => {
                Ok(value.to_i64().unwrap_or(i64::MAX))
            }
            _ => self.wrong(count.span, "expected a number above zero that is known now"),
        }
    }
}
