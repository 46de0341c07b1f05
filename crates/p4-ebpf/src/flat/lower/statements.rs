//! Statements (P4_16 specification, section 12).

use num_bigint::BigInt;
use p4::ir::{Expression, Statement, StatementKind, Type, VariableId};

use super::places::Place;
use super::{Lower, Lowered};
use crate::flat::shape::Slots;
use crate::flat::{Binary, BlockId, Compare};

impl Lower<'_> {
    /// Lowers statements in order.
    pub(super) fn all(&mut self, statements: &[Statement]) -> Lowered {
        statements.iter().try_for_each(|one| self.statement(one))
    }

    fn statement(&mut self, statement: &Statement) -> Lowered {
        self.deeper(statement.span, |lower| lower.lower_statement(statement))
    }

    fn lower_statement(&mut self, statement: &Statement) -> Lowered {
        use StatementKind as K;
        self.goes_on(statement.span)?;
        match &statement.kind {
            K::Declare(id, None) => self.declare(*id),
            K::Declare(id, Some(value)) => {
                let value = self.value(value)?;
                self.write_all(self.variable(*id), &value);
            }
            K::Assign(place, value) => {
                let place = self.place(place)?;
                let value = self.value(value)?;
                self.write(&place, &value);
            }
            K::Evaluate(value) => {
                self.value(value)?;
            }
            K::If(condition, yes, no) => self.lower_if(condition, yes, no)?,
            K::Switch(value, cases, other) => self.switch(value, cases, other)?,
            K::SwitchAction(table, cases, other) => self.switch_action(*table, cases, other)?,
            K::Loop(condition, body, step) => self.loop_over(condition, body, step)?,
            K::ForRange(id, from, to, body) => self.count(*id, (from, to), body)?,
            K::Break => self.leave(self.loops.last().map(|(after, _)| *after)),
            K::Continue => self.leave(self.loops.last().map(|(_, next)| *next)),
            K::Return(value) => self.lower_return(value.as_ref())?,
            K::Exit => self.lower_exit(),
            K::Block(all) => self.all(all)?,
            K::ApplyTable(table) => {
                self.apply_table(*table, false)?;
            }
            K::ApplyBlock(instance, arguments) => self.apply_block(*instance, arguments)?,
            K::CallAction(call) => self.call_action(call.action, &call.arguments)?,
            K::Extract(header, bits) => self.extract(header, bits.as_ref())?,
            K::Advance(bits) => self.advance(bits)?,
            K::Emit(value) => self.emit(value)?,
            K::Verify(condition, error) => self.verify(condition, error)?,
            K::SetValid(header, is_valid) => {
                let place = self.place(header)?;
                self.write_valid(&place, *is_valid);
            }
            K::Shift(stack, by) => {
                let place = self.place(stack)?;
                self.shift(&place, *by);
            }
        }
        Ok(())
    }

    fn lower_if(&mut self, condition: &Expression, yes: &[Statement], no: &[Statement]) -> Lowered {
        let [then, other, after] = [(); 3].map(|()| self.build.new_block());
        self.decide(condition, then, other)?;
        for (block, body) in [(then, yes), (other, no)] {
            self.build.continue_in(block);
            self.all(body)?;
            self.build.jump(after);
        }
        self.build.continue_in(after);
        Ok(())
    }

    fn switch(
        &mut self,
        value: &Expression,
        cases: &[(Vec<Expression>, Vec<Statement>)],
        other: &[Statement],
    ) -> Lowered {
        let of = &value.of;
        let value = self.value(value)?;
        let after = self.build.new_block();
        for (labels, body) in cases {
            let mut is = self.build.constant(0);
            for label in labels {
                let Some(known) = label.constant() else { continue };
                let label = self.constant(known, of);
                let same = self.same(&value, &label, of);
                is = self.build.binary(Binary::Or, is, same);
            }
            let (then, next) = (self.build.new_block(), self.build.new_block());
            self.build.branch(is, then, next);
            self.build.continue_in(then);
            self.all(body)?;
            self.build.jump(after);
            self.build.continue_in(next);
        }
        self.all(other)?;
        self.build.jump(after);
        self.build.continue_in(after);
        Ok(())
    }

    /// Jumps to a block and continues in an unreachable one.
    fn leave(&mut self, to: Option<BlockId>) {
        if let Some(to) = to {
            self.build.jump(to);
            self.build.unreachable();
        }
    }

    /// `return`
    fn lower_return(&mut self, value: Option<&Expression>) -> Lowered {
        let value = value.map(|value| self.value(value)).transpose()?;
        if let Some(call) = self.calls.last() {
            let (after, returned) = (call.after, call.returned);
            self.write_all(returned, &value.unwrap_or_default());
            self.leave(Some(after));
        }
        Ok(())
    }

    /// `exit`: arguments of actions and controls are copied out all the same (section 12.6).
    fn lower_exit(&mut self) {
        for at in (0..self.calls.len()).rev() {
            if !self.calls[at].is_function {
                let back = self.calls[at].back.clone();
                self.hand_back(&back);
            }
        }
        self.leave(Some(self.exit));
    }

    fn verify(&mut self, condition: &Expression, error: &Expression) -> Lowered {
        let (next, wrong) = (self.build.new_block(), self.build.new_block());
        self.decide(condition, next, wrong)?;
        self.build.continue_in(wrong);
        self.value(error)?;
        let reject = self.reject;
        self.build.jump(reject);
        self.build.continue_in(next);
        Ok(())
    }

    fn loop_over(
        &mut self,
        condition: &Expression,
        body: &[Statement],
        step: &[Statement],
    ) -> Lowered {
        let (head, inside) = (self.build.new_block(), self.build.new_block());
        let (next, after) = (self.build.new_block(), self.build.new_block());
        self.build.jump(head);
        // Not sealed: the back edge is added later.
        self.build.block = head;
        self.decide(condition, inside, after)?;
        self.build.continue_in(inside);
        self.loops.push((after, next));
        self.within_loops += 1;
        self.all(body)?;
        self.within_loops -= 1;
        self.loops.pop();
        self.build.jump(next);
        self.build.continue_in(next);
        self.all(step)?;
        self.build.jump(head);
        self.build.seal(head);
        self.build.continue_in(after);
        Ok(())
    }

    /// `for (id in from .. to)`: compares before it increments, so that the counter cannot
    /// overflow.
    fn count(
        &mut self,
        id: VariableId,
        (from, to): (&Expression, &Expression),
        body: &[Statement],
    ) -> Lowered {
        let of = self.type_of(id);
        let shape = (self.width(&of), self.is_signed(&of));
        let (first, last) = (self.value(from)?, self.value(to)?);
        let counter = self.slots(self.program.slots(&of));
        self.write_all(counter, &first);
        let (head, next, after) =
            (self.build.new_block(), self.build.new_block(), self.build.new_block());
        let any = self.build.less(&first, &last, shape, true);
        self.build.branch(any, head, after);
        self.build.block = head;
        let now = self.read_all(counter, first.len() as u32);
        self.write_all(self.variable(id), &now);
        self.loops.push((after, next));
        self.within_loops += 1;
        self.all(body)?;
        self.within_loops -= 1;
        self.loops.pop();
        self.build.jump(next);
        self.build.continue_in(next);
        let now = self.read_all(counter, first.len() as u32);
        let is_last = self.build.equal(&now, &last);
        let one = self.build.number(&BigInt::from(1), shape.0);
        let more = self.build.sum(&now, &one, shape.0);
        self.write_all(counter, &more);
        self.build.branch(is_last, after, head);
        self.build.seal(head);
        self.build.continue_in(after);
        Ok(())
    }

    /// Branches on a condition, with short-circuit evaluation of its right operand.
    pub(super) fn decide(&mut self, condition: &Expression, yes: BlockId, no: BlockId) -> Lowered {
        self.deeper(condition.span, |lower| lower.lower_decision(condition, yes, no))
    }

    fn lower_decision(&mut self, condition: &Expression, yes: BlockId, no: BlockId) -> Lowered {
        use p4::ir::{Binary as B, ExpressionKind as K, Unary};
        match &condition.kind {
            K::Binary(operator @ (B::LogicalAnd | B::LogicalOr), left, right) => {
                let second = self.build.new_block();
                match operator {
                    B::LogicalAnd => self.decide(left, second, no)?,
                    _ => self.decide(left, yes, second)?,
                }
                self.build.continue_in(second);
                self.decide(right, yes, no)
            }
            K::Unary(Unary::Not, inner) => self.decide(inner, no, yes),
            _ => {
                let holds = self.value(condition)?[0];
                self.build.branch(holds, yes, no);
                Ok(())
            }
        }
    }

    /// `push_front` and `pop_front` (section 8.18).
    fn shift(&mut self, stack: &Place, by: i64) {
        let Type::Stack(element, size) = &stack.of else { return };
        let each = self.program.slots(element) as usize;
        let count = by.unsigned_abs().min(u64::from(*size)) as usize;
        let mut blank = Vec::with_capacity(count * each);
        for _ in 0..count {
            blank.extend(self.initial(element));
        }
        let mut all = self.read(stack);
        let next = all.remove(0);
        let bound = self.build.constant(if by > 0 { u64::from(*size) } else { count as u64 });
        let next = if by > 0 {
            all.truncate(all.len() - count * each);
            all.splice(..0, blank);
            let more = self.build.by(Binary::Add, next, count as u64);
            let fits = self.build.compare(Compare::Less, more, bound);
            self.build.select(fits, more, bound)
        } else {
            all.drain(..count * each);
            all.extend(blank);
            let less = self.build.binary(Binary::Subtract, next, bound);
            let fits = self.build.compare(Compare::LessOrEqual, bound, next);
            let zero = self.build.constant(0);
            self.build.select(fits, less, zero)
        };
        all.insert(0, next);
        self.write(stack, &all);
    }
}
