//! Timers of routing protocols: values from the file, and defaults.

use std::time::Duration;

use document::{Place, Time, steps};
use model::topology::{BgpTimers, IsisTimers, OspfTimers, RipTimers, Timers};

use super::file::{Bgp, File, Isis, Ospf, Rip};

/// Maximum of a 16-bit field in seconds.
const MAX_TIMER: Duration = Duration::from_secs(65_535);
/// Minimum that FRR accepts for both families.
const RIP_LEAST: Duration = Duration::from_secs(5);

/// Resolves the timers of every protocol.
pub(crate) fn timers(place: &mut Place<'_>, file: &File) -> Timers {
    Timers {
        ospf: ospf(place, file.ospf.as_ref()),
        isis: isis(place, file.isis.as_ref()),
        rip: rip(place, file.rip.as_ref()),
        bgp: bgp(place, file.bgp.as_ref()),
    }
}

fn given(time: Option<Time>, default: Duration) -> Duration {
    time.map_or(default, |time| time.0)
}

/// Checks that a timer is a number of whole seconds in a range.
fn whole_seconds(
    place: &mut Place<'_>,
    [protocol, key]: [&str; 2],
    name: &str,
    timer: Duration,
    [least, most]: [u64; 2],
) {
    if timer.subsec_nanos() != 0 || !(least..=most).contains(&timer.as_secs()) {
        let help = format!("write whole seconds, from {least}s to {most}s");
        place.value(steps![protocol, key], format!("{name} counts in whole seconds"), &help);
    }
}

fn longer(place: &mut Place<'_>, [protocol, key]: [&str; 2], than: &str, help: &str) {
    let message = format!("`{key}` must be longer than `{than}`");
    place.value(steps![protocol, key], message, help);
}

fn ospf(place: &mut Place<'_>, text: Option<&Ospf>) -> OspfTimers {
    let hello = given(text.and_then(|text| text.hello), Duration::from_secs(1));
    let dead = given(text.and_then(|text| text.dead), (hello * 4).min(MAX_TIMER));
    for (key, timer) in [("hello", hello), ("dead", dead)] {
        // The fields have 16 bits in OSPFv3's Hello packet (RFC 5340 appendix A.3.2).
        whole_seconds(place, ["ospf", key], "OSPF", timer, [1, 65_535]);
    }
    if dead <= hello {
        longer(place, ["ospf", "dead"], "hello", "write a few times `hello`, such as 4s for 1s");
    }
    OspfTimers { hello, dead, bfd: text.and_then(|text| text.bfd).unwrap_or(false) }
}

fn isis(place: &mut Place<'_>, text: Option<&Isis>) -> IsisTimers {
    let hello = given(text.and_then(|text| text.hello), Duration::from_secs(1));
    let hold = given(text.and_then(|text| text.hold), hello * 4);
    // FRR's range. The packet contains the product with the multiplier, in 16 bits.
    whole_seconds(place, ["isis", "hello"], "IS-IS", hello, [1, 600]);
    let times = hold.as_nanos() / hello.as_nanos().max(1);
    let fits = hold == hello * u32::try_from(times).unwrap_or(0);
    if !fits || !(2..=100).contains(&times) {
        let message = "`hold` must be 2 to 100 times `hello`";
        place.value(steps!["isis", "hold"], message, "write a multiple, such as 4s for 1s");
    }
    IsisTimers { hello, hold, bfd: text.and_then(|text| text.bfd).unwrap_or(false) }
}

fn rip(place: &mut Place<'_>, text: Option<&Rip>) -> RipTimers {
    let update = given(text.and_then(|text| text.update), Duration::from_secs(5));
    // Same proportions as in RFC 2453 section 3.8: 30 s, 180 s, 120 s.
    let within = |timer: Duration| timer.clamp(RIP_LEAST, MAX_TIMER);
    let timeout = given(text.and_then(|text| text.timeout), within(update * 6));
    let garbage = given(text.and_then(|text| text.garbage), within(update * 4));
    for (key, timer) in [("update", update), ("timeout", timeout), ("garbage", garbage)] {
        whole_seconds(
            place,
            ["rip", key],
            "RIP",
            timer,
            [RIP_LEAST.as_secs(), MAX_TIMER.as_secs()],
        );
    }
    if timeout <= update {
        longer(
            place,
            ["rip", "timeout"],
            "update",
            "write a few times `update`, such as 30s for 5s",
        );
    }
    RipTimers { update, timeout, garbage }
}

fn bgp(place: &mut Place<'_>, text: Option<&Bgp>) -> BgpTimers {
    let keepalive = given(text.and_then(|text| text.keepalive), Duration::from_secs(3));
    // RFC 4271 section 10: the keepalive interval is a third of the hold time.
    let hold = given(text.and_then(|text| text.hold), keepalive * 3);
    whole_seconds(place, ["bgp", "keepalive"], "BGP", keepalive, [1, 21_845]);
    // RFC 4271 section 4.2: at least three seconds.
    whole_seconds(place, ["bgp", "hold"], "BGP", hold, [3, 65_535]);
    if hold <= keepalive {
        let help = "write a few times `keepalive`, such as 9s for 3s";
        longer(place, ["bgp", "hold"], "keepalive", help);
    }
    BgpTimers { keepalive, hold, bfd: text.and_then(|text| text.bfd).unwrap_or(true) }
}
