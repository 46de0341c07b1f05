//! Requests of users.

use std::collections::BTreeSet;
use std::net::IpAddr;

use api::in_one_line;
use model::{Application, Bandwidth, Class, Destination};
use pathfinder::{AppStatus, State, Verdict};
use store::Record;

use super::{Core, Entry};
use crate::message::{Message, Refusal, ToNode};
use crate::resolve::resolve;
use crate::view::{AlternativeView, AppView, Explained, InterfaceView, Limit, NodeView, Standing};

impl Core {
    pub(super) fn handle(&mut self, message: Message) {
        // A reply is dropped if the client has disconnected.
        match message {
            Message::Hello(hello, reply) => {
                let id = self.hello(*hello);
                let _ = reply.send(id);
            }
            Message::Telemetry { session, node, telemetry, received_at_ns } => {
                self.telemetry(session, &node, telemetry, received_at_ns);
            }
            Message::Assigned { session, node, assigned } => {
                self.assigned(session, &node, assigned);
            }
            Message::Ended { session, node } => self.ended(session, &node),
            Message::Add { application, dry_run, reply } => {
                let answer = self.add(*application, dry_run);
                let _ = reply.send(answer);
            }
            Message::Remove { name, reply } => {
                let answer = self.remove(&name);
                let _ = reply.send(answer);
            }
            Message::List { reply } => {
                let views = self.apps.values().map(|entry| self.view(entry)).collect();
                let _ = reply.send(views);
            }
            Message::Explain { name, reply } => {
                let _ = reply.send(self.explain(&name).map(Box::new));
            }
            Message::Network { reply } => {
                let _ = reply.send(self.network());
            }
            Message::Watch { reply } => {
                let _ = reply.send(self.decisions.subscribe());
            }
        }
    }

    /// Adds an application and decides immediately, so that the reply contains its path.
    fn add(&mut self, application: Application, dry_run: bool) -> Result<AppView, Refusal> {
        application.validate().map_err(|error| Refusal::Invalid(in_one_line(&error)))?;
        let name = application.name.clone();
        if self.apps.contains_key(&name) {
            return Err(Refusal::Exists(name));
        }
        resolve(&application, &self.ted)?;
        self.check_demand(&application)?;
        self.check_sids(&application)?;
        self.check_functions(&application)?;
        self.refresh();
        let color = self.free_color(&application)?;
        let record = Record::new(application, color);
        let color = record.color;
        if dry_run {
            let view = self.preview(Entry::new(record));
            self.decider.remove(color);
            return view;
        }
        self.store.put(&record).map_err(|error| Refusal::NotSaved(in_one_line(&error)))?;
        self.removed.remove(&name);
        self.apps.insert(name.clone(), Entry::new(record));
        self.resolve_entry(&name);
        self.decide();
        self.save_placement(&name);
        Ok(self.view(&self.apps[&name]))
    }

    /// Previews the placement of an application without sending anything to the nodes.
    fn preview(&mut self, mut entry: Entry) -> Result<AppView, Refusal> {
        let resolved = resolve(&entry.record.application, &self.ted)?;
        let demand = entry.demand(&resolved, &mut self.ted);
        let now = self.now();
        self.decider.add(demand, now);
        self.decider.place_alone(entry.record.color, now);
        entry.resolved = Some(resolved);
        Ok(self.view(&entry))
    }

    /// Rejects an application that would steer packets to SIDs: they would be encapsulated again
    /// and again.
    fn check_sids(&self, application: &Application) -> Result<(), Refusal> {
        let Destination::Prefix(prefix) = application.to else { return Ok(()) };
        let ends = self.ted.announcements().filter_map(|(a, _)| Some((&a.node, a.sids?.end)));
        match ends.into_iter().find(|(_, sid)| prefix.contains(&IpAddr::V6(sid.0))) {
            Some((node, sid)) if application.protocol.is_none() => Err(Refusal::Invalid(format!(
                "{prefix} contains the SIDs of {node} ({sid}): name a narrower prefix, or a protocol"
            ))),
            _ => Ok(()),
        }
    }

    /// Rejects a demand that no link could carry: it is a mistake, not a degraded application.
    fn check_demand(&self, application: &Application) -> Result<(), Refusal> {
        let Some(demand) = application.demand.filter(|_| application.class == Class::Bandwidth)
        else {
            return Ok(());
        };
        // A single unlimited link can carry any demand.
        let capacities: Option<Vec<Bandwidth>> = self.core_capacities().into_iter().collect();
        match capacities.and_then(|all| all.into_iter().max()) {
            Some(largest) if demand > largest => Err(Refusal::DemandTooLarge { demand, largest }),
            _ => Ok(()),
        }
    }

    /// Rejects a function that no node has ever announced. A function that is down may come back.
    fn check_functions(&self, application: &Application) -> Result<(), Refusal> {
        let announced = self.ted.announcements().flat_map(|(a, _)| &a.functions);
        let known: BTreeSet<&str> = announced.map(|function| function.name.as_str()).collect();
        match application.functions.iter().find(|name| !known.contains(name.as_str())) {
            Some(name) => Err(Refusal::NoFunction {
                name: name.clone(),
                known: known.into_iter().map(Into::into).collect(),
            }),
            None => Ok(()),
        }
    }

    /// The capacities of the links between routers.
    fn core_capacities(&self) -> Vec<Option<Bandwidth>> {
        let is_router = |name: &str| self.ted.announcement(name).is_some_and(|a| a.transit);
        self.ted
            .announcements()
            .filter(|(announcement, _)| announcement.transit)
            .flat_map(|(announcement, _)| &announcement.interfaces)
            .filter(|i| i.adjacencies.iter().any(|a| is_router(&a.neighbor)))
            .map(|i| i.capacity)
            .collect()
    }

    fn remove(&mut self, name: &str) -> Result<(), Refusal> {
        let Some(entry) = self.apps.get(name) else { return Err(self.no_application(name)) };
        let (color, from) = (entry.record.color, entry.record.application.from.clone());
        self.store.remove(name).map_err(|error| Refusal::NotSaved(in_one_line(&error)))?;
        self.apps.remove(name);
        self.removed.insert(name.into());
        self.decider.remove(color);
        self.command(&from, ToNode::Retract(color));
        Ok(())
    }

    fn no_application(&self, name: &str) -> Refusal {
        Refusal::NoApplication { name: name.into(), known: self.apps.keys().cloned().collect() }
    }

    pub(super) fn view(&self, entry: &Entry) -> AppView {
        let status = self.decider.app(entry.record.color);
        let standing = match status.as_ref().map(|status| status.state) {
            None | Some(State::Pending) => Standing::Pending,
            Some(State::Admitted) => Standing::Admitted,
            Some(State::Degraded { limit, free_bps }) => {
                Standing::Degraded { limit: self.ted.port_name(limit), free_bps }
            }
            Some(State::Unreachable) => Standing::Unreachable,
        };
        let path = |status: &AppStatus| status.path.as_ref().map(|path| self.node_names(path));
        AppView {
            application: entry.record.application.clone(),
            color: entry.record.color,
            standing,
            path: status.as_ref().and_then(path).unwrap_or_default(),
            functions_at: self.decider.served(entry.record.color),
            rate_bps: status.as_ref().map_or(0, |status| status.load.rate_bps),
            moves: entry.earlier_moves + status.as_ref().map_or(0, |status| status.moves),
            ipv4: status.as_ref().map(|s| s.lists.ipv4.clone()).unwrap_or_default(),
            ipv6: status.map(|s| s.lists.ipv6).unwrap_or_default(),
            error: entry.error(),
        }
    }

    fn explain(&self, name: &str) -> Result<Explained, Refusal> {
        let entry = self.apps.get(name).ok_or_else(|| self.no_application(name))?;
        let found = self.decider.explain(entry.record.color);
        let alternatives = found.map(|found| found.alternatives).unwrap_or_default();
        let alternative = |alternative: pathfinder::Alternative| AlternativeView {
            path: self.node_names(&alternative.path),
            cost: alternative.cost,
            limit: alternative.limit.map(|(port, free_bps)| Limit {
                port: self.ted.port_name(port),
                free_bps,
                capacity: self.ted.capacity(port),
                congested: self.decider.load(port).is_some_and(|load| load.congested),
            }),
            chosen: alternative.chosen,
            covers: alternative.verdict == Verdict::Covers,
            not_encodable: match alternative.verdict {
                Verdict::NotEncodable(error) => Some(error.to_string()),
                Verdict::Covers | Verdict::TooLittle => None,
            },
        };
        Ok(Explained {
            app: self.view(entry),
            alternatives: alternatives.into_iter().map(alternative).collect(),
            decision: entry.record.decision.clone(),
        })
    }

    pub(super) fn network(&self) -> Vec<NodeView> {
        let interface = |node: &str, interface: &model::AnnouncedInterface| {
            let port = self.ted.find_port(node, &interface.name);
            InterfaceView {
                interface: interface.clone(),
                load: port.and_then(|port| self.decider.load(port)).copied().unwrap_or_default(),
                reserved_bps: port.map_or(0, |port| self.decider.ledger().reserved(port)),
            }
        };
        self.ted
            .announcements()
            .map(|(announcement, alive)| NodeView {
                name: announcement.node.clone(),
                alive,
                transit: announcement.transit,
                sids: announcement.sids,
                functions: announcement.functions.clone(),
                interfaces: announcement
                    .interfaces
                    .iter()
                    .map(|found| interface(&announcement.node, found))
                    .collect(),
            })
            .collect()
    }
}
