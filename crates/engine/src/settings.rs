//! The topology file's values as the emulator's.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use emulator::queue::{CoDel, Discipline, Limit, Pie, Red};
use emulator::{BadTrace, Chance, Filter, Nanos, Opportunities, Rate, Settings, Shape};
use model::Bandwidth;
use model::topology::{self, Impairments, Interface, Queue, Share};

/// What one direction of a link does, as the topology file says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    /// Its rate.
    pub rate: Option<Bandwidth>,
    /// What waits in front of that.
    pub queue: Queue,
    /// The rest.
    pub impairments: Impairments,
    /// The largest IP packet of its devices.
    pub mtu: u16,
    /// Whether it is cut.
    pub is_down: bool,
}

/// Why a trace cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be read.
    #[error("cannot read the trace {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// There is no trace in it.
    #[error("the trace {}: {why}", path.display())]
    Bad {
        /// The file.
        path: PathBuf,
        /// Why.
        why: BadTrace,
    },
}

impl From<&Interface> for Side {
    fn from(interface: &Interface) -> Self {
        Self {
            rate: interface.rate,
            queue: interface.queue,
            impairments: interface.impairments.clone(),
            mtu: interface.mtu,
            is_down: false,
        }
    }
}

/// Bytes of an Ethernet header.
const ETHERNET: u32 = 14;

impl Side {
    /// The same as the emulator has it. `base`: the folder that traces' files are in.
    pub fn settings(&self, base: &Path) -> Result<Settings, TraceError> {
        let Impairments { delay, jitter, loss, reorder, duplicate, corrupt, .. } = self.impairments;
        let rate = self.rate(base)?;
        let limit = self.limit(&rate);
        Ok(Settings {
            impairments: emulator::Impairments {
                delay: nanos(delay),
                jitter: jitter.map(|jitter| emulator::Jitter {
                    spread: nanos(jitter.spread),
                    shape: match jitter.shape {
                        topology::Shape::Normal => Shape::Normal,
                        topology::Shape::Pareto => Shape::Pareto,
                        topology::Shape::Uniform => Shape::Uniform,
                    },
                }),
                loss: match loss {
                    topology::Loss::Independent(share) => {
                        emulator::Loss::Independent(chance(share))
                    }
                    topology::Loss::GilbertElliott { p, r, bad, good } => {
                        let [p, r, bad, good] = [p, r, bad, good].map(chance);
                        emulator::Loss::GilbertElliott { p, r, bad, good }
                    }
                },
                reorder: chance(reorder),
                duplicate: chance(duplicate),
                corrupt: chance(corrupt),
            },
            rate,
            discipline: self.discipline(limit),
            limit,
            is_down: self.is_down,
        })
    }

    /// The packets that do not pass.
    pub(crate) fn filters(&self) -> Vec<Filter> {
        let each = |filter: &topology::Filter| {
            // ICMP has a number in each family: two filters.
            let numbers = filter.protocol.map(|p| [p.number(false), p.number(true)]);
            let mut numbers = numbers.map_or(vec![None], |both| both.map(Some).to_vec());
            numbers.dedup();
            let ports = filter.ports.map(|range| range.first..=range.last);
            let (from, to) = (filter.from, filter.to);
            numbers
                .into_iter()
                .map(move |protocol| Filter { from, to, protocol, ports: ports.clone() })
                .collect::<Vec<_>>()
        };
        self.impairments.filters.iter().flat_map(each).collect()
    }

    fn rate(&self, base: &Path) -> Result<Rate, TraceError> {
        let Some(file) = &self.impairments.trace else {
            return Ok(self.rate.map_or(Rate::Unlimited, |rate| Rate::Constant(rate.bps())));
        };
        let path = base.join(file);
        let text = std::fs::read_to_string(&path)
            .map_err(|source| TraceError::Read { path: path.clone(), source })?;
        // An opportunity is for a full packet.
        let trace = Opportunities::parse(&text, u32::from(self.mtu) + ETHERNET)
            .map_err(|why| TraceError::Bad { path, why })?;
        Ok(Rate::Recorded(Arc::new(trace)))
    }

    fn limit(&self, rate: &Rate) -> Limit {
        let bps = match rate {
            Rate::Unlimited => 0,
            Rate::Constant(bps) => *bps,
            Rate::Recorded(trace) => trace.mean_bps(),
        };
        match self.queue {
            Queue::Packets(packets) => Limit::Packets(packets),
            Queue::Bytes(bytes) => Limit::Bytes(bytes.into()),
            Queue::Auto => Limit::Bytes(Queue::auto_bytes(bps)),
        }
    }

    fn discipline(&self, limit: Limit) -> Discipline {
        match self.impairments.discipline {
            topology::Discipline::DropTail => Discipline::DropTail,
            topology::Discipline::Codel => {
                let packet = u32::from(self.mtu) + ETHERNET;
                Discipline::CoDel(CoDel { packet, ..CoDel::default() })
            }
            topology::Discipline::Pie => Discipline::Pie(Pie::default()),
            topology::Discipline::Red => {
                let packet = u64::from(self.mtu) + u64::from(ETHERNET);
                Discipline::Red(Red::for_limit(match limit {
                    Limit::Packets(packets) => u64::from(packets) * packet,
                    Limit::Bytes(bytes) => bytes,
                }))
            }
        }
    }
}

fn nanos(time: Duration) -> Nanos {
    // The file's are a hundred years at most.
    u64::try_from(time.as_nanos()).unwrap_or(Nanos::MAX)
}

fn chance(share: Share) -> Chance {
    Chance::of(share.part())
}
