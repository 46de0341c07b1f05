//! The SRv6 data plane's program and its tables.

use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Map, MapHandle, ProgramMut};

use crate::abi::Abi;
use crate::found::FoundSids;
use crate::function::{magic, random};
use crate::held::{Held, repin};
use crate::index::{Index, buckets_for, mix};
use crate::measure::{run_once, verdict};
use crate::records::{Indexed, Keyed, Numbered, Records, wait_for_packets};
use crate::table::{Mapped, Table};
use crate::{Count, Error, Replay};

#[allow(missing_docs, unreachable_pub, dead_code)]
#[allow(clippy::all, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/srv6.skel.rs"));
}

/// Value types of the tables, as `abi.h` defines them.
pub use skel::types;

const PROGRAM: &str = "srv6";

/// BTF of the running kernel. Without it, the offsets of the kernel's fields are unknown.
const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Maximum number of SIDs of service functions. Each needs an additional counter.
pub const FUNCTIONS: u32 = 1024;

/// Capacities of the tables. Lists, policies and counters are preallocated; SIDs and prefixes take
/// memory per entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Number of SIDs.
    pub sids: u32,
    /// Number of prefixes of each address family.
    pub prefixes: u32,
    /// Number of policies.
    pub policies: u32,
    /// Number of segment lists.
    pub lists: u32,
    /// Number of policies with more than one list.
    pub spreads: u32,
    /// Number of tenants.
    pub tenants: u32,
    /// Number of attachments of tagged frames.
    pub attachments: u32,
    /// Number of slots for packets in service functions, on each CPU. A power of two.
    pub slots: u32,
    /// Number of proxies of service functions; 0 for none.
    pub proxies: u32,
    /// Number of interfaces on which packets of End.AD return.
    pub rings: u32,
}

impl Default for Sizes {
    fn default() -> Self {
        let some = 4096;
        Self {
            sids: some,
            prefixes: some,
            policies: some,
            lists: some,
            spreads: 256,
            tenants: 256,
            attachments: some,
            slots: 1,
            proxies: 0,
            rings: 0,
        }
    }
}

impl Sizes {
    /// Returns true if tables of size `other` have at least these capacities.
    pub fn fit_into(&self, other: Self) -> bool {
        self.or(other) == other
    }

    /// Returns the maximum of each capacity.
    pub fn or(&self, other: Self) -> Self {
        Self {
            sids: self.sids.max(other.sids),
            prefixes: self.prefixes.max(other.prefixes),
            policies: self.policies.max(other.policies),
            lists: self.lists.max(other.lists),
            spreads: self.spreads.max(other.spreads),
            tenants: self.tenants.max(other.tenants),
            attachments: self.attachments.max(other.attachments),
            slots: self.slots.max(other.slots),
            proxies: self.proxies.max(other.proxies),
            rings: self.rings.max(other.rings),
        }
    }

    /// Number of sets in the reply table.
    fn passages(&self) -> u32 {
        if self.slots > 1 { types::limit::LIMIT_PASSAGES.0 } else { 1 }
    }

    /// Number of counters of each CPU: those of the reasons, one for each record of a SID or
    /// policy, and additional ones for service functions.
    pub fn counters(&self) -> u32 {
        types::limit::LIMIT_REASONS.0 + 2 * (self.sids + self.policies + FUNCTIONS)
    }
}

/// The loaded program and its tables. See `abi.h` for the meaning of the entries.
pub struct Srv6 {
    skel: skel::Srv6Skel<'static>,
    /// Link of the program that counts drops of service functions, once attached.
    drop_link: OnceLock<OwnedFd>,
    /// The intended value of `control.exact`, which the timer overwrites.
    exact: AtomicU64,
    /// Global state, read for every packet.
    pub control: Mapped<types::control>,
    /// Ports by slot.
    pub ports: Table<u32, types::port>,
    /// Redirect targets by slot, as in `ports`.
    pub devices: Table<u32, u32>,
    /// Interfaces stacked on ports, by interface index.
    pub uppers: Table<u32, types::upper>,
    /// Tenants' tagged frames.
    pub attachments: Table<types::attachment_key, types::attachment>,
    /// Prefixes of permitted source addresses.
    pub sources: Table<types::source, u32>,
    /// Tenants by number.
    pub tenants: Mapped<types::tenant>,
    /// IPv4 destinations of tenants.
    pub prefixes4: Indexed<types::prefix4>,
    /// IPv6 destinations of tenants.
    pub prefixes6: Indexed<types::prefix6>,
    /// Policies.
    pub policies: Numbered<types::policy>,
    /// Weighted segment lists.
    pub spreads: Numbered<types::spread>,
    /// Segment lists as outer headers.
    pub lists: Numbered<types::outer>,
    /// SIDs and their endpoint behaviors.
    pub sids: Indexed<types::sid>,
    /// Return policies for local replies to packets of service functions.
    pub ways_back: Table<u32, u32>,
    /// Redirect targets for inner packets of service functions.
    pub(crate) function_devices: Table<u32, u32>,
    /// Proxies by number; 0 stands for none.
    pub proxies: Mapped<types::proxy>,
    /// Treatment of packets from interfaces that lead to functions of proxies.
    pub backs: Table<u32, types::back>,
    /// Interfaces that lead to functions of proxies, once returning packets are handled.
    pub function_links: Table<u32, u32>,
    /// One row of counters per CPU.
    counts: Mapped<types::count>,
    found_sids: FoundSids,
    missing: Mapped<types::missing>,
    sizes: Sizes,
    finds_tables: bool,
}

impl Srv6 {
    /// Loads the program with tables of these sizes.
    pub fn load(sizes: Sizes) -> Result<Self, Error> {
        Self::load_after(sizes, None)
    }

    /// Loads the program as the successor of another one. It returns packets that are in service
    /// functions to their path, and can route local replies to them, if both programs have the same
    /// capacities.
    pub fn load_after(sizes: Sizes, held: Option<&Held>) -> Result<Self, Error> {
        let failed = |source| Error::load(PROGRAM, source);
        let cpus = libbpf_rs::num_possible_cpus().map_err(failed)? as u32;
        // The object must outlive the skeleton. Each load leaks a few hundred bytes.
        let object = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = skel::Srv6SkelBuilder::default().open(object).map_err(failed)?;
        set_sizes(&mut open.maps, sizes, cpus).map_err(failed)?;
        let slots = cpus.saturating_mul(sizes.slots);
        for (name, map) in held.iter().flat_map(|held| held.fitting(slots, sizes.passages())) {
            let new = match name {
                "slots" => &mut open.maps.slots,
                "taken" => &mut open.maps.taken,
                _ => &mut open.maps.passages,
            };
            new.reuse_fd(map.as_fd()).map_err(failed)?;
        }
        // `function_again` contains almost the whole program and doubles the verification time, so
        // it is loaded only if needed.
        open.progs.function_again.set_autoload(sizes.slots > 1 || sizes.proxies > 0);
        open.progs.proxy_in.set_autoload(sizes.proxies > 0);
        open.progs.proxy_back.set_autoload(sizes.proxies > 0);
        open.progs.dropped.set_autoload(sizes.slots > 1 && Path::new(KERNEL_TYPES).exists());
        let skel = open.load().map_err(failed)?;
        let maps = &skel.maps;
        let sid_index = mapped("sid_index", &maps.sid_index)?;
        let prefix4_index = mapped("prefix4_index", &maps.prefix4_index)?;
        let prefix6_index = mapped("prefix6_index", &maps.prefix6_index)?;
        let control = mapped("control", &maps.control)?;
        control.write(
            0,
            types::control {
                // Random, so that it hardly matches the generation of another program's slots.
                generation: random().max(1),
                version: 1,
                exact: u64::MAX,
                program: random(),
                counters: sizes.counters(),
                sid_buckets: sid_index.len() as u32 - 1,
                prefix4_buckets: prefix4_index.len() as u32 - 1,
                prefix6_buckets: prefix6_index.len() as u32 - 1,
                slots: sizes.slots - 1,
                passages: sizes.passages() - 1,
                magic: held.map_or_else(magic, |held| held.magic),
                ..types::control::default()
            },
        );
        let loaded = Self {
            control,
            ports: table("ports", &maps.ports)?,
            devices: table("devices", &maps.devices)?,
            uppers: table("uppers", &maps.uppers)?,
            attachments: table("attachments", &maps.attachments)?,
            sources: table("sources", &maps.sources)?,
            tenants: mapped("tenants", &maps.tenants)?,
            prefixes4: indexed("prefixes4", &maps.prefixes4, prefix4_index)?,
            prefixes6: indexed("prefixes6", &maps.prefixes6, prefix6_index)?,
            policies: Numbered::new("policies", mapped("policies", &maps.policies)?),
            spreads: Numbered::new("weighted policies", mapped("spreads", &maps.spreads)?),
            lists: Numbered::new("segment lists", mapped("lists", &maps.lists)?),
            sids: indexed("SIDs", &maps.sids, sid_index)?,
            ways_back: table("ways_back", &maps.ways_back)?,
            function_devices: table("function_devices", &maps.function_devices)?,
            proxies: mapped("proxies", &maps.proxies)?,
            backs: table("backs", &maps.backs)?,
            function_links: table("function_links", &maps.function_links)?,
            exact: AtomicU64::new(u64::MAX),
            counts: mapped("counts", &maps.counts)?,
            found_sids: FoundSids(mapped("found_sids", &maps.found_sids)?),
            missing: mapped("missing", &maps.missing)?,
            sizes,
            finds_tables: {
                // Any frame will do.
                let run = run_once(skel.progs.finds_tables.as_fd(), 0, &[0; 64])?;
                run.verdict == verdict::PASS
            },
            skel,
            drop_link: OnceLock::new(),
        };
        begin_tags(&table("proxied_taken", &loaded.skel.maps.proxied_taken)?)?;
        crate::measure::run_syscall(loaded.skel.progs.start_watch.as_fd())?;
        Ok(loaded)
    }

    /// Returns the capacities of the tables.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Returns true if the kernel can look up in a routing table by number. Otherwise only the
    /// tables of VRF devices and the main table are available.
    pub fn finds_tables(&self) -> bool {
        self.finds_tables
    }

    /// Keeps the watchdog timer running after this process exits: a timer is cancelled with the
    /// last user-space reference to its map. The pin at `path` replaces that of an earlier program.
    pub fn keep_watch(&self, path: &Path) -> Result<(), Error> {
        repin(self.skel.maps.watches.as_fd(), path)
    }

    /// Returns the value of a counter, summed over all CPUs, in bytes of layer 3.
    pub fn count(&self, counter: u32) -> Count {
        self.sum(|row| self.count_in(row, counter))
    }

    /// Returns the packets counted for a SID, given by its record, summed over all CPUs, in bytes
    /// of layer 3.
    pub fn count_of_sid(&self, record: u32) -> Count {
        let sid = self.sids.get(record);
        self.sum(|row| {
            // Read first: if the entry is evicted meanwhile, its count is then in the counter.
            let found = self.found_sids.count(row, &sid);
            fence(Ordering::Acquire);
            let settled = self.count_in(row, sid.counter);
            found.filter(|c| c.packets > settled.packets).unwrap_or(settled)
        })
    }

    fn count_in(&self, row: usize, counter: u32) -> types::count {
        self.counts.read(row * self.sizes.counters() as usize + counter as usize)
    }

    fn sum(&self, count: impl Fn(usize) -> types::count) -> Count {
        let rows = self.counts.len() / self.sizes.counters() as usize;
        (0..rows).map(count).fold(Count::default(), |sum, one| Count {
            packets: sum.packets + one.packets,
            bytes: sum.bytes + one.bytes,
        })
    }

    /// Returns the version of SIDs, prefixes and policies: see [`Srv6::begin_version`].
    pub fn version(&self) -> u32 {
        self.control.read(0).version
    }

    /// Returns the next hops that packets failed to resolve since the last call, with their
    /// interfaces.
    pub fn missing_neighbours(&self) -> Vec<(u32, IpAddr)> {
        let mut found = Vec::new();
        for at in 0..self.missing.len() {
            let types::missing { address, ifindex, ipv6 } = self.missing.read(at);
            if ifindex == 0 {
                continue;
            }
            // If the program writes the entry at the same time, the next packet writes it again.
            self.missing.write(at, types::missing::default());
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&address[0].to_ne_bytes());
            bytes[8..].copy_from_slice(&address[1].to_ne_bytes());
            let [a, b, c, d, ..] = bytes;
            let address = if ipv6 == 0 { IpAddr::from([a, b, c, d]) } else { IpAddr::from(bytes) };
            found.push((ifindex, address));
        }
        found
    }

    /// Sets a counter to zero.
    pub fn reset(&self, counter: u32) {
        self.forget_drops(counter);
        let row = self.sizes.counters() as usize;
        for at in (counter as usize..self.counts.len()).step_by(row) {
            self.counts.write(at, types::count::default());
        }
    }

    /// Sets the prefix lengths of the SIDs, longest first.
    pub fn set_sid_lengths(&self, lengths: &types::lengths6) {
        wait_for_packets();
        let control = self.control.at(0);
        // SAFETY: the pointer is into the mapping and this is its only writer; packets read the
        // other of the two tables, and after the next line only this one.
        unsafe {
            let next = (&raw const (*control).active).read_volatile() & 1 ^ 1;
            (&raw mut (*control).sids[next as usize]).write_volatile(*lengths);
            fence(Ordering::Release);
            (&raw mut (*control).active).write_volatile(next);
        }
    }

    /// Sets the prefix lengths of a tenant, longest first.
    pub fn set_tenant_lengths(&self, tenant: u32, ipv4: &types::lengths4, ipv6: &types::lengths6) {
        wait_for_packets();
        let entry = self.tenants.at(tenant as usize);
        // SAFETY: as in `set_sid_lengths`.
        unsafe {
            let next = (&raw const (*entry).active).read_volatile() & 1 ^ 1;
            (&raw mut (*entry).ipv4[next as usize]).write_volatile(*ipv4);
            (&raw mut (*entry).ipv6[next as usize]).write_volatile(*ipv6);
            fence(Ordering::Release);
            (&raw mut (*entry).active).write_volatile(next);
        }
    }

    /// Changes the segment lists of a policy. Each packet takes an old list or a new one.
    pub fn change_policy(&self, number: u32, value: types::policy) {
        let entry = self.policies.entries().at(number as usize);
        // SAFETY: the pointer is into the mapping and this is its only writer. Each field is one
        // word; `spread` is written first if it is in effect afterwards, and last if it is not.
        unsafe {
            if value.spread != 0 {
                (&raw mut (*entry).spread).write_volatile(value.spread);
                fence(Ordering::Release);
            }
            (&raw mut (*entry).list).write_volatile(value.list);
            (&raw mut (*entry).in_kernel).write_volatile(value.in_kernel);
            fence(Ordering::Release);
            (&raw mut (*entry).spread).write_volatile(value.spread);
        }
    }

    /// Invalidates all cached adjacencies, so that packets look up their routes again.
    pub fn begin_generation(&self) {
        // SAFETY: the field is an aligned word of the mapping, which the program changes with an
        // atomic instruction too.
        count_up(unsafe { AtomicU32::from_ptr(&raw mut (*self.control.at(0)).generation) });
    }

    /// Invalidates all cached SIDs and policies, so that packets look them up again. To be called
    /// after SIDs, prefixes or policies have changed, and before new ones are added.
    pub fn begin_version(&self) {
        // SAFETY: the field is an aligned word of the mapping, which only this side writes.
        count_up(unsafe { AtomicU32::from_ptr(&raw mut (*self.control.at(0)).version) });
    }

    /// Sets the exactness of route lookups: `true` if the route of a packet may depend on more than
    /// its destination and its port, that is, on policy rules, routes by source or class, or its
    /// flow. The initial value is `true`, which is always correct.
    pub fn set_exact(&self, exact: bool) {
        self.exact.store(if exact { u64::MAX } else { 0 }, Ordering::Relaxed);
        self.write_exact();
    }

    fn write_exact(&self) {
        let value = self.exact.load(Ordering::Relaxed);
        // SAFETY: the pointer is into the mapping; it is one word, and the value that the timer
        // writes is always correct.
        unsafe { (&raw mut (*self.control.at(0)).exact).write_volatile(value) }
        self.begin_generation();
    }

    /// Signals that route changes are being watched, for LIMIT_TICK_NS plus the rest of the current
    /// tick.
    pub fn beat(&self) {
        // SAFETY: as in `begin_generation`; only this side writes it.
        let heartbeat = unsafe { AtomicU32::from_ptr(&raw mut (*self.control.at(0)).heartbeat) };
        heartbeat.fetch_add(1, Ordering::SeqCst);
        // The timer has overwritten the value after a missed beat.
        if self.control.read(0).exact != self.exact.load(Ordering::Relaxed) {
            self.write_exact();
        }
    }

    /// Loads the program a second time on the same tables, but with separate counters and caches:
    /// its runs are not counted, and packets do not see its state.
    pub fn replay(&self) -> Result<Replay, Error> {
        let failed = |source| Error::load(PROGRAM, source);
        let cpus = libbpf_rs::num_possible_cpus().map_err(failed)? as u32;
        let mut object = Box::new(MaybeUninit::uninit());
        let mut open = skel::Srv6SkelBuilder::default().open(&mut object).map_err(failed)?;
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
            (&mut new.uppers, &shared.uppers),
            (&mut new.attachments, &shared.attachments),
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

    /// Returns the programs that inner packets pass: on entry to the kernel, first in XDP, and on
    /// exit from it. Requires a program with slots.
    pub(crate) fn function_programs(&self) -> [BorrowedFd<'_>; 3] {
        let progs = &self.skel.progs;
        [progs.function_again.as_fd(), progs.function_in.as_fd(), progs.function_out.as_fd()]
    }

    /// Returns the program that counts drops by rules; present in a program with slots if the
    /// kernel supports it.
    pub(crate) fn drop_program(&self) -> Option<&ProgramMut<'static>> {
        let program = &self.skel.progs.dropped;
        program.autoload().then_some(program)
    }

    pub(crate) fn drop_link(&self) -> &OnceLock<OwnedFd> {
        &self.drop_link
    }

    pub(crate) fn drops_map(&self) -> &Map<'_> {
        &self.skel.maps.function_drops
    }

    /// Returns the programs that packets of proxies pass: on the way to the function, first in XDP,
    /// and on return. Requires a program with capacity for proxies.
    pub(crate) fn proxy_programs(&self) -> [BorrowedFd<'_>; 3] {
        let progs = &self.skel.progs;
        [progs.function_again.as_fd(), progs.proxy_in.as_fd(), progs.proxy_back.as_fd()]
    }

    /// Returns the maps that a successor program reuses, and `control`, which contains the prefix
    /// of tags.
    pub(crate) fn held_maps(&self) -> [&Map<'_>; 4] {
        let maps = &self.skel.maps;
        [&maps.slots, &maps.taken, &maps.passages, &maps.control]
    }

    /// Returns the egress filter for locally generated packets, for interfaces with or without a
    /// link header.
    pub(crate) fn guard_program(&self, link_header: bool) -> BorrowedFd<'_> {
        let progs = &self.skel.progs;
        if link_header { progs.answers.as_fd() } else { progs.answers_without_link.as_fd() }
    }

    /// Returns the XDP program.
    pub fn program(&self) -> BorrowedFd<'_> {
        self.skel.progs.srv6.as_fd()
    }
}

/// Increments a number, skipping 0, which stands for none.
fn count_up(number: &AtomicU32) {
    if number.fetch_add(1, Ordering::SeqCst) == u32::MAX {
        number.fetch_add(1, Ordering::SeqCst);
    }
}

/// Sets the sizes of the maps before they are created.
fn set_sizes(maps: &mut skel::OpenSrv6Maps<'_>, sizes: Sizes, cpus: u32) -> libbpf_rs::Result<()> {
    // Record 0 stands for none. New records are added before those that they replace are removed.
    let twice = |entries: u32| 2 * entries + 1;
    for (map, entries) in [
        (&mut maps.sids, twice(sizes.sids)),
        (&mut maps.sid_index, buckets_for(2 * sizes.sids)),
        (&mut maps.prefixes4, twice(sizes.prefixes)),
        (&mut maps.prefix4_index, buckets_for(2 * sizes.prefixes)),
        (&mut maps.prefixes6, twice(sizes.prefixes)),
        (&mut maps.prefix6_index, buckets_for(2 * sizes.prefixes)),
        (&mut maps.policies, twice(sizes.policies)),
        (&mut maps.lists, twice(sizes.lists)),
        (&mut maps.spreads, twice(sizes.spreads)),
        (&mut maps.tenants, sizes.tenants + 1),
        (&mut maps.attachments, sizes.attachments),
        (&mut maps.counts, sizes.counters() * cpus),
        (&mut maps.slots, cpus.saturating_mul(sizes.slots)),
        (&mut maps.passages, sizes.passages()),
        (&mut maps.function_drops, if sizes.slots > 1 { 2 * FUNCTIONS } else { 1 }),
        (&mut maps.proxies, twice(sizes.proxies)),
        (&mut maps.proxied, (2 * sizes.rings * types::limit::LIMIT_PROXIED.0).max(1)),
        (&mut maps.proxied_taken, (2 * sizes.rings).max(1)),
        (&mut maps.adjacencies, cpus << types::limit::LIMIT_ADJACENCY_BITS.0),
        (&mut maps.found_sids, cpus << types::limit::LIMIT_FOUND_BITS.0),
        (&mut maps.found_policies, cpus << types::limit::LIMIT_FOUND_BITS.0),
    ] {
        map.set_max_entries(entries)?;
    }
    Ok(())
}

/// Starts the tags of each ring at a random number, which makes a collision with those of an
/// earlier program or of another ring improbable.
fn begin_tags(taken: &Table<u32, u64>) -> Result<(), Error> {
    (0..taken.capacity()).try_for_each(|ring| taken.set(&ring, &(u64::from(random()) << 8)))
}

fn table<K: Abi, V: Abi>(name: &'static str, map: &Map<'_>) -> Result<Table<K, V>, Error> {
    Ok(Table::new(name, handle(name, map)?))
}

fn mapped<V: Abi>(name: &'static str, map: &Map<'_>) -> Result<Mapped<V>, Error> {
    Mapped::new(name, &handle(name, map)?)
}

fn indexed<V: Keyed>(
    name: &'static str,
    records: &Map<'_>,
    index: Mapped<types::bucket>,
) -> Result<Indexed<V>, Error> {
    Ok(Indexed::new(Records::new(name, mapped(name, records)?), Index::new(name, index)))
}

fn handle(name: &'static str, map: &Map<'_>) -> Result<MapHandle, Error> {
    MapHandle::try_from(map).map_err(|source| Error::Map { map: name, doing: "open", source })
}

impl Keyed for types::sid {
    fn hash(&self) -> u64 {
        mix(self.address[0], self.address[1], u64::from(self.length))
    }
}

impl Keyed for types::prefix4 {
    fn hash(&self) -> u64 {
        mix(u64::from(self.address), u64::from(self.tenant), u64::from(self.length))
    }
}

impl Keyed for types::prefix6 {
    fn hash(&self) -> u64 {
        let owner = u64::from(self.tenant) << 32 | u64::from(self.length);
        mix(self.address[0], self.address[1], owner)
    }
}

/// Declares that values of these types of `abi.h` may be copied bytewise.
macro_rules! plain {
    ($($name:ident)*) => {$(
        // SAFETY: the types of `abi.h` are repr(C) integers and arrays of them, and each has an
        // assertion there that its fields fill it.
        unsafe impl Abi for types::$name {}
    )*};
}
plain!(control port upper attachment_key attachment source tenant prefix4 prefix6);
plain!(policy spread outer bucket sid found_sid count missing proxy back);
