//! OSPFv2 and OSPFv3 with one area.

use std::fmt::{Result, Write};

use model::topology::{Interface, Routing};

use super::{Router, is_passive};

pub(super) fn loopback(text: &mut String, router: &Router<'_>) -> Result {
    let [ipv4, ipv6] = router.families(Routing::Ospf);
    if ipv4 {
        writeln!(text, " ip ospf area 0")?;
    }
    if ipv6 {
        writeln!(text, " ipv6 ospf6 area 0")?;
    }
    Ok(())
}

pub(super) fn interface(text: &mut String, router: &Router<'_>, interface: &Interface) -> Result {
    let [ipv4, ipv6] = router.families(Routing::Ospf);
    let timers = &router.topology.timers.ospf;
    let (hello, dead) = (timers.hello.as_secs(), timers.dead.as_secs());
    for (family, _) in [("ip ospf", ipv4), ("ipv6 ospf6", ipv6)].iter().filter(|f| f.1) {
        writeln!(text, " {family} area 0")?;
        // Explicit cost: FRR would derive it from the speed that the device reports.
        writeln!(text, " {family} cost {}", interface.cost)?;
        writeln!(text, " {family} hello-interval {hello}")?;
        writeln!(text, " {family} dead-interval {dead}")?;
        if router.is_point_to_point(interface) {
            writeln!(text, " {family} network point-to-point")?;
        }
        if is_passive(interface) {
            writeln!(text, " {family} passive")?;
        } else if timers.bfd {
            writeln!(text, " {family} bfd")?;
        }
    }
    Ok(())
}

pub(super) fn process(text: &mut String, router: &Router<'_>) -> Result {
    let [ipv4, ipv6] = router.families(Routing::Ospf);
    let Some(router_id) = router.node.loopback4 else { return Ok(()) };
    // Compute paths immediately: a lab's network is small, and its user is waiting.
    if ipv4 {
        writeln!(text, "router ospf\n ospf router-id {router_id}")?;
        writeln!(text, " timers throttle spf 0 50 500\n timers throttle lsa all 0")?;
        writeln!(text, " timers lsa min-arrival 0\nexit")?;
    }
    if ipv6 {
        writeln!(text, "router ospf6\n ospf6 router-id {router_id}")?;
        writeln!(text, " timers throttle spf 0 50 500\n timers lsa min-arrival 0")?;
        writeln!(text, " redistribute static\nexit")?;
    }
    Ok(())
}
