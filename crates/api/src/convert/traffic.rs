//! Cross traffic of emulated links.

use std::time::Duration;

use model::Bandwidth;
use model::topology::{Family, Pattern, Traffic};

use super::{ConvertError, invalid};
use crate::v1;

impl From<Traffic> for v1::CrossTraffic {
    fn from(traffic: Traffic) -> Self {
        use v1::cross_traffic::Pattern as Sent;
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let (pattern, on_ns, off_ns) = match traffic.pattern {
            Pattern::Constant => (Sent::Constant, 0, 0),
            Pattern::Poisson => (Sent::Poisson, 0, 0),
            Pattern::OnOff { on, off } => (Sent::OnOff, nanos(on), nanos(off)),
        };
        Self {
            rate_bps: traffic.rate.bps(),
            duration_ns: nanos(traffic.duration),
            pattern: pattern.into(),
            on_ns,
            off_ns,
            size: traffic.size,
            ipv6: traffic.family == Family::Ipv6,
        }
    }
}

impl TryFrom<v1::CrossTraffic> for Traffic {
    type Error = ConvertError;

    fn try_from(traffic: v1::CrossTraffic) -> Result<Self, ConvertError> {
        use v1::cross_traffic::Pattern as Sent;
        let pattern = match traffic.pattern() {
            Sent::Unspecified => return Err(invalid("pattern", traffic.pattern)),
            Sent::Constant => Pattern::Constant,
            Sent::Poisson => Pattern::Poisson,
            Sent::OnOff => Pattern::OnOff {
                on: Duration::from_nanos(traffic.on_ns),
                off: Duration::from_nanos(traffic.off_ns),
            },
        };
        Ok(Self {
            rate: Bandwidth::from_bps(traffic.rate_bps),
            duration: Duration::from_nanos(traffic.duration_ns),
            pattern,
            size: traffic.size,
            family: if traffic.ipv6 { Family::Ipv6 } else { Family::Ipv4 },
        })
    }
}
