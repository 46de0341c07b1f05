//! Side effects of evaluation, and its order (P4_16 specification, section 8.1).

use crate::ir::{Expression, ExpressionKind};

/// Returns true if evaluating the l-value twice is not safe, because it contains a call.
pub(super) fn has_call(place: &Expression) -> bool {
    use ExpressionKind as K;
    match &place.kind {
        K::Element(of, index) => has_call(of) || !is_plain(index),
        K::Field(of, _) | K::Slice(of, ..) | K::Next(of) | K::Last(of) => has_call(of),
        _ => false,
    }
}

/// Returns true if evaluating the value has no side effects and does not depend on earlier
/// evaluations.
pub(super) fn is_plain(value: &Expression) -> bool {
    use ExpressionKind as K;
    match &value.kind {
        K::Constant(_) | K::Variable(_) | K::ConstructorParameter(_) => true,
        K::Field(of, _) | K::Slice(of, ..) | K::Cast(of) | K::Unary(_, of) | K::LastIndex(of) => {
            is_plain(of)
        }
        K::Element(one, other) | K::Binary(_, one, other) => is_plain(one) && is_plain(other),
        _ => false,
    }
}

/// Returns true if the evaluation of one value may have side effects on another.
pub(super) fn order_matters(values: &[Expression]) -> bool {
    let open: Vec<_> = values.iter().filter(|one| one.constant().is_none()).collect();
    open.len() > 1 && !open.into_iter().all(is_plain)
}
