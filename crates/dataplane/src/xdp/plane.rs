//! The XDP data plane behind the interfaces that all data planes have.

use std::collections::BTreeMap;
use std::net::IpAddr;

use bpf::attach::Mode;
use bpf::srv6::Sizes;
use bpf::srv6::types::reason;
use bpf::{Count, Drops, Filter, Replayed, Traced};
use ipnet::Ipv6Net;
use model::dataplane::File;

use super::attach::PresentLinks;
use super::functions::{netfilter, proxies};
use super::program::Xdp;
use super::tables::{attachments, proxy_count, rings};
use super::tracing::Tracing;
use crate::forwarding::{Forwarding, TABLE_TENANTS};
use crate::{Counted, Counter, Dataplane, Error, Trace};

impl Dataplane for Xdp {
    fn change_to(&mut self, wanted: Forwarding, file: &File) -> Result<(), Error> {
        self.forget_gone()?;
        let sizes = sizes_of(file, &wanted);
        if !sizes.fit_into(self.tables.program().sizes()) {
            self.grow(sizes)?;
        }
        let changed = self.change_tables(wanted, file);
        let mut functions = Ok(());
        // After a failure, the program of an earlier daemon stays active.
        if changed.is_ok() || !self.ports.is_empty() || self.is_idle() {
            functions = self.tidy_functions();
        }
        changed?;
        // The forwarding state has changed. Steps that fail from here on are repeated by the next
        // change.
        let ports = &self.tables.now().ports;
        let left = self.ports.leave_others(&self.pins, ports);
        let filtered = self.tables.now().filtered();
        let unfiltered = self.filters.leave_others(&filtered, &self.pins, &mut self.handle);
        for done in [left, unfiltered, self.keep_watch(), functions] {
            if let Err(error) = done {
                tracing::warn!(
                    "cleanup after the last change failed, and is repeated with the next one: {error}"
                );
            }
        }
        self.forget_old_trace();
        self.ports.settle(file, &mut self.handle);
        Ok(())
    }

    fn current(&self) -> &Forwarding {
        self.tables.now()
    }

    fn detach(&mut self) -> Result<(), Error> {
        // The tracer is removed with the ports.
        let _ = self.end_trace();
        self.filters.leave_others(&BTreeMap::new(), &self.pins, &mut self.handle)?;
        // The program of a port is detached when its pin and this descriptor are gone.
        self.pins.clear()?;
        self.ports.clear();
        self.watched = false;
        self.tables.change_to(Forwarding::default())?;
        self.tidy_functions()
    }

    fn shut_down(&mut self) -> Result<(), Error> {
        let ended = self.end_trace();
        let mut functions = Ok(());
        if self.is_idle() {
            // No packets are sent there any more.
            functions = netfilter::tidy(&Forwarding::default(), &self.pins, &mut self.handle)
                .and_then(|()| self.backs.end(&self.pins, &mut self.handle));
        }
        self.pins.end().and(functions).and(ended)
    }

    fn count(&self, of: Counter<'_>) -> Option<Count> {
        let of_reason = |counter| Some(self.tables.program().count(counter));
        match of {
            Counter::Sid(sid) => self.tables.count_of_sid(sid),
            Counter::Returned(sid) => self.tables.count_of_returned(sid),
            Counter::Policy(id) => self.tables.count_of_policy(id),
            Counter::Left(number) => of_reason(number),
            Counter::Dropped(number) => of_reason(reason::REASONS.0 + number),
        }
    }

    fn drops(&self, sid: &Ipv6Net) -> Option<Drops> {
        self.tables.drops(sid)
    }

    fn mode(&self, port: u32) -> Option<Mode> {
        self.ports.mode(port)
    }

    fn has_table_lookup(&self) -> bool {
        self.tables.program().has_table_lookup()
    }

    fn heartbeat(&mut self) -> Vec<(u32, IpAddr)> {
        self.tables.program().heartbeat();
        self.backs.detach_unused(&self.pins);
        self.tables.program().take_unresolved()
    }

    fn invalidate_routes(&mut self) {
        self.tables.program().begin_generation();
    }

    fn attached(&mut self) -> Result<BTreeMap<u32, String>, Error> {
        let links = self.handle.links()?;
        let present = PresentLinks::new(&links);
        let mut pinned = self.pins.attached_by_name()?;
        pinned.retain(|(_, attached)| present.carry(attached));
        let earlier = pinned.into_iter().map(|(name, attached)| (attached.interface(), name));
        let mut found: BTreeMap<u32, String> = earlier.collect();
        // Also if the pins are gone.
        let ports = &self.tables.now().ports;
        let own = self.ports.present(&links).into_iter();
        found.extend(own.filter_map(|index| Some((index, ports.get(&index)?.name.clone()))));
        Ok(found)
    }

    fn is_intact(&mut self) -> bool {
        let Ok(links) = self.handle.links() else { return false };
        self.ports.are_on(&self.tables.now().ports, &links)
            && netfilter::are_led(self.tables.now(), &self.guards, &mut self.handle)
            && proxies::are_led(&self.tables, &mut self.handle)
    }

    fn set_exact(&mut self, exact: bool) {
        self.tables.program().set_exact(exact);
    }

    fn set_locked_mtus(&mut self, locked: bool) {
        self.tables.program().set_locked_mtus(locked);
    }

    fn trace(&mut self) -> Option<&mut dyn Trace> {
        Some(self)
    }
}

impl Trace for Xdp {
    fn start(&mut self, filter: Filter, most: u32) -> Result<(), Error> {
        self.end_trace()?;
        let tracing = Tracing::load(self.tables.program(), filter, most, &self.pins.trace())?;
        let done = self.ports.replace_all(tracing.program());
        self.trace = Some(tracing);
        if done.is_err() {
            // The first error is reported.
            let _ = self.end_trace();
        }
        done
    }

    fn packets(&self) -> Result<Option<Vec<Traced>>, Error> {
        self.trace.as_ref().map(Tracing::packets).transpose()
    }

    fn replay(&self, packet: &Traced) -> Result<Option<Replayed>, Error> {
        self.trace.as_ref().map(|trace| trace.replay(packet)).transpose()
    }

    fn forwarding(&self) -> &Forwarding {
        self.tables.now()
    }

    fn counted(&self, counter: u32) -> Option<Counted<'_>> {
        self.tables.counted(counter)
    }

    fn stop(&mut self) -> Result<(), Error> {
        self.end_trace()
    }
}

/// Returns the sizes of the tables for a file.
fn sizes_of(file: &File, forwarding: &Forwarding) -> Sizes {
    let limits = &file.limits;
    // Own addresses on tenants' interfaces take prefixes and policies that are not in the file.
    let room = |limit: u32, needed: usize| match needed as u32 {
        needed if needed > limit => needed.next_power_of_two(),
        _ => limit,
    };
    Sizes {
        sids: limits.sids,
        prefixes: room(limits.prefixes, forwarding.prefixes.len()),
        policies: room(limits.policies, forwarding.policies.len()),
        lists: limits.lists,
        // Each policy may have several lists.
        spreads: limits.policies,
        // A later daemon does not reuse the numbers of its predecessor.
        tenants: 2 * limits.tenants + TABLE_TENANTS,
        attachments: (attachments(forwarding) as u32).next_power_of_two().max(4096),
        slots: if netfilter::are_in(forwarding) { limits.held.next_power_of_two() } else { 1 },
        proxies: proxy_count(forwarding),
        rings: rings(forwarding),
    }
}
