//! Expressions, evaluated from left to right (P4_16 specification, section 8).

use p4::ir::{Applied, Binary, Expression, ExpressionKind, Type, Unary};

use super::numbers::Number;
use super::{Lower, Lowered, NotCompiled};
use crate::flat::shape::Slots;
use crate::flat::shape::VALID;
use crate::flat::{self, Compare, ValueId};

impl Lower<'_> {
    /// Lowers an expression.
    pub(super) fn value(&mut self, of: &Expression) -> Lowered<Vec<ValueId>> {
        self.deeper(of.span, |lower| lower.lower_value(of))
    }

    fn lower_value(&mut self, of: &Expression) -> Lowered<Vec<ValueId>> {
        use ExpressionKind as K;
        self.goes_on(of.span)?;
        Ok(match &of.kind {
            K::Constant(value) => self.constant(value, &of.of),
            K::ConstructorParameter(at) => {
                match self.elaborated.blocks[self.around].constructor.get(*at).cloned() {
                    Some(given) => self.value(&given)?,
                    None => return self.refuse(of.span, "this was not given"),
                }
            }
            K::Variable(_) | K::Next(_) | K::Last(_) => {
                let place = self.place(of)?;
                self.read(&place)
            }
            K::Field(..) | K::Element(..) | K::Slice(..) if of.is_place() => {
                let place = self.place(of)?;
                self.read(&place)
            }
            K::Field(inner, at) => {
                let (_, range) = self.program.placed_part(&inner.of, *at);
                let whole = self.value(inner)?;
                whole[range.start as usize..range.end as usize].to_vec()
            }
            K::Element(inner, index) => self.element_of(inner, index, &of.of)?,
            K::LastIndex(inner) => {
                let place = self.place(inner)?;
                let next = self.next(&place);
                let last = self.build.by(flat::Binary::Subtract, next, 1);
                let width = self.width(&of.of);
                vec![self.build.low(last, width)]
            }
            K::Slice(inner, high, low) => {
                let value = self.value(inner)?;
                self.build.slice(&value, *low, high - low + 1)
            }
            K::Unary(operator, inner) => self.unary(*operator, inner)?,
            K::Binary(Binary::LogicalAnd | Binary::LogicalOr, ..) => vec![self.truth(of)?],
            K::Binary(operator, left, right) => self.binary(of, *operator, left, right)?,
            K::Cast(inner) => {
                let value = self.value(inner)?;
                self.cast(value, &inner.of, &of.of)
            }
            K::Choose(condition, yes, no) => self.choose(condition, yes, no, &of.of)?,
            K::Fields(fields) => self.made_of(fields, &of.of)?,
            K::Invalid => self.initial(&of.of),
            K::IsValid(inner) => vec![self.is_valid(inner)?],
            K::Lookahead => self.lookahead(&of.of, of.span)?,
            K::PacketLength => {
                let width = self.width(&of.of);
                let length = self.length;
                vec![self.build.low(length, width)]
            }
            K::Call(function, arguments) => self.call_function(*function, arguments)?,
            K::ExternCall(call) => self.extern_call(call, of)?,
            K::Apply(table, what) => {
                let hit = self.apply_table(*table, true)?;
                vec![match what {
                    Applied::Hit => hit,
                    Applied::Miss => self.build.not(hit),
                }]
            }
        })
    }

    fn unary(&mut self, operator: Unary, inner: &Expression) -> Lowered<Vec<ValueId>> {
        let value = self.value(inner)?;
        let width = self.width(&inner.of);
        Ok(match operator {
            Unary::Not => vec![self.build.not(value[0])],
            Unary::Complement => self.build.complement(&value, width),
            Unary::Minus => self.build.negated(&value, width),
            Unary::Plus => value,
        })
    }

    /// `condition ? yes : no`
    fn choose(
        &mut self,
        condition: &Expression,
        yes: &Expression,
        no: &Expression,
        of: &Type,
    ) -> Lowered<Vec<ValueId>> {
        let [then, other, after] = [(); 3].map(|()| self.build.new_block());
        let count = self.program.slots(of);
        let result = self.slots(count);
        self.decide(condition, then, other)?;
        for (block, value) in [(then, yes), (other, no)] {
            self.build.continue_in(block);
            let value = self.value(value)?;
            self.write_all(result, &value);
            self.build.jump(after);
        }
        self.build.continue_in(after);
        Ok(self.read_all(result, count))
    }

    /// Builds a value of a type from its parts.
    fn made_of(&mut self, fields: &[Expression], of: &Type) -> Lowered<Vec<ValueId>> {
        let mut all = Vec::new();
        for field in fields {
            all.extend(self.value(field)?);
        }
        Ok(match of {
            Type::Stack(..) => {
                all.insert(0, self.build.constant(0));
                all
            }
            _ if self.program.is_header(of) => self.header(true, all),
            _ => all,
        })
    }

    /// Evaluates a condition to 1 or 0, with short-circuit evaluation of its right operand.
    fn truth(&mut self, of: &Expression) -> Lowered<ValueId> {
        let (yes, no, after) =
            (self.build.new_block(), self.build.new_block(), self.build.new_block());
        let result = self.slots(1);
        self.decide(of, yes, no)?;
        for (block, value) in [(yes, 1), (no, 0)] {
            self.build.continue_in(block);
            let value = self.build.constant(value);
            self.build.write(result, value);
            self.build.jump(after);
        }
        self.build.continue_in(after);
        Ok(self.build.read(result))
    }

    /// Reads an element of a stack that is not an l-value; 0 if the index is out of bounds.
    fn element_of(
        &mut self,
        stack: &Expression,
        index: &Expression,
        of: &Type,
    ) -> Lowered<Vec<ValueId>> {
        let whole = self.value(stack)?;
        let width = self.width(&index.of);
        let index = self.value(index)?;
        let index = self.build.resized(&index, width, false, width.max(64));
        let mut values = self.initial(of);
        let Type::Stack(_, size) = stack.of else { return Ok(values) };
        for at in 0..size as usize {
            let (_, range) = self.program.placed_part(&stack.of, at);
            let wanted = self.build.number(&at.into(), width.max(64));
            let is = self.build.equal(&index, &wanted);
            values =
                self.build.choose(is, &whole[range.start as usize..range.end as usize], &values);
        }
        Ok(values)
    }

    /// Returns 1 if the header, or any header of the union, is valid.
    fn is_valid(&mut self, of: &Expression) -> Lowered<ValueId> {
        if of.is_place() && self.program.is_header(&of.of) {
            let place = self.place(of)?;
            return Ok(self.read_valid(&place));
        }
        let value = self.value(of)?;
        if !self.program.is_union(&of.of) {
            return Ok(value[VALID as usize]);
        }
        let mut any = self.build.constant(0);
        for (_, range) in self.program.placed_parts(&of.of) {
            let valid = value[(range.start + VALID) as usize];
            any = self.build.binary(flat::Binary::Or, any, valid);
        }
        Ok(any)
    }

    fn binary(
        &mut self,
        of: &Expression,
        operator: Binary,
        left: &Expression,
        right: &Expression,
    ) -> Lowered<Vec<ValueId>> {
        use flat::Binary as F;
        let kind = left.of.clone();
        let shape = (self.width(&kind), self.is_signed(&kind));
        let one = self.value(left)?;
        if matches!(operator, Binary::ShiftLeft | Binary::ShiftRight) {
            return self.shift_number(operator == Binary::ShiftLeft, &one, shape, right);
        }
        let right_width = self.width(&right.of);
        let other = self.value(right)?;
        let width = shape.0;
        Ok(match operator {
            Binary::Equal => vec![self.same(&one, &other, &kind)],
            Binary::NotEqual => {
                let same = self.same(&one, &other, &kind);
                vec![self.build.not(same)]
            }
            Binary::Less => vec![self.build.less(&one, &other, shape, false)],
            Binary::LessOrEqual => vec![self.build.less(&one, &other, shape, true)],
            Binary::Greater => vec![self.build.less(&other, &one, shape, false)],
            Binary::GreaterOrEqual => vec![self.build.less(&other, &one, shape, true)],
            Binary::Add => self.build.sum(&one, &other, width),
            Binary::Subtract => self.build.difference(&one, &other, width),
            Binary::Multiply => self.build.product(&one, &other, width),
            Binary::AddSaturating => self.build.saturated(true, &one, &other, shape),
            Binary::SubtractSaturating => self.build.saturated(false, &one, &other, shape),
            Binary::And => self.build.bitwise(F::And, &one, &other),
            Binary::Or => self.build.bitwise(F::Or, &one, &other),
            Binary::Xor => self.build.bitwise(F::Xor, &one, &other),
            Binary::Concatenate => self.build.concatenated(&one, &other, (width, right_width)),
            Binary::Divide | Binary::Modulo => {
                let ([one], [other]) = (&one[..], &other[..]) else {
                    return Err(NotCompiled {
                        span: of.span,
                        what: format!("a division of numbers of {width} bits: the limit is 64"),
                        help: Some("by a power of two, `>>` and `&` do the same".to_owned()),
                    });
                };
                let operator = if operator == Binary::Divide { F::Divide } else { F::Modulo };
                vec![self.build.binary(operator, *one, *other)]
            }
            _ => return self.refuse(of.span, "this operator has no code"),
        })
    }

    fn shift_number(
        &mut self,
        left_shift: bool,
        value: &Number,
        shape: (u32, bool),
        by: &Expression,
    ) -> Lowered<Vec<ValueId>> {
        if let Some(p4::ir::Value::Integer(by)) = by.constant() {
            let by = u32::try_from(by).unwrap_or(u32::MAX);
            return Ok(self.build.shifted_by(left_shift, value, shape, by));
        }
        let by = self.value(by)?;
        Ok(self.build.shifted(left_shift, value, shape, &by))
    }

    /// `(to) value`; a serializable enum is converted as its underlying number.
    fn cast(&mut self, value: Vec<ValueId>, from: &Type, to: &Type) -> Vec<ValueId> {
        let (from_number, to_number) =
            (self.program.representation(from), self.program.representation(to));
        match (&from_number, &to_number) {
            (Type::Bits { .. }, Type::Bool) => {
                let zero = self.build.constant(0);
                vec![self.build.compare(Compare::NotEqual, value[0], zero)]
            }
            (Type::Bits { .. } | Type::Bool | Type::Integer, Type::Bits { width, .. }) => {
                let signed = self.is_signed(from);
                self.build.resized(&value, self.width(from), signed, *width)
            }
            _ if self.program.is_header(to) && !self.program.is_header(from) => {
                self.header(true, value)
            }
            _ => value,
        }
    }

    /// Returns 1 if two values of a type are equal. Invalid headers are equal regardless of their
    /// fields.
    pub(super) fn same(&mut self, left: &[ValueId], right: &[ValueId], of: &Type) -> ValueId {
        match of {
            Type::Record(_) | Type::Stack(..) | Type::Tuple(_) => {
                let mut all = self.build.constant(1);
                for (of, range) in self.program.placed_parts(of) {
                    let range = range.start as usize..range.end as usize;
                    let one = self.same(&left[range.clone()], &right[range], &of);
                    all = self.build.binary(flat::Binary::And, all, one);
                }
                if !self.program.is_header(of) {
                    return all;
                }
                let (one, other) = (left[VALID as usize], right[VALID as usize]);
                let alike = self.build.compare(Compare::Equal, one, other);
                let invalid = self.build.not(one);
                let fields = self.build.binary(flat::Binary::Or, invalid, all);
                self.build.binary(flat::Binary::And, alike, fields)
            }
            Type::Varbit(_) => self.same_bytes(left, right),
            Type::New(id) => {
                let of = self.program.new_types[id.index()].of.clone();
                self.same(left, right, &of)
            }
            _ => self.build.equal(left, right),
        }
    }

    /// Returns 1 if two varbits are equal: same length, and same bytes in the packet.
    fn same_bytes(&mut self, left: &[ValueId], right: &[ValueId]) -> ValueId {
        let result = self.slots(2);
        let at = result + 1;
        let (zero, one) = (self.build.constant(0), self.build.constant(1));
        self.build.write(result, zero);
        self.build.write(at, zero);
        let [head, body, next, whole, after] = [(); 5].map(|()| self.build.new_block());
        let as_long = self.build.compare(Compare::Equal, left[0], right[0]);
        self.build.branch(as_long, head, after);
        // Not sealed: the back edge is added later.
        self.build.block = head;
        let now = self.build.read(at);
        let bytes = self.build.by(flat::Binary::ShiftRight, left[0], 3);
        let more = self.build.compare(Compare::Less, now, bytes);
        self.build.branch(more, body, whole);
        self.build.continue_in(body);
        let packet = self.build.op(flat::Op::Packet);
        let [one_byte, other_byte] = [left[1], right[1]].map(|start| {
            let base = self.build.binary(flat::Binary::Add, packet, start);
            let base = self.build.binary(flat::Binary::Add, base, now);
            self.build.op(flat::Op::Load { base, offset: 0, size: 1, constant: true })
        });
        let same = self.build.compare(Compare::Equal, one_byte, other_byte);
        self.build.branch(same, next, after);
        self.build.continue_in(next);
        let behind = self.build.by(flat::Binary::Add, now, 1);
        self.build.write(at, behind);
        self.build.jump(head);
        self.build.seal(head);
        self.build.continue_in(whole);
        self.build.write(result, one);
        self.build.jump(after);
        self.build.continue_in(after);
        self.build.read(result)
    }
}
