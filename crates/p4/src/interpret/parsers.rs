//! Execution of parsers (P4_16 specification, section 13).

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::{Done, Run, Stop};
use crate::ir::{
    Expression, ExpressionKind, Set, State, Target, Transition, Type, Value, arithmetic,
};

impl Run<'_, '_> {
    /// Runs the parser from its first state.
    pub(super) fn parse(&mut self, states: &[State]) -> Done {
        let mut target = Target::State(crate::ir::StateId(0));
        loop {
            self.step()?;
            let state = match target {
                Target::State(id) => &states[id.index()],
                Target::Accept => return Ok(()),
                Target::Reject => return Err(Stop::Reject),
            };
            self.all(&state.body)?;
            target = match &state.transition {
                Transition::To(target) => *target,
                Transition::Select(values, cases) => self.select(values, cases)?,
            };
        }
    }

    fn select(&mut self, values: &[Expression], cases: &[(Vec<Set>, Target)]) -> Done<Target> {
        let mut known = Vec::with_capacity(values.len());
        for value in values {
            known.push(self.value(value)?);
        }
        for (sets, target) in cases {
            let mut all = true;
            for (set, value) in sets.iter().zip(&known) {
                all &= self.is_in(value, set)?;
            }
            if all {
                return Ok(*target);
            }
        }
        Err(Stop::Reject)
    }

    /// Returns true if a value matches a keyset.
    fn is_in(&mut self, value: &Value, set: &Set) -> Done<bool> {
        let number = |value: &Value| match value {
            Value::Integer(value) => value.clone(),
            _ => BigInt::ZERO,
        };
        Ok(match set {
            Set::Any => true,
            Set::Value(one) => arithmetic::equal(&self.value(one)?, value),
            Set::Mask(one, mask) => {
                let (one, mask) = (self.number(one)?, self.number(mask)?);
                number(value) & &mask == one & mask
            }
            Set::Range(from, to) => {
                let (from, to) = (self.number(from)?, self.number(to)?);
                (from..=to).contains(&number(value))
            }
            // The control plane fills value sets, and it is not connected to the interpreter.
            Set::Of(_) => false,
        })
    }

    pub(super) fn extract(&mut self, header: &Expression, bits: Option<&Expression>) -> Done {
        let place = self.place(header)?;
        let varbits = match bits {
            Some(bits) => self.number(bits)?.to_u32().unwrap_or(u32::MAX),
            None => 0,
        };
        let (least, most) = self.program.size_of(&header.of).unwrap_or_default();
        let Some(size) = least.checked_add(varbits) else {
            return Err(Stop::Reject);
        };
        // A header has a whole number of bytes (section 13.8.2).
        if size > most || (bits.is_some() && !size.is_multiple_of(8)) {
            return Err(Stop::Reject);
        }
        if size as usize > self.packet.left() {
            return Err(Stop::Reject);
        }
        let (value, _) = self.packet.value(self.program, &header.of, 0, varbits);
        self.packet.advance(size as usize);
        self.write(&place, value);
        // Extracting one header of a union also advances a stack of unions.
        let element = match &header.kind {
            ExpressionKind::Field(union, _) => union,
            _ => header,
        };
        if let ExpressionKind::Next(stack) = &element.kind {
            let stack = self.place(stack)?;
            self.change(&stack, |value| {
                if let Value::Stack { next, .. } = value {
                    *next += 1;
                }
            });
        }
        Ok(())
    }

    pub(super) fn advance(&mut self, bits: &Expression) -> Done {
        let bits = self.number(bits)?.to_usize().unwrap_or(usize::MAX);
        if bits > self.packet.left() {
            return Err(Stop::Reject);
        }
        self.packet.advance(bits);
        Ok(())
    }

    pub(super) fn lookahead(&mut self, of: &Type) -> Done<Value> {
        let (bits, _) = self.program.size_of(of).unwrap_or_default();
        if bits as usize > self.packet.left() {
            return Err(Stop::Reject);
        }
        let (value, _) = self.packet.value(self.program, of, 0, 0);
        self.weigh(&value);
        Ok(value)
    }
}
