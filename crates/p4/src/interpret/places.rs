//! Places that values are put in: a variable, and the way to a part of it. Indices are counted
//! once, before what is put there (P4_16 specification, section 6.8).

use num_traits::ToPrimitive;

use super::{Done, Run, Stop};
use crate::ir::{Expression, ExpressionKind, Type, Value, VariableId, arithmetic};

/// A step from something to a part of it.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// A field; if it is in a union, what that holds when none of it is valid.
    Field(usize, Option<Value>),
    /// An element of a stack, and its type.
    Element(usize, Type),
    /// Bits of a number of this type.
    Slice(u32, u32, Type),
}

/// A place.
#[derive(Debug, Clone)]
pub(super) struct Place {
    root: VariableId,
    steps: Vec<Step>,
}

impl Run<'_, '_> {
    /// The place that an expression means.
    pub(super) fn place(&mut self, of: &Expression) -> Done<Place> {
        use ExpressionKind as K;
        Ok(match &of.kind {
            K::Variable(id) => Place { root: *id, steps: Vec::new() },
            K::Field(inner, at) => {
                let is_union = self.program.is_union(&inner.of);
                let blank = is_union.then(|| self.program.initial(&inner.of));
                blank.iter().for_each(|blank| self.weigh(blank));
                self.place(inner)?.and(Step::Field(*at, blank))
            }
            K::Slice(inner, high, low) => {
                let mut place = self.place(inner)?;
                match place.steps.last_mut() {
                    // Bits of bits.
                    Some(Step::Slice(last, first, _)) => {
                        (*last, *first) = (*first + high, *first + low)
                    }
                    _ => place.steps.push(Step::Slice(*high, *low, inner.of.clone())),
                }
                place
            }
            K::Element(inner, index) => {
                let place = self.place(inner)?;
                let at = self.number(index)?.to_usize().unwrap_or(usize::MAX);
                place.and(Step::Element(at, of.of.clone()))
            }
            K::Next(inner) | K::Last(inner) => {
                let place = self.place(inner)?;
                let (next, size) = self.stack_state(&place);
                let at = match of.kind {
                    K::Next(_) if next < size => next,
                    K::Last(_) if next > 0 => next - 1,
                    _ => return Err(Stop::Reject),
                };
                place.and(Step::Element(at, of.of.clone()))
            }
            _ => return Err(Stop::Failed(super::Error::Internal)),
        })
    }

    /// The element of a stack that is extracted next, and how many there are.
    pub(super) fn stack_state(&mut self, place: &Place) -> (usize, usize) {
        match self.reach(place) {
            (Value::Stack { next, elements }, []) => (*next, elements.len()),
            _ => (0, 0),
        }
    }

    /// What is there, as far as it lies in a variable as it is, and the steps that are left.
    fn reach<'s>(&self, place: &'s Place) -> (&Value, &'s [Step]) {
        let mut value = &self.variables[place.root.index()];
        let mut rest = &place.steps[..];
        while let Some((step, behind)) = rest.split_first() {
            let part = match (step, value) {
                (Step::Field(at, _), Value::Record { fields, .. }) => fields.get(*at),
                (Step::Element(at, _), Value::Stack { elements, .. }) => elements.get(*at),
                _ => None,
            };
            let Some(part) = part else { break };
            (value, rest) = (part, behind);
        }
        (value, rest)
    }

    /// What is there.
    pub(super) fn read(&self, place: &Place) -> Value {
        let (value, rest) = self.reach(place);
        let mut value = value.clone();
        for step in rest {
            value = match (step, value) {
                (Step::Field(at, _), Value::Record { mut fields, .. }) => fields.swap_remove(*at),
                (Step::Element(at, of), Value::Stack { mut elements, .. }) => {
                    if *at < elements.len() {
                        elements.swap_remove(*at)
                    } else {
                        self.program.initial(of)
                    }
                }
                (Step::Slice(high, low, _), Value::Integer(value)) => {
                    arithmetic::slice(&value, *high, *low).into()
                }
                (_, value) => value,
            };
        }
        value
    }

    /// Puts a value there.
    pub(super) fn write(&mut self, place: &Place, value: Value) {
        let root = &mut self.variables[place.root.index()];
        put(root, &place.steps, value);
    }

    /// Does something to what is there, if it is there at all.
    pub(super) fn change(&mut self, place: &Place, change: impl FnOnce(&mut Value)) {
        let mut value = self.read(place);
        self.weigh(&value);
        change(&mut value);
        self.write(place, value);
    }
}

impl Place {
    fn and(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }
}

fn put(target: &mut Value, steps: &[Step], value: Value) {
    let Some((step, rest)) = steps.split_first() else {
        *target = value;
        return;
    };
    match (step, target) {
        (Step::Field(at, blank), Value::Record { fields, .. }) => {
            put(&mut fields[*at], rest, value);
            // At most one header of a union is valid; one that becomes invalid takes the whole union
            // along (section 8.20).
            if let (Some(Value::Record { fields: blanks, .. }), []) = (blank, rest) {
                for (other, (field, blank)) in fields.iter_mut().zip(blanks).enumerate() {
                    if other != *at {
                        *field = blank.clone();
                    }
                }
            }
        }
        (Step::Element(at, _), Value::Stack { elements, .. }) => {
            if let Some(element) = elements.get_mut(*at) {
                put(element, rest, value);
            }
        }
        (Step::Slice(high, low, of), Value::Integer(whole)) => {
            if let Value::Integer(part) = value {
                *whole = arithmetic::with_slice(whole, (*high, *low), &part, of);
            }
        }
        _ => {}
    }
}
