//! A second instance of the program, for runs on single packets.

use std::mem::MaybeUninit;
use std::os::fd::AsFd;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};

use super::maps::mapped;
use super::program::PROGRAM;
use super::sizes::set_sizes;
use crate::skeleton::Srv6SkelBuilder;
use crate::{Error, Replay, Srv6};

impl Srv6 {
    /// Loads the program a second time on the same tables, but with separate counters and caches:
    /// its runs are not counted, and packets do not see its state.
    pub fn replay(&self) -> Result<Replay, Error> {
        let failed = |source| Error::load(PROGRAM, source);
        let cpus = libbpf_rs::num_possible_cpus().map_err(failed)? as u32;
        let mut object = Box::new(MaybeUninit::uninit());
        let mut open = Srv6SkelBuilder::default().open(&mut object).map_err(failed)?;
        set_sizes(&mut open.maps, self.sizes, cpus).map_err(failed)?;
        open.progs.function_again.set_autoload(false);
        open.progs.dropped.set_autoload(false);
        open.progs.proxy_in.set_autoload(false);
        open.progs.proxy_back.set_autoload(false);
        // Count every packet in its counter, not in the SID cache.
        if let Some(settings) = open.maps.rodata_data.as_deref_mut() {
            settings.counts_found = 0;
        }
        let (new, shared) = (&mut open.maps, &self.skel.maps);
        for (new, shared) in [
            (&mut new.control, &shared.control),
            (&mut new.ports, &shared.ports),
            (&mut new.devices, &shared.devices),
            (&mut new.stacked_links, &shared.stacked_links),
            (&mut new.attachments, &shared.attachments),
            (&mut new.vlan_slots, &shared.vlan_slots),
            (&mut new.tenants, &shared.tenants),
            (&mut new.sources, &shared.sources),
            (&mut new.prefixes4, &shared.prefixes4),
            (&mut new.prefix4_index, &shared.prefix4_index),
            (&mut new.prefixes6, &shared.prefixes6),
            (&mut new.prefix6_index, &shared.prefix6_index),
            (&mut new.policies, &shared.policies),
            (&mut new.spreads, &shared.spreads),
            (&mut new.lists, &shared.lists),
            (&mut new.sids, &shared.sids),
            (&mut new.sid_index, &shared.sid_index),
            (&mut new.function_devices, &shared.function_devices),
            (&mut new.proxies, &shared.proxies),
            (&mut new.function_links, &shared.function_links),
        ] {
            new.reuse_fd(shared.as_fd()).map_err(failed)?;
        }
        let skel = open.load().map_err(failed)?;
        let program = skel.progs.srv6.as_fd().try_clone_to_owned();
        let counts = mapped("counts", &skel.maps.counts)?;
        let program = program.map_err(|source| Error::Run { source: source.into() })?;
        Ok(Replay::new(program, counts, self.sizes.counters()))
    }
}
