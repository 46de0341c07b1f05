//! Priorities of the policy rules that the data plane installs.

/// Priority of the rules: after those of VRFs (1000), before those of applications (7000) and of
/// the main table.
pub(in crate::forwarding) const PRIORITY: u32 = 6000;
