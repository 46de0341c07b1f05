//! Evaluation of expressions, from left to right (P4_16 specification, section 8.2).

use num_bigint::BigInt;
use num_traits::Zero;

use super::{Done, Error, Run, Stop};
use crate::ir::{Applied, Binary, Expression, ExpressionKind, Type, Value, arithmetic};

impl Run<'_, '_> {
    fn value_in_place(&mut self, of: &Expression) -> Done<Value> {
        let place = self.place(of)?;
        let value = self.read(&place);
        self.weigh(&value);
        Ok(value)
    }

    /// Evaluates an expression.
    pub(super) fn value(&mut self, of: &Expression) -> Done<Value> {
        self.deeper(|run| run.evaluate(of))
    }

    fn evaluate(&mut self, of: &Expression) -> Done<Value> {
        use ExpressionKind as K;
        self.step()?;
        match &of.kind {
            K::Constant(value) => Ok(value.clone()),
            K::ConstructorParameter(at) => {
                let given = &self.machine.elaborated.blocks[self.around].constructor;
                let given = given.get(*at).cloned().ok_or(Stop::Failed(Error::Internal))?;
                self.value(&given)
            }
            K::Variable(_) | K::Next(_) | K::Last(_) => self.value_in_place(of),
            K::Field(..) | K::Element(..) if of.is_place() => self.value_in_place(of),
            K::Field(inner, at) => match self.value(inner)? {
                Value::Record { mut fields, .. } => Ok(fields.swap_remove(*at)),
                _ => Err(Stop::Failed(Error::Internal)),
            },
            K::Element(inner, index) => {
                let stack = self.value(inner)?;
                let index = self.number(index)?;
                match stack {
                    Value::Stack { mut elements, .. } => match usize::try_from(index) {
                        Ok(at) if at < elements.len() => Ok(elements.swap_remove(at)),
                        _ => Ok(self.program.initial(&of.of)),
                    },
                    _ => Err(Stop::Failed(Error::Internal)),
                }
            }
            K::LastIndex(inner) => {
                let place = self.place(inner)?;
                let (next, _) = self.stack_state(&place);
                let last = BigInt::from(next) - 1;
                Ok(arithmetic::wrap(last, &of.of).into())
            }
            K::Slice(inner, high, low) => {
                let value = self.number(inner)?;
                Ok(arithmetic::slice(&value, *high, *low).into())
            }
            K::Unary(operator, inner) => {
                let value = self.value(inner)?;
                arithmetic::unary(*operator, &value, &inner.of)
                    .map_err(|_| Stop::Failed(Error::Internal))
            }
            K::Binary(operator, left, right) => self.binary(*operator, left, right),
            K::Cast(inner) => {
                let value = self.value(inner)?;
                Ok(arithmetic::cast(&value, &self.program.representation(&of.of)))
            }
            K::Choose(condition, yes, no) => {
                let chosen = if self.condition(condition)? { yes } else { no };
                self.value(chosen)
            }
            K::Fields(fields) => {
                let mut all = Vec::with_capacity(fields.len());
                for field in fields {
                    all.push(self.value(field)?);
                }
                Ok(match of.of {
                    Type::Stack(..) => Value::Stack { next: 0, elements: all },
                    _ => Value::record(all),
                })
            }
            K::Invalid => Ok(self.program.initial(&of.of)),
            K::IsValid(inner) => {
                let value = self.value(inner)?;
                Ok(self.is_valid(&value, &inner.of).into())
            }
            K::Lookahead => self.lookahead(&of.of),
            K::PacketLength => Ok(BigInt::from(self.packet.len()).into()),
            K::Call(function, arguments) => self.call_function(*function, arguments),
            K::ExternCall(call) => self.extern_call(call, &of.of),
            K::Apply(table, what) => {
                let (hit, _) = self.apply_table(*table)?;
                Ok((hit == (*what == Applied::Hit)).into())
            }
        }
    }

    fn binary(&mut self, operator: Binary, left: &Expression, right: &Expression) -> Done<Value> {
        let first = self.value(left)?;
        match (operator, &first) {
            (Binary::LogicalAnd, Value::Bool(false)) | (Binary::LogicalOr, Value::Bool(true)) => {
                return Ok(first);
            }
            _ => {}
        }
        let second = self.value(right)?;
        if let (Value::Integer(number), Value::Integer(by)) = (&first, &second)
            && by.is_zero()
        {
            // Division by zero as in eBPF: the quotient is 0, the remainder is the dividend.
            match operator {
                Binary::Divide => return Ok(BigInt::ZERO.into()),
                Binary::Modulo => return Ok(number.clone().into()),
                _ => {}
            }
        }
        arithmetic::binary(operator, (&first, &left.of), (&second, &right.of))
            .map_err(|_| Stop::Failed(Error::Internal))
    }

    /// Evaluates a numeric expression.
    pub(super) fn number(&mut self, of: &Expression) -> Done<BigInt> {
        match self.value(of)? {
            Value::Integer(value) => Ok(value),
            _ => Err(Stop::Failed(Error::Internal)),
        }
    }

    /// Evaluates a Boolean expression.
    pub(super) fn condition(&mut self, of: &Expression) -> Done<bool> {
        Ok(self.value(of)? == Value::Bool(true))
    }

    /// Returns true if a header is valid, or if any header of a union is.
    fn is_valid(&self, value: &Value, of: &Type) -> bool {
        match value {
            Value::Record { fields, .. } if self.program.is_union(of) => {
                fields.iter().any(|field| matches!(field, Value::Record { valid: true, .. }))
            }
            Value::Record { valid, .. } => *valid,
            _ => false,
        }
    }
}
