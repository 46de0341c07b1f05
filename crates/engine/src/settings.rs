//! The topology file's values as the emulator's.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use emulator::queue::{CoDel, Discipline, Limit, Pie, Red};
use emulator::{
    BadTrace, Chance, Course, Filter, Moment, Nanos, Opportunities, Rate, Settings, Shape,
};
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
    #[error("cannot read {}", path.display())]
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
    /// A file has a line that means nothing.
    #[error("{}: {why}", path.display())]
    BadLine {
        /// The file.
        path: PathBuf,
        /// Which, and why.
        why: topology::BadLine,
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
    /// One that does nothing.
    pub(crate) fn plain() -> Self {
        Self {
            rate: None,
            queue: Queue::Auto,
            impairments: Impairments::default(),
            mtu: u16::MAX,
            is_down: false,
        }
    }

    /// The same as the emulator has it. `base`: the folder that traces' files are in.
    pub fn settings(&self, base: &Path) -> Result<Settings, TraceError> {
        let Impairments { delay, jitter, loss, reorder, duplicate, corrupt, .. } = self.impairments;
        let course = self.course(base)?;
        let rate = self.rate(base)?;
        let limit = self.limit(&rate, course.as_ref());
        let samples = self.samples(base)?;
        Ok(Settings {
            impairments: emulator::Impairments {
                delay: nanos(delay),
                jitter: samples.or(jitter.map(|jitter| emulator::Jitter {
                    spread: nanos(jitter.spread),
                    shape: match jitter.shape {
                        topology::Shape::Normal => Shape::Normal,
                        topology::Shape::Pareto => Shape::Pareto,
                        topology::Shape::Uniform => Shape::Uniform,
                    },
                })),
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
            ecn: self.impairments.ecn,
            limit,
            course,
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
        let file = self.impairments.trace.as_ref().filter(|file| !topology::is_course(file));
        let Some(file) = file else {
            return Ok(self.rate.map_or(Rate::Unlimited, |rate| Rate::Constant(rate.bps())));
        };
        let (path, text) = read(base, file)?;
        // An opportunity is for a full packet.
        let trace = Opportunities::parse(&text, u32::from(self.mtu) + ETHERNET)
            .map_err(|why| TraceError::Bad { path, why })?;
        Ok(Rate::Recorded(Arc::new(trace)))
    }

    /// What it does over time.
    fn course(&self, base: &Path) -> Result<Option<Course>, TraceError> {
        let file = self.impairments.trace.as_ref().filter(|file| topology::is_course(file));
        let Some(file) = file else { return Ok(None) };
        let (path, text) = read(base, file)?;
        let found =
            topology::Course::parse(&text).map_err(|why| TraceError::BadLine { path, why })?;
        let moment = |moment: topology::Moment| Moment {
            at: nanos(moment.at),
            delay: moment.delay.map(nanos),
            loss: moment.loss.map(|share| emulator::Loss::Independent(chance(share))),
            rate: moment.rate,
        };
        let moments = found.moments.into_iter().map(moment).collect();
        Ok(Some(Course::new(moments, found.period.map(nanos))))
    }

    /// The jitter of a file.
    fn samples(&self, base: &Path) -> Result<Option<emulator::Jitter>, TraceError> {
        let Some(file) = &self.impairments.samples else { return Ok(None) };
        let (path, text) = read(base, file)?;
        let samples = topology::samples(&text).map_err(|why| TraceError::BadLine { path, why })?;
        let quantiles = samples.into_iter().map(|sample| nanos(sample) as f64).collect();
        Ok(Some(emulator::Jitter { spread: 1, shape: Shape::Quantiles(quantiles) }))
    }

    fn limit(&self, rate: &Rate, course: Option<&Course>) -> Limit {
        let most = course.and_then(Course::most_bps);
        let bps = match rate {
            _ if most.is_some() => most.unwrap_or(0),
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

fn read(base: &Path, file: &str) -> Result<(PathBuf, String), TraceError> {
    let path = base.join(file);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok((path, text)),
        Err(source) => Err(TraceError::Read { path, source }),
    }
}

pub(crate) fn nanos(time: Duration) -> Nanos {
    // The file's are a hundred years at most.
    u64::try_from(time.as_nanos()).unwrap_or(Nanos::MAX)
}

fn chance(share: Share) -> Chance {
    Chance::of(share.part())
}
