//! Assignments and decisions of the controller.

use model::{Assignment, Decision, Placement, Policy, Step};

use super::{ConvertError, sids_to_text};
use crate::v1;

impl From<&Assignment> for v1::Assign {
    fn from(assignment: &Assignment) -> Self {
        let placement = assignment.placement.as_ref().map(|placement| v1::Placement {
            start: placement.start.clone(),
            steps: placement.steps.iter().map(Into::into).collect(),
            reserved_bps: placement.reserved_bps,
        });
        Self {
            application: Some((&assignment.application).into()),
            policy: Some((&assignment.policy).into()),
            placement,
            serial: 0,
        }
    }
}

impl From<&Step> for v1::Step {
    fn from(step: &Step) -> Self {
        Self { interface: step.interface.clone(), node: step.node.clone() }
    }
}

impl TryFrom<v1::Assign> for Assignment {
    type Error = ConvertError;

    fn try_from(assign: v1::Assign) -> Result<Self, ConvertError> {
        let policy: Policy = assign.policy.ok_or(ConvertError::Missing("policy"))?.try_into()?;
        let step = |step: v1::Step| Step { interface: step.interface, node: step.node };
        let placement = assign.placement.map(|placement| Placement {
            start: placement.start,
            steps: placement.steps.into_iter().map(step).collect(),
            ipv4: policy.ipv4.clone(),
            ipv6: policy.ipv6.clone(),
            reserved_bps: placement.reserved_bps,
        });
        let application = assign.application.ok_or(ConvertError::Missing("application"))?;
        Ok(Self { application: application.try_into()?, policy, placement })
    }
}

impl From<Decision> for v1::Decision {
    fn from(decision: Decision) -> Self {
        Self {
            application: decision.application,
            cause: decision.cause,
            before: decision.before,
            after: decision.after,
            ipv4_segments: sids_to_text(&decision.ipv4),
            ipv6_segments: sids_to_text(&decision.ipv6),
            sampled_at_ns: decision.sampled_at_ns,
            received_at_ns: decision.received_at_ns,
            decided_at_ns: decision.decided_at_ns,
            sent_at_ns: decision.sent_at_ns,
            installed_at_ns: decision.installed_at_ns,
        }
    }
}
