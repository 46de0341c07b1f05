//! The SRv6 data plane's program and its tables.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Map, ProgramMut};

use super::maps::{indexed, mapped, table};
use super::sizes::{Sizes, set_sizes};
use crate::Error;
use crate::found::FoundSids;
use crate::held::{Held, repin};
use crate::measure::{run_once, verdict};
use crate::random::{magic, random};
use crate::records::{Indexed, Numbered};
use crate::skeleton::{Srv6Skel, Srv6SkelBuilder, types};
use crate::table::{Mapped, Table};

pub(super) const PROGRAM: &str = "srv6";

/// BTF of the running kernel. Without it, the offsets of the kernel's fields are unknown.
const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";

/// The loaded program and its tables. See `abi.h` for the meaning of the entries.
pub struct Srv6 {
    pub(super) skel: Srv6Skel<'static>,
    /// Link of the program that counts drops of service functions, once attached.
    drop_link: OnceLock<OwnedFd>,
    /// The intended value of `control.exact`, which the timer overwrites.
    pub(super) exact: AtomicU64,
    /// Global state, read for every packet.
    pub control: Mapped<types::control>,
    /// Ports by slot.
    pub ports: Table<u32, types::port>,
    /// Redirect targets by slot, as in `ports`.
    pub devices: Table<u32, u32>,
    /// Interfaces stacked on ports, by interface index.
    pub stacked_links: Table<u32, types::upper>,
    /// Tenants' tagged frames.
    pub attachments: Table<types::attachment_key, types::attachment>,
    /// VLANs in the SR domain by slot.
    pub vlan_slots: Table<u32, types::vlan_slot>,
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
    pub return_policies: Table<u32, u32>,
    /// Redirect targets for inner packets of service functions.
    pub(crate) function_devices: Table<u32, u32>,
    /// Proxies by number; 0 stands for none.
    pub proxies: Mapped<types::proxy>,
    /// Treatment of packets from interfaces that lead to functions of proxies.
    pub return_links: Table<u32, types::back>,
    /// Interfaces that lead to functions of proxies, once returning packets are handled.
    pub function_links: Table<u32, u32>,
    /// One row of counters per CPU.
    pub(super) counts: Mapped<types::count>,
    pub(super) found_sids: FoundSids,
    pub(super) unresolved: Mapped<types::unresolved>,
    pub(super) sizes: Sizes,
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
        let mut open = Srv6SkelBuilder::default().open(object).map_err(failed)?;
        set_sizes(&mut open.maps, sizes, cpus).map_err(failed)?;
        let slots = cpus.saturating_mul(sizes.slots);
        if let Some(held) = held {
            held.reuse(&mut open.maps, slots, sizes.passages()).map_err(failed)?;
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
            stacked_links: table("stacked_links", &maps.stacked_links)?,
            attachments: table("attachments", &maps.attachments)?,
            vlan_slots: table("vlan_slots", &maps.vlan_slots)?,
            sources: table("sources", &maps.sources)?,
            tenants: mapped("tenants", &maps.tenants)?,
            prefixes4: indexed("prefixes4", &maps.prefixes4, prefix4_index)?,
            prefixes6: indexed("prefixes6", &maps.prefixes6, prefix6_index)?,
            policies: Numbered::new("policies", mapped("policies", &maps.policies)?),
            spreads: Numbered::new("weighted policies", mapped("spreads", &maps.spreads)?),
            lists: Numbered::new("segment lists", mapped("lists", &maps.lists)?),
            sids: indexed("SIDs", &maps.sids, sid_index)?,
            return_policies: table("return_policies", &maps.return_policies)?,
            function_devices: table("function_devices", &maps.function_devices)?,
            proxies: mapped("proxies", &maps.proxies)?,
            return_links: table("return_links", &maps.return_links)?,
            function_links: table("function_links", &maps.function_links)?,
            exact: AtomicU64::new(u64::MAX),
            counts: mapped("counts", &maps.counts)?,
            found_sids: FoundSids(mapped("found_sids", &maps.found_sids)?),
            unresolved: mapped("unresolved", &maps.unresolved)?,
            sizes,
            finds_tables: {
                // Any frame will do.
                let run = run_once(skel.progs.finds_tables.as_fd(), 0, &[0; 64])?;
                run.verdict == verdict::PASS
            },
            skel,
            drop_link: OnceLock::new(),
        };
        begin_tags(&table("proxy_heads", &loaded.skel.maps.proxy_heads)?)?;
        crate::measure::run_syscall(loaded.skel.progs.start_watch.as_fd())?;
        Ok(loaded)
    }

    /// Returns the capacities of the tables.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Returns true if the kernel can look up in a routing table by number. Otherwise only the
    /// tables of VRF devices and the main table are available.
    pub fn has_table_lookup(&self) -> bool {
        self.finds_tables
    }

    /// Keeps the watchdog timer running after this process exits: a timer is cancelled with the
    /// last user-space reference to its map. The pin at `path` replaces that of an earlier program.
    pub fn keep_watch(&self, path: &Path) -> Result<(), Error> {
        repin(self.skel.maps.watches.as_fd(), path)
    }

    /// Pins the state for the program of a later process, replacing that of an earlier one.
    /// `prefix` is the prefix of the pins' names.
    pub fn keep_held(&self, prefix: &Path) -> Result<(), Error> {
        Held::keep(&self.skel.maps, prefix)
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

    /// Returns the egress filter for locally generated packets, for interfaces with or without a
    /// link-layer header.
    pub(crate) fn guard_program(&self, link_header: bool) -> BorrowedFd<'_> {
        let progs = &self.skel.progs;
        if link_header { progs.answers.as_fd() } else { progs.answers_without_link.as_fd() }
    }

    /// Returns the filter of packets that ports leave to the kernel.
    pub(crate) fn port_filter(&self) -> BorrowedFd<'_> {
        self.skel.progs.port_in.as_fd()
    }

    /// Returns the XDP program.
    pub fn program(&self) -> BorrowedFd<'_> {
        self.skel.progs.srv6.as_fd()
    }
}

/// Starts the tags of each ring at a random number, which makes a collision with those of an
/// earlier program or of another ring improbable.
fn begin_tags(taken: &Table<u32, u64>) -> Result<(), Error> {
    (0..taken.capacity()).try_for_each(|ring| taken.set(&ring, &(u64::from(random()) << 8)))
}
