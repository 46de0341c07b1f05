//! Normal form of equivalent policies.

use ipnet::IpNet;
use model::{Flow, Policy};
use srv6::SegmentList;

/// Returns the form in which [`crate::Headend::installed`] returns a policy: prefixes without host
/// bits, flows sorted and without duplicates, no list for a family without flows, no source prefix
/// that matches every source.
pub fn normalized(policy: &Policy) -> Policy {
    let mut flows: Vec<Flow> = policy
        .flows
        .iter()
        .map(|flow| Flow {
            src: flow.src.filter(|src| src.prefix_len() > 0).map(|src| src.trunc()),
            dst: flow.dst.trunc(),
            ..*flow
        })
        .collect();
    flows.sort_by_key(order);
    flows.dedup();
    let list = |ipv6: bool, list: &SegmentList| {
        let used = flows.iter().any(|flow| flow.is_ipv6() == ipv6);
        if used { list.clone() } else { SegmentList::default() }
    };
    let (ipv4, ipv6) = (list(false, &policy.ipv4), list(true, &policy.ipv6));
    let closed = policy.closed && !flows.is_empty();
    Policy { color: policy.color, flows, ipv4, ipv6, closed }
}

/// Sort key of a flow: IPv4 first, then by destination.
type Order = (IpNet, Option<IpNet>, Option<u8>, [Option<(u16, u16)>; 2], Option<u8>);

fn order(flow: &Flow) -> Order {
    (
        flow.dst,
        flow.src,
        flow.protocol.map(|protocol| protocol.number(flow.is_ipv6())),
        [flow.src_ports, flow.dst_ports].map(|ports| ports.map(|ports| (ports.first, ports.last))),
        flow.dscp.map(|dscp| dscp.value()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Color;
    use srv6::Sid;

    #[test]
    fn equal_policies_have_one_normal_form() {
        let flow = |dst: &str, src: Option<&str>| Flow {
            src: src.map(|src| src.parse().unwrap()),
            dst: dst.parse().unwrap(),
            protocol: None,
            src_ports: None,
            dst_ports: None,
            dscp: None,
        };
        let list = SegmentList(vec![Sid("fd00::1".parse().unwrap())]);
        let policy = |flows: Vec<Flow>, ipv6: &SegmentList| Policy {
            color: Color(Color::FIRST),
            flows,
            ipv4: list.clone(),
            ipv6: ipv6.clone(),
            closed: false,
        };
        let messy = policy(
            vec![
                flow("10.0.2.1/24", Some("0.0.0.0/0")),
                flow("10.0.1.0/24", None),
                flow("10.0.2.0/24", None),
            ],
            &list,
        );
        let clean = policy(
            vec![flow("10.0.1.0/24", None), flow("10.0.2.0/24", None)],
            &SegmentList::default(),
        );
        assert_eq!(normalized(&messy), clean);
        assert_eq!(normalized(&clean), clean);
    }
}
