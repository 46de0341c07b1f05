//! Answers to changes of the data plane.

use api::v1;
use dataplane::forwarding::Difference;

use crate::reconciler::Reconciler;

/// Builds the response that lists the changes.
pub(crate) fn response(
    difference: &Difference,
    reconciler: &Reconciler,
) -> v1::ApplyDataplaneResponse {
    let changes = difference.changes.iter().map(ToString::to_string).collect();
    let (more, summary) = (difference.more() as u64, difference.summary());
    v1::ApplyDataplaneResponse { changes, more, summary, warnings: reconciler.warned().to_vec() }
}
