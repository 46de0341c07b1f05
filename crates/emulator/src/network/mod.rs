//! Nodes, links and the event queue.

mod clear;
mod node;

pub use self::node::{Leaves, LinkId, NodeId, PortId};

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use self::node::{Kind, Node};
use crate::router::Router;
use crate::traffic::Source;
use crate::{
    CrossCounts, Dice, Filter, Frame as _, Link, Nanos, NoTraffic, Packet, Position, Replay,
    Settings, Switch, Traffic,
};

#[derive(Debug, Clone)]
struct Direction {
    link: Link<Packet>,
    /// Name that seeds the generators of cross traffic, and the number of sources so far.
    name: String,
    sources: u64,
    cross: CrossCounts,
    filters: Vec<Filter>,
    filtered: u64,
    /// Far end: a node and its interface.
    end: (NodeId, usize),
    scheduled: Option<Nanos>,
    /// Memory in bytes of the packets in this link; part of the network's total.
    memory: u64,
}

/// Target of a timer. The order breaks ties between timers of the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    Link(LinkId),
    Node(NodeId),
    Source(usize),
}

/// Default limit of the memory for packets: one second of traffic at 8 Gbit/s.
const MAX_BYTES: u64 = 1 << 30;

/// Memory that a link may use when the network is full, unless routers hold half of the limit. The total
/// exceeds the limit by at most an eighth.
const OWN_BYTES: u64 = 64 << 10;

/// A network. It is deterministic: the same packets at the same times yield the same result.
#[derive(Debug, Clone)]
pub struct Network {
    seed: u64,
    nodes: Vec<Node>,
    links: Vec<Direction>,
    /// Sources of cross traffic and their links. Sources that have ended leave free slots.
    sources: Vec<Option<(LinkId, Source)>>,
    /// Memory in bytes of all packets on links and in routers, of those waiting in routers alone,
    /// and the limit for the former.
    memory: u64,
    waiting: u64,
    room: u64,
    agenda: BinaryHeap<Reverse<(Nanos, Who)>>,
    /// Packets at the far end of an unimpaired link, with their arrival time.
    carried: VecDeque<(Nanos, LinkId, Packet)>,
    out: Vec<(usize, Packet)>,
    /// Cached result of [`Network::is_clear`] for each node.
    clear: Vec<Option<bool>>,
}

impl Network {
    /// Creates a network without nodes. The seed initializes the generators of its links.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            nodes: Vec::new(),
            links: Vec::new(),
            sources: Vec::new(),
            memory: 0,
            waiting: 0,
            room: MAX_BYTES,
            agenda: BinaryHeap::new(),
            carried: VecDeque::new(),
            out: Vec::new(),
            clear: Vec::new(),
        }
    }

    /// Sets the memory limit in bytes for packets on links and in routers. Packets beyond it are
    /// dropped, except on links with less than 64 KiB.
    pub fn set_room(&mut self, bytes: u64) {
        self.room = bytes;
    }

    /// Returns the approximate memory in bytes of the packets on links.
    pub fn memory(&self) -> u64 {
        self.memory - self.waiting
    }

    /// Adds an edge port with one interface.
    pub fn port(&mut self) -> PortId {
        PortId(self.add(Kind::Port))
    }

    /// Adds a switch.
    pub fn switch(&mut self, switch: Switch) -> NodeId {
        self.add(Kind::Switch(switch))
    }

    /// Adds a router.
    pub fn router(&mut self, router: Router) -> NodeId {
        self.add(Kind::Router(Box::new(router)))
    }

    fn add(&mut self, kind: Kind) -> NodeId {
        self.nodes.push(Node { kind, links: Vec::new(), scheduled: None, memory: 0 });
        NodeId(self.nodes.len() - 1)
    }

    /// Adds one direction of a link from one node's interface to another's. The name seeds the
    /// link's random generator.
    pub fn link(
        &mut self,
        name: &str,
        from: (NodeId, usize),
        to: (NodeId, usize),
        settings: Settings,
    ) -> LinkId {
        self.clear.clear();
        let id = LinkId(self.links.len());
        self.links.push(Direction {
            link: Link::new(Dice::new(self.seed, name), settings),
            name: name.into(),
            sources: 0,
            cross: CrossCounts::default(),
            filters: Vec::new(),
            filtered: 0,
            end: to,
            scheduled: None,
            memory: 0,
        });
        let links = &mut self.nodes[from.0.0].links;
        if links.len() <= from.1 {
            links.resize(from.1 + 1, None);
        }
        links[from.1] = Some(id);
        id
    }

    /// Changes the settings of a link from `now` on.
    pub fn change(&mut self, now: Nanos, id: LinkId, settings: Settings) {
        self.clear.clear();
        self.links[id.0].link.change(now, settings);
        self.schedule_link(id);
    }

    /// Sets the start time of the schedules and rate traces of all links.
    pub fn begin(&mut self, now: Nanos, origin: Nanos) {
        self.clear.clear();
        for number in 0..self.links.len() {
            self.links[number].link.begin(now, origin);
            self.schedule_link(LinkId(number));
        }
    }

    /// Replaces the filters of a link.
    pub fn set_filters(&mut self, id: LinkId, filters: Vec<Filter>) {
        self.clear.clear();
        self.links[id.0].filters = filters;
    }

    /// Adds cross traffic to a link from `now` on. It is not subject to filters, and no node
    /// receives it.
    pub fn add_traffic(
        &mut self,
        now: Nanos,
        id: LinkId,
        traffic: Traffic,
    ) -> Result<(), NoTraffic> {
        let direction = &mut self.links[id.0];
        let name = format!("{} cross {}", direction.name, direction.sources);
        let source = Source::new(Dice::new(self.seed, &name), traffic, now)?;
        direction.sources += 1;
        let Some(next) = source.next() else { return Ok(()) };
        let free = self.sources.iter().position(Option::is_none);
        let place = free.unwrap_or_else(|| {
            self.sources.push(None);
            self.sources.len() - 1
        });
        self.sources[place] = Some((id, source));
        self.agenda.push(Reverse((next, Who::Source(place))));
        Ok(())
    }

    /// Stops all cross traffic on a link. Returns the number of sources stopped.
    pub fn stop_traffic(&mut self, id: LinkId) -> usize {
        let all = self.sources.iter_mut().flatten();
        let of_link = all.filter(|(link, source)| *link == id && source.next().is_some());
        of_link.map(|(_, source)| source.stop()).count()
    }

    /// Skips cross traffic that is due before `until`, and counts it as overdue. For callers that
    /// run late.
    pub fn skip_cross(&mut self, until: Nanos) {
        for (id, source) in self.sources.iter_mut().flatten() {
            self.links[id.0].cross.overdue += source.skip(until);
        }
    }

    /// Returns the counters of a link's cross traffic.
    pub fn cross(&self, id: LinkId) -> &CrossCounts {
        &self.links[id.0].cross
    }

    /// Returns a link.
    pub fn get(&self, id: LinkId) -> &Link<Packet> {
        &self.links[id.0].link
    }

    /// Returns the number of packets at the end of a link that [`Network::advance`] delivers first.
    pub fn carried(&self) -> usize {
        self.carried.len()
    }

    /// Returns a link for attaching or removing a tap.
    pub fn get_mut(&mut self, id: LinkId) -> &mut Link<Packet> {
        self.clear.clear();
        &mut self.links[id.0].link
    }

    /// Creates a replay on a link with the same name and settings.
    pub fn replay(&self, id: LinkId, position: Position) -> Replay {
        let Direction { link, name, .. } = &self.links[id.0];
        Replay::new(Dice::new(self.seed, name), link.settings().clone(), position)
    }

    /// Returns the number of packets stopped by a link's filters. They never reached the link.
    pub fn filtered(&self, id: LinkId) -> u64 {
        self.links[id.0].filtered
    }

    /// Returns the router with this id, or `None` if the node is not a router.
    pub fn router_at(&self, id: NodeId) -> Option<&Router> {
        match &self.nodes[id.0].kind {
            Kind::Router(router) => Some(router),
            _ => None,
        }
    }

    /// Returns the switch with this id, or `None` if the node is not a switch.
    pub fn switch_at(&self, id: NodeId) -> Option<&Switch> {
        match &self.nodes[id.0].kind {
            Kind::Switch(switch) => Some(switch),
            _ => None,
        }
    }

    /// Receives a packet on a port. The caller must have called [`Network::advance`] for all
    /// earlier times.
    pub fn receive(&mut self, now: Nanos, port: PortId, packet: Packet) {
        self.send(now, port.0, 0, packet);
    }

    /// Returns the time at which [`Network::advance`] must be called next.
    pub fn next(&self) -> Option<Nanos> {
        if let Some((at, ..)) = self.carried.front() {
            return Some(*at);
        }
        self.agenda.peek().map(|Reverse((at, _))| *at)
    }

    /// Advances time to `now`. Passes each packet that leaves the network to `leaves`, with the
    /// time it left.
    pub fn advance(&mut self, now: Nanos, leaves: &mut Leaves<'_>) {
        self.advance_some(now, usize::MAX, leaves);
    }

    /// Like [`Network::advance`], but ends after about `most` events and packets that leave. Returns
    /// true if no event is left.
    pub fn advance_some(&mut self, now: Nanos, most: usize, leaves: &mut Leaves<'_>) -> bool {
        let left = Cell::new(0);
        let leaves: &mut Leaves<'_> = &mut |port, at, packet| {
            left.set(left.get() + 1);
            leaves(port, at, packet);
        };
        self.deliver(leaves);
        let mut turns = 0_usize;
        while let Some(Reverse((at, who))) = self.agenda.peek().copied()
            && at <= now
        {
            if turns.saturating_add(left.get()) >= most {
                return false;
            }
            turns += 1;
            self.agenda.pop();
            match who {
                Who::Link(id) if self.links[id.0].scheduled == Some(at) => {
                    self.links[id.0].scheduled = None;
                    self.advance_link(at, id, leaves);
                }
                Who::Node(id) if self.nodes[id.0].scheduled == Some(at) => {
                    self.nodes[id.0].scheduled = None;
                    let mut out = std::mem::take(&mut self.out);
                    if let Kind::Router(router) = &mut self.nodes[id.0].kind {
                        router.advance(at, &mut out);
                    }
                    self.send_all(at, id, out);
                }
                Who::Source(place) => self.send_cross(at, place),
                // A stale timer: it has been rescheduled since.
                _ => {}
            }
            self.deliver(leaves);
        }
        true
    }

    /// Delivers all packets carried by unimpaired links. These links do not use the event queue: in
    /// a chain of routers, one event for each link costs as much as the router itself.
    fn deliver(&mut self, leaves: &mut Leaves<'_>) {
        while let Some((at, id, packet)) = self.carried.pop_front() {
            let end = self.links[id.0].end;
            let mut out = std::mem::take(&mut self.out);
            self.nodes[end.0.0].take(at, end, packet, &mut out, leaves);
            self.send_all(at, end.0, out);
        }
    }

    fn advance_link(&mut self, at: Nanos, id: LinkId, leaves: &mut Leaves<'_>) {
        let direction = &mut self.links[id.0];
        let end = direction.end;
        let mut out = std::mem::take(&mut self.out);
        let node = &mut self.nodes[end.0.0];
        // No event is earlier than `at`, so all packets arrive at `at`. Any number can: those queued
        // after a slower one, when a delay has become shorter.
        let cross = &mut direction.cross;
        direction.link.advance_some(at, node.most_at_once(), |_, packet| {
            if packet.is_cross() {
                cross.arrived += 1;
                cross.arrived_bytes += u64::from(packet.length());
            } else {
                node.take(at, end, packet, &mut out, leaves);
            }
        });
        self.schedule_link(id);
        self.send_all(at, end.0, out);
    }

    fn send_cross(&mut self, now: Nanos, place: usize) {
        let Some((id, source)) = &mut self.sources[place] else { return };
        match source.next() {
            None => {
                self.sources[place] = None;
                return;
            }
            // Some packets have been skipped.
            Some(next) if next > now => {
                self.agenda.push(Reverse((next, Who::Source(place))));
                return;
            }
            Some(_) => {}
        }
        let (id, packet) = (*id, source.send());
        match source.next() {
            Some(next) => self.agenda.push(Reverse((next, Who::Source(place)))),
            None => self.sources[place] = None,
        }
        let Direction { link, cross, .. } = &mut self.links[id.0];
        cross.sent += 1;
        cross.sent_bytes += u64::from(packet.length());
        if self.memory >= self.room {
            link.refuse(now, &packet);
        } else {
            link.receive(now, packet);
        }
        self.schedule_link(id);
    }

    /// Sends a node's output, and updates the node's timer and memory.
    fn send_all(&mut self, now: Nanos, node: NodeId, mut out: Vec<(usize, Packet)>) {
        let Node { kind, scheduled, memory, .. } = &mut self.nodes[node.0];
        if let Kind::Router(router) = kind {
            let next = router.next();
            if next != *scheduled {
                *scheduled = next;
                self.agenda.extend(next.map(|next| Reverse((next, Who::Node(node)))));
            }
            let waiting = router.memory();
            if waiting != *memory {
                self.memory = self.memory - *memory + waiting;
                self.waiting = self.waiting - *memory + waiting;
                *memory = waiting;
            }
        }
        for (interface, packet) in out.drain(..) {
            self.send(now, node, interface, packet);
        }
        self.out = out;
    }

    fn send(&mut self, now: Nanos, node: NodeId, interface: usize, packet: Packet) {
        let Some(Some(id)) = self.nodes[node.0].links.get(interface).copied() else { return };
        let Direction { link, filters, filtered, memory, .. } = &mut self.links[id.0];
        if filters.is_empty() && self.memory < self.room && link.carry(&packet) {
            self.carried.push_back((now, id, packet));
            return;
        }
        if packet.count() > 1 {
            // Send each packet separately again.
            packet.split(|one| self.send(now, node, interface, one));
            return;
        }
        if filters.iter().any(|filter| filter.matches(packet.bytes())) {
            *filtered += 1;
            return;
        }
        let is_many = packet.segments().is_some() && link.settings().tells_packets_apart();
        let (others, room) = (self.memory - *memory, self.room);
        let has_reserve = self.waiting < room / 2 && self.memory < room + room / 8;
        let reserve = if has_reserve { OWN_BYTES } else { 0 };
        let mut receive = |packet| match link.memory() < reserve || others + link.memory() < room {
            true => link.receive(now, packet),
            false => link.refuse(now, &packet),
        };
        if is_many {
            packet.split(receive);
        } else {
            receive(packet);
        }
        self.schedule_link(id);
    }

    fn schedule_link(&mut self, id: LinkId) {
        let Direction { link, scheduled, memory, .. } = &mut self.links[id.0];
        self.memory = self.memory - *memory + link.memory();
        *memory = link.memory();
        let next = link.next();
        if next != *scheduled {
            *scheduled = next;
            self.agenda.extend(next.map(|next| Reverse((next, Who::Link(id)))));
        }
    }
}
