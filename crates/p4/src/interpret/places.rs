//! L-values: a variable, and the path to a part of it. Indices are evaluated once, before the
//! assigned value (P4_16 specification, section 6.8).

use num_traits::ToPrimitive;

use super::{Done, Run, Stop};
use crate::ir::{Expression, ExpressionKind, Type, Value, VariableId, arithmetic};

/// A step of the path, from a value to a part of it.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// A field. For a field of a union, also the initial value of that union.
    Field(usize, Option<Value>),
    /// An element of a stack, and its type.
    Element(usize, Type),
    /// A slice of a number of this type.
    Slice(u32, u32, Type),
}

/// An evaluated l-value.
#[derive(Debug, Clone)]
pub(super) struct Place {
    root: VariableId,
    steps: Vec<Step>,
}

impl Run<'_, '_> {
    /// Evaluates an expression to an l-value.
    pub(super) fn place(&mut self, of: &Expression) -> Done<Place> {
        self.deeper(|run| run.locate(of))
    }

    fn locate(&mut self, of: &Expression) -> Done<Place> {
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
                    // A slice of a slice.
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

    /// Returns the index of a stack's next element, and the stack's size.
    pub(super) fn stack_state(&mut self, place: &Place) -> (usize, usize) {
        match self.reach(place) {
            (Value::Stack { next, elements }, []) => (*next, elements.len()),
            _ => (0, 0),
        }
    }

    /// Follows the path as far as it leads to a stored value. Returns that value and the remaining
    /// steps.
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

    /// Reads the value.
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

    /// Assigns a value.
    pub(super) fn write(&mut self, place: &Place, value: Value) {
        let root = &mut self.variables[place.root.index()];
        put(root, &place.steps, value);
    }

    /// Modifies the value in place, if it exists.
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
            // At most one header of a union is valid. Invalidating one invalidates the whole union
            // (section 8.20).
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
