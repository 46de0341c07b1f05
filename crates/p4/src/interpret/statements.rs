//! Execution of statements (P4_16 specification, sections 6.8 and 12).

use num_bigint::BigInt;
use p4_syntax::ast::Direction;

use super::places::Place;
use super::{Done, Run, Stop};
use crate::ir::{
    ActionCall, ActionId, Expression, FunctionId, InstanceId, Statement, StatementKind, Type,
    Value, VariableId, arithmetic,
};

impl Run<'_, '_> {
    /// Executes statements in order.
    pub(super) fn all(&mut self, statements: &[Statement]) -> Done {
        statements.iter().try_for_each(|one| self.statement(one))
    }

    fn statement(&mut self, statement: &Statement) -> Done {
        self.deeper(|run| run.run_statement(statement))
    }

    fn run_statement(&mut self, statement: &Statement) -> Done {
        use StatementKind as K;
        self.step()?;
        match &statement.kind {
            K::Declare(id, value) => {
                let value = match value {
                    Some(value) => self.value(value)?,
                    None => self.program.initial(&self.program.variables[id.index()].of),
                };
                self.weigh(&value);
                self.variables[id.index()] = value;
            }
            K::Assign(place, value) => {
                let place = self.place(place)?;
                let value = self.value(value)?;
                self.write(&place, value);
            }
            K::Evaluate(value) => {
                self.value(value)?;
            }
            K::If(condition, yes, no) => {
                let chosen = if self.condition(condition)? { yes } else { no };
                self.all(chosen)?;
            }
            K::Switch(value, cases, other) => {
                let value = self.value(value)?;
                let is = |label: &Expression| {
                    label.constant().is_some_and(|label| arithmetic::equal(label, &value))
                };
                let chosen = cases.iter().find(|(labels, _)| labels.iter().any(is));
                self.all(chosen.map_or(other, |(_, body)| body))?;
            }
            K::SwitchAction(table, cases, other) => {
                let (_, ran) = self.apply_table(*table)?;
                let chosen = cases.iter().find(|(actions, _)| actions.contains(&ran));
                self.all(chosen.map_or(other, |(_, body)| body))?;
            }
            K::Loop(condition, body, step) => self.loop_over(condition, body, step)?,
            K::ForRange(id, from, to, body) => self.count(*id, (from, to), body)?,
            K::Break => return Err(Stop::Break),
            K::Continue => return Err(Stop::Continue),
            K::Return(value) => {
                let value = value.as_ref().map(|value| self.value(value)).transpose()?;
                return Err(Stop::Return(value));
            }
            K::Exit => return Err(Stop::Exit),
            K::Block(all) => self.all(all)?,
            K::ApplyTable(table) => {
                self.apply_table(*table)?;
            }
            K::ApplyBlock(instance, arguments) => self.apply_block(*instance, arguments)?,
            K::CallAction(call) => self.call_action(call)?,
            K::Extract(header, bits) => self.extract(header, bits.as_ref())?,
            K::Advance(bits) => self.advance(bits)?,
            K::Emit(value) => {
                let found = self.value(value)?;
                self.packet.emit(self.program, &found, &value.of);
            }
            K::Verify(condition, error) => {
                if !self.condition(condition)? {
                    self.value(error)?;
                    return Err(Stop::Reject);
                }
            }
            K::SetValid(header, is_valid) => {
                let place = self.place(header)?;
                let blank = self.program.initial(&header.of);
                self.change(&place, |value| match value {
                    Value::Record { valid, .. } if *is_valid => *valid = true,
                    _ => *value = blank,
                });
            }
            K::Shift(stack, by) => {
                let place = self.place(stack)?;
                let blank = self.program.initial(&stack.of);
                self.change(&place, |value| shift(value, *by, &blank));
            }
        }
        Ok(())
    }

    fn loop_over(
        &mut self,
        condition: &Expression,
        body: &[Statement],
        step: &[Statement],
    ) -> Done {
        while self.condition(condition)? {
            match self.all(body) {
                Ok(()) | Err(Stop::Continue) => {}
                Err(Stop::Break) => break,
                Err(stop) => return Err(stop),
            }
            self.all(step)?;
        }
        Ok(())
    }

    fn count(
        &mut self,
        id: VariableId,
        (from, to): (&Expression, &Expression),
        body: &[Statement],
    ) -> Done {
        let (mut at, last) = (self.number(from)?, self.number(to)?);
        while at <= last {
            self.step()?;
            self.variables[id.index()] = at.clone().into();
            match self.all(body) {
                Ok(()) | Err(Stop::Continue) => {}
                Err(Stop::Break) => break,
                Err(stop) => return Err(stop),
            }
            at += BigInt::from(1);
        }
        Ok(())
    }

    // ---- calls ----

    /// Copies the arguments in. Returns the l-values to copy out to, with their parameters.
    fn enter(
        &mut self,
        parameters: &[VariableId],
        arguments: &[Expression],
    ) -> Done<Vec<(Place, VariableId)>> {
        let program = self.program;
        let mut values = Vec::with_capacity(arguments.len());
        let mut back = Vec::new();
        for (id, argument) in parameters.iter().zip(arguments) {
            let variable = &program.variables[id.index()];
            if matches!(variable.of, Type::Extern(..)) {
                continue;
            }
            values.push((
                *id,
                match variable.direction {
                    Some(Direction::Out | Direction::InOut) => {
                        let place = self.place(argument)?;
                        let value = match variable.direction {
                            Some(Direction::Out) => program.initial(&variable.of),
                            _ => self.read(&place),
                        };
                        back.push((place, *id));
                        value
                    }
                    _ => self.value(argument)?,
                },
            ));
        }
        // An argument may call the same function, so assign the parameters only after all arguments
        // are evaluated.
        for (id, value) in values {
            self.variables[id.index()] = value;
        }
        Ok(back)
    }

    fn leave(&mut self, back: Vec<(Place, VariableId)>) {
        for (place, id) in back {
            let value = self.variables[id.index()].clone();
            self.write(&place, value);
        }
    }

    pub(super) fn call_function(
        &mut self,
        id: FunctionId,
        arguments: &[Expression],
    ) -> Done<Value> {
        let function = &self.program.functions[id.index()];
        let back = self.enter(&function.parameters, arguments)?;
        let value = match self.all(&function.body) {
            Err(Stop::Return(value)) => value,
            Ok(()) => None,
            Err(stop) => return Err(stop),
        };
        self.leave(back);
        Ok(value.unwrap_or(Value::Bool(false)))
    }

    pub(super) fn call_action(&mut self, call: &ActionCall) -> Done {
        self.run_action(call.action, &call.arguments, &[])
    }

    /// Runs an action with the program's arguments, and those of an entry.
    pub(super) fn run_action(
        &mut self,
        id: ActionId,
        arguments: &[Expression],
        entry: &[Value],
    ) -> Done {
        let action = &self.program.actions[id.index()];
        let back = self.enter(&action.parameters, arguments)?;
        for (id, value) in action.parameters[arguments.len()..].iter().zip(entry) {
            self.variables[id.index()] = value.clone();
        }
        let result = match self.all(&action.body) {
            Err(Stop::Return(_)) => Ok(()),
            other => other,
        };
        // Copy out even after `exit` (section 12.6).
        self.leave(back);
        result
    }

    fn apply_block(&mut self, instance: InstanceId, arguments: &[Expression]) -> Done {
        let placed = &self.machine.elaborated.blocks[self.around];
        let Some(&at) = placed.inside.get(&instance) else {
            return Err(Stop::Failed(super::Error::Internal));
        };
        let parameters = self.parameters(at);
        let back = self.enter(&parameters, arguments)?;
        let known = self.metadata.len();
        let program = self.program;
        let metadata = parameters.iter().filter(|id| {
            let variable = &program.variables[id.index()];
            variable.direction == Some(Direction::InOut) && self.program.is_metadata(&variable.of)
        });
        let metadata: Vec<_> = metadata.copied().collect();
        self.metadata.extend(metadata);
        let result = self.block(at);
        self.metadata.truncate(known);
        self.leave(back);
        result
    }
}

/// Executes `push_front` or `pop_front` (section 8.18).
fn shift(value: &mut Value, by: i64, blank: &Value) {
    let (Value::Stack { next, elements }, Value::Stack { elements: blank, .. }) = (value, blank)
    else {
        return;
    };
    let size = elements.len();
    let count = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX).min(size);
    if by > 0 {
        elements.truncate(size - count);
        elements.splice(..0, blank[..count].iter().cloned());
        *next = (*next + count).min(size);
    } else {
        elements.drain(..count);
        elements.extend_from_slice(&blank[..count]);
        *next = next.saturating_sub(count);
    }
}
