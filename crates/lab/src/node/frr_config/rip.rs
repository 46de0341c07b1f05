//! RIP version 2 and RIPng.

use std::fmt::{Result, Write};

use model::topology::Routing;

use super::{Router, is_passive};

pub(super) fn process(text: &mut String, router: &Router<'_>) -> Result {
    let timers = &router.topology.timers.rip;
    let [update, timeout, garbage] =
        [timers.update, timers.timeout, timers.garbage].map(|timer| timer.as_secs());
    let [ipv4, ipv6] = router.families(Routing::Rip);
    for (name, _) in [("rip", ipv4), ("ripng", ipv6)].iter().filter(|f| f.1) {
        writeln!(text, "router {name}")?;
        if *name == "rip" {
            writeln!(text, " version 2")?;
        }
        let spoken = router.node.interfaces.iter().filter(|interface| !is_passive(interface));
        for interface in spoken {
            writeln!(text, " network {}", interface.name)?;
        }
        writeln!(text, " timers basic {update} {timeout} {garbage}")?;
        writeln!(text, " allow-ecmp\n redistribute connected")?;
        if *name == "ripng" && router.node.locator.is_some() {
            writeln!(text, " redistribute static")?;
        }
        writeln!(text, "exit")?;
    }
    Ok(())
}
