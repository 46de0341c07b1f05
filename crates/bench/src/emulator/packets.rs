//! Small packets: packets per second through virtual routers, and CPU time per packet.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::hosts::Hosts;
use super::load::Load;
use super::outside::{B, By, Outside, chain};
use super::port::datagrams;
use crate::{Better, Context, Row, row};

const PORT: u16 = 7000;

pub(super) fn bench(context: &Context<'_>, quick: bool) -> Result<Vec<Row>> {
    let (runs, seconds) = if quick { (1, 0.5) } else { (5, 3.0) };
    let outside = Outside::new(By::Frames)?;
    let (mut rows, cancel) = (Vec::new(), &context.cancel);
    let chains: &[usize] = if quick { &[1, 60] } else { &[1, 10, 60] };
    for &routers in chains {
        let lab = Hosts::up(context, &chain(routers, By::Frames), Some(&outside.machine))?;
        let to = IpAddr::from(B);
        let _listener = outside.b.run(|| UdpSocket::bind((to, PORT)))??;
        // Warm up: address resolution.
        let warm = Load { to: SocketAddr::new(to, PORT), frame: 64, rate: Some(100.0), count: 20 };
        warm.send(&outside.a, &context.cancel)?;
        let (mut rates, mut costs) = (Vec::new(), Vec::new());
        let name = if routers == 1 { "1-router".into() } else { format!("{routers}-routers") };
        for run in 1..=runs {
            (context.say)(&format!("64 bytes through {routers} routers, run {run} of {runs}"));
            let load = Load { rate: None, count: (seconds * 1e6) as u64, ..warm };
            let (before, after, taken) = std::thread::scope(|scope| {
                let sending = scope.spawn(|| load.send(&outside.a, cancel));
                crate::wait_for(Duration::from_millis(200));
                let (before, used) = (datagrams(&outside.b)?, lab.emulator_seconds()?);
                crate::wait_for(Duration::from_secs_f64(seconds));
                let (after, now) = (datagrams(&outside.b)?, lab.emulator_seconds()?);
                sending.join().expect("sending does not panic").context("the load")?;
                anyhow::Ok((before, after, now - used))
            })?;
            rates.push(after.rate_since(before));
            costs.push(taken * 1e9 / after.since(before).arrived.max(1) as f64);
        }
        rows.push(row(&format!("pps64/{name}"), "packets/s", &rates, Better::More, None));
        rows.push(row(&format!("cpu64/{name}"), "ns/packet", &costs, Better::Less, None));
    }
    Ok(rows)
}
