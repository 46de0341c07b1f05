//! Calls, all of which are inlined.

use p4::ir::{ActionId, BlockBody, Expression, FunctionId, InstanceId, Type, VariableId};
use p4_syntax::ast::Direction;

use super::places::Place;
use super::{Call, Lower, Lowered};
use crate::flat::build::Slot;
use crate::flat::shape::Slots;
use crate::flat::{BlockId, ValueId};

impl Lower<'_> {
    /// Lowers a parser or a control. Its parameters must have been assigned.
    pub(super) fn block(&mut self, at: usize) -> Lowered {
        let after = self.build.new_block();
        for end in self.ends(at, after)? {
            self.build.continue_in(end);
            self.build.jump(after);
        }
        self.build.continue_in(after);
        Ok(())
    }

    /// Lowers a parser or a control in which `return` jumps to `after`. Returns the blocks where it
    /// ends otherwise.
    pub(super) fn ends(&mut self, at: usize, after: BlockId) -> Lowered<Vec<BlockId>> {
        let program = self.program;
        let block = &program.blocks[self.elaborated.blocks[at].block.index()];
        let outside = std::mem::replace(&mut self.around, at);
        self.calls.push(Call { after, returned: 0, back: Vec::new(), is_function: false });
        self.all(&block.locals)?;
        let ends = match &block.body {
            BlockBody::Parser { states, .. } => self.parse(states, block)?,
            BlockBody::Control { apply, .. } => {
                self.all(apply)?;
                vec![self.build.block]
            }
        };
        self.calls.pop();
        self.around = outside;
        Ok(ends)
    }

    /// Copies arguments in. Returns the places to copy out to, each with its parameter.
    fn hand_in(
        &mut self,
        parameters: &[VariableId],
        arguments: &[Expression],
    ) -> Lowered<Vec<(Place, VariableId)>> {
        let mut values = Vec::with_capacity(arguments.len());
        let mut back = Vec::new();
        for (id, argument) in parameters.iter().zip(arguments) {
            let variable = &self.program.variables[id.index()];
            if matches!(variable.of, Type::Extern(..)) {
                continue;
            }
            let value = match variable.direction {
                Some(Direction::Out | Direction::InOut) => {
                    let place = self.place(argument)?;
                    let value = match variable.direction {
                        Some(Direction::Out) => self.initial(&variable.of),
                        _ => self.read(&place),
                    };
                    back.push((place, *id));
                    value
                }
                _ => self.value(argument)?,
            };
            values.push((*id, value));
        }
        // Assign the parameters last: evaluating an argument may call the same function.
        for (id, value) in values {
            self.write_all(self.variable(id), &value);
        }
        Ok(back)
    }

    pub(super) fn hand_back(&mut self, back: &[(Place, VariableId)]) {
        for (place, id) in back {
            let count = self.program.slots(&self.type_of(*id));
            let value = self.read_all(self.variable(*id), count);
            self.write(place, &value);
        }
    }

    /// Lowers the body of a call and continues after it. A function passes the first slot of its
    /// return value.
    fn called(
        &mut self,
        back: &[(Place, VariableId)],
        function: Option<Slot>,
        body: impl FnOnce(&mut Self) -> Lowered,
    ) -> Lowered {
        self.goes_on(self.build.span)?;
        let after = self.build.new_block();
        let (returned, is_function) = (function.unwrap_or_default(), function.is_some());
        self.calls.push(Call { after, returned, back: back.to_vec(), is_function });
        let loops = std::mem::take(&mut self.loops);
        body(self)?;
        self.loops = loops;
        self.calls.pop();
        self.build.jump(after);
        self.build.continue_in(after);
        Ok(())
    }

    pub(super) fn call_function(
        &mut self,
        id: FunctionId,
        arguments: &[Expression],
    ) -> Lowered<Vec<ValueId>> {
        let function = &self.program.functions[id.index()];
        let back = self.hand_in(&function.parameters, arguments)?;
        let count = self.program.slots(&function.returns);
        let returned = self.slots(count);
        let body = |lower: &mut Self| lower.all(&function.body);
        self.called(&back, Some(returned), body)?;
        self.hand_back(&back);
        Ok(self.read_all(returned, count))
    }

    pub(super) fn call_action(&mut self, id: ActionId, arguments: &[Expression]) -> Lowered {
        self.run_action(id, arguments, &[])
    }

    /// Runs an action with the arguments from the program, followed by those of a table entry.
    pub(super) fn run_action(
        &mut self,
        id: ActionId,
        arguments: &[Expression],
        entry: &[Vec<ValueId>],
    ) -> Lowered {
        let action = &self.program.actions[id.index()];
        let back = self.hand_in(&action.parameters, arguments)?;
        for (id, value) in action.parameters[arguments.len()..].iter().zip(entry) {
            self.write_all(self.variable(*id), value);
        }
        self.called(&back, None, |lower| lower.all(&action.body))?;
        self.hand_back(&back);
        Ok(())
    }

    pub(super) fn apply_block(
        &mut self,
        instance: InstanceId,
        arguments: &[Expression],
    ) -> Lowered {
        let Some(&at) = self.elaborated.blocks[self.around].inside.get(&instance) else {
            let span = self.build.span;
            return self.refuse(span, "this was not instantiated");
        };
        let parameters = self.parameters(at);
        let back = self.hand_in(&parameters, arguments)?;
        let known = self.metadata.len();
        for id in &parameters {
            let variable = &self.program.variables[id.index()];
            if variable.direction == Some(Direction::InOut)
                && self.program.is_metadata(&variable.of)
            {
                self.metadata.push(*id);
            }
        }
        self.called(&back, None, |lower| lower.block(at))?;
        self.metadata.truncate(known);
        self.hand_back(&back);
        Ok(())
    }
}
