//! The kernel's network emulator, tc-netem(8), as an interface's root qdisc.

use std::time::Duration;

use model::topology::{Impairments, Loss, Share};

use crate::attribute::Writer;
use crate::qdisc::{HANDLE, TC_H_ROOT, header};
use crate::socket::{CREATE, REPLACE};
use crate::{Handle, LOOPBACK, Namespace, Request, Result};

// linux/pkt_sched.h, linux/rtnetlink.h
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_NETEM_DELAY_DIST: u16 = 2;
const TCA_NETEM_REORDER: u16 = 3;
const TCA_NETEM_CORRUPT: u16 = 4;
const TCA_NETEM_LOSS: u16 = 5;
const TCA_NETEM_LATENCY64: u16 = 10;
const TCA_NETEM_JITTER64: u16 = 11;
const NETEM_LOSS_GE: u16 = 2;
/// Packets that netem holds at most. Packets in flight count, so the limit is too large to act as a
/// queue limit.
const MAX_PACKETS: u32 = 1_000_000;

/// Table units per unit of jitter in [`replace_netem`] (NETEM_DIST_SCALE).
pub const NETEM_SPREAD: f64 = 8192.0;

/// Installs netem in a namespace of its own. Returns the kernel's error if it has no netem.
pub fn try_netem() -> Result<()> {
    let namespace = Namespace::unnamed()?;
    let request = replace_netem(LOOPBACK, &Impairments::default(), &[]);
    Handle::within(&namespace)?.request("netem", request)
}

/// Replaces the interface's root qdisc with netem, which applies all of `impairments` except
/// traces, filters, jitter files and queue disciplines. Each packet's delay is drawn from `table`:
/// offsets from the mean in units of jitter / [`NETEM_SPREAD`], at most 16,384 entries. An empty
/// table gives a uniform distribution within the jitter.
pub fn replace_netem(interface: u32, impairments: &Impairments, table: &[i16]) -> Request {
    let Impairments { delay, jitter, loss, reorder, duplicate, corrupt, .. } = impairments;
    let independent = match loss {
        Loss::Independent(share) => *share,
        Loss::GilbertElliott { .. } => Share::NONE,
    };
    // struct tc_netem_qopt: latency and jitter (for older kernels), limit, loss, gap, duplicate
    let gap = u32::from(*reorder > Share::NONE);
    let words = [0, MAX_PACKETS, chance(independent), gap, chance(*duplicate), 0];
    let mut options = Writer(words.iter().flat_map(|word| word.to_ne_bytes()).collect());
    options.put(TCA_NETEM_LATENCY64, &nanoseconds(*delay));
    if let Some(jitter) = jitter {
        options.put(TCA_NETEM_JITTER64, &nanoseconds(jitter.spread));
        if !table.is_empty() {
            let bytes: Vec<u8> = table.iter().flat_map(|entry| entry.to_ne_bytes()).collect();
            options.put(TCA_NETEM_DELAY_DIST, &bytes);
        }
    }
    // struct tc_netem_reorder, tc_netem_corrupt: probability, correlation (none)
    for (kind, share) in [(TCA_NETEM_REORDER, reorder), (TCA_NETEM_CORRUPT, corrupt)] {
        if *share > Share::NONE {
            options.put(kind, &[chance(*share).to_ne_bytes(), [0; 4]].concat());
        }
    }
    if let Loss::GilbertElliott { p, r, bad, good } = loss {
        // struct tc_netem_gemodel: p, r, h (delivery in the bad state), k1 (loss in the good state)
        let model = [chance(*p), chance(*r), !chance(*bad), chance(*good)];
        let bytes: Vec<u8> = model.iter().flat_map(|word| word.to_ne_bytes()).collect();
        options.nest(TCA_NETEM_LOSS, |models| {
            models.put(NETEM_LOSS_GE, &bytes);
        });
    }
    let mut message = Writer(header(interface, HANDLE, TC_H_ROOT));
    message.put_text(TCA_KIND, "netem").put(TCA_OPTIONS, &options.0);
    Request::new(libc::RTM_NEWQDISC, CREATE | REPLACE, message.0)
}

/// The probability, scaled to 32 bits.
fn chance(share: Share) -> u32 {
    (share.part() * f64::from(u32::MAX)).round() as u32
}

fn nanoseconds(time: Duration) -> [u8; 8] {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX).to_ne_bytes()
}

#[cfg(test)]
mod tests {
    use model::topology::{Jitter, Shape};
    use testkit::feature::NETEM;

    use super::*;
    use crate::testing::{in_namespace, output, veth};
    use crate::{Handle, Tbf, replace_tbf_below};

    #[test]
    fn root_netem_settings_match_the_output_of_tc() {
        in_namespace(|| {
            let mut handle = Handle::new().unwrap();
            let [interface, _] = veth(&mut handle);
            let share = |percent| Share::from_percent(percent).unwrap();
            let jitter = Jitter { spread: Duration::from_millis(2), shape: Shape::Normal };
            let mut wanted = Impairments {
                delay: Duration::from_millis(20),
                jitter: Some(jitter),
                loss: Loss::Independent(share(10.0)),
                reorder: share(3.0),
                duplicate: share(2.0),
                corrupt: share(0.5),
                ..Impairments::default()
            };
            let set = |wanted: &Impairments| replace_netem(interface, wanted, &[-8192, 0, 8192]);
            if let Err(why) = handle.request("netem", set(&wanted)) {
                return NETEM.is_missing(why);
            }
            let show = || output("tc", "qdisc show dev a");
            for part in [
                "qdisc netem 1: root",
                "delay 20ms  2ms",
                "loss 10%",
                "duplicate 2%",
                "reorder 3%",
                "corrupt 0.5%",
            ] {
                assert!(show().contains(part), "{part}: {}", show());
            }
            let (p, r, bad, good) = (share(1.0), share(20.0), share(90.0), share(0.1));
            wanted.loss = Loss::GilbertElliott { p, r, bad, good };
            handle.request("netem", set(&wanted)).unwrap();
            let model = "loss gemodel p 1% r 20% 1-h 90% 1-k 0.1%";
            assert!(show().contains(model), "{}", show());

            let rate = "10mbit".parse().unwrap();
            let below = replace_tbf_below(interface, &Tbf::new(rate, 1500, 30_000));
            handle.request("tbf", below).unwrap();
            assert!(show().contains("qdisc tbf 2: parent 1:1"), "{}", show());
            let stats = handle.qdisc_stats().unwrap();
            let stats = stats.iter().find(|stats| stats.interface == interface).unwrap();
            assert_eq!(stats.rate, Some(rate));
        });
    }
}
