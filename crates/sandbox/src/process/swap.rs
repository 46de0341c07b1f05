//! A new version of a program takes over.

use std::sync::Arc;
use std::time::Instant;

use p4::object::Map;

use super::arena::Arena;
use super::error::StartError;
use super::journal::Journal;
use super::message::{Answer, Request};
use super::peer::Peer;
use super::policy::Config;
use super::sandbox::{Decision, Sandbox, State, told_again};
use super::spawn::Launcher;
use super::verdicts::{self, Said};
use super::vm_feed::{self, VmFeed};
use crate::control::{ControlError, Maps, Operation};

/// What is to come of a packet in a self-test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// What is done with it.
    pub decision: Decision,
    /// Where a copy goes.
    pub clone: Option<u32>,
    /// Its bytes then; none: they are not looked at.
    pub packet: Option<Vec<u8>>,
}

/// Packets, and what has to come of them before a program takes over. Each runs on maps as the program
/// has them at first, with the changes made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SelfTest {
    /// Changes.
    pub setup: Vec<Operation>,
    /// Port and bytes of each packet, and what has to come of it.
    pub packets: Vec<(u32, Vec<u8>, Expected)>,
}

/// A program that is ready to take over, in a process of its own.
#[derive(Debug)]
pub struct Prepared {
    peer: Box<Peer>,
    object: Arc<[u8]>,
    /// Nothing has been done yet.
    journal: Journal,
}

impl Prepared {
    /// The new program's maps.
    pub fn maps(&self) -> &[Map] {
        &self.peer.maps
    }
}

/// Prepares programs, in any thread: packets are not kept waiting meanwhile.
#[derive(Debug, Clone)]
pub struct Preparer {
    launcher: Launcher,
    config: Config,
    arena: Arc<Arena>,
    vm: Option<VmFeed>,
}

impl Preparer {
    /// Starts a process with a program, and tests it.
    ///
    /// # Errors
    ///
    /// It does not start, or fails its test.
    pub fn prepare(&self, object: &[u8], test: &SelfTest) -> Result<Prepared, StartError> {
        let vm = self.vm.as_ref();
        let mut peer = Peer::start(&self.launcher, &self.config, &self.arena, object, vm)?;
        vm_feed::check(vm, &peer.keys)?;
        for (at, (port, packet, expected)) in test.packets.iter().enumerate() {
            let request =
                Request::Test { setup: test.setup.clone(), port: *port, packet: packet.clone() };
            let answer = peer.ask(&request, Instant::now() + self.config.answer_time);
            let wrong = |why: String| StartError::SelfTest { at, why };
            match answer.map_err(|why| wrong(why.to_string()))? {
                Answer::Tested { verdict, port, clone, packet } => {
                    check(verdicts::said(verdict, port), clone, &packet, expected)
                        .map_err(wrong)?;
                }
                Answer::Failed(why) => return Err(wrong(why)),
                _ => return Err(StartError::Nonsense),
            }
        }
        // The program's entries are read here, where no packet waits.
        let journal = Journal::new(&peer.maps, object);
        Ok(Prepared { peer: Box::new(peer), object: object.into(), journal })
    }
}

fn check(
    said: Option<Said>,
    clone: Option<u32>,
    packet: &[u8],
    expected: &Expected,
) -> Result<(), String> {
    let decision = match said {
        Some(Said::Drop) => Decision::Drop,
        Some(Said::Pass) => Decision::Pass,
        Some(Said::Redirect(port)) => Decision::Redirect(port),
        other => return Err(format!("{other:?} in place of {:?}", expected.decision)),
    };
    if decision != expected.decision {
        return Err(format!("{decision:?} in place of {:?}", expected.decision));
    }
    if clone != expected.clone {
        return Err(format!("a copy to {clone:?} in place of {:?}", expected.clone));
    }
    match &expected.packet {
        Some(wanted) if wanted != packet => Err("other bytes".to_owned()),
        _ => Ok(()),
    }
}

impl Sandbox {
    /// What prepares programs for this sandbox.
    pub fn preparer(&self) -> Preparer {
        Preparer {
            launcher: self.launcher.clone(),
            config: self.config,
            arena: Arc::clone(&self.arena),
            vm: self.vm.clone(),
        }
    }

    /// Lets a new version take over, between two packets: what is on its way is waited for. Maps that
    /// both versions have (name, kind, sizes of keys and values), and that `carries` says, come over with
    /// all that is in them; then the changes are made. Returns the version's number.
    ///
    /// # Errors
    ///
    /// What does not work; then the old version runs on as it was.
    pub fn swap(
        &mut self,
        prepared: Prepared,
        changes: &[Operation],
        carries: impl Fn(&Map) -> bool,
    ) -> Result<u64, StartError> {
        let Prepared { mut peer, object, mut journal } = prepared;
        // Deadlines see to it that this ends.
        self.flush();
        while self.flying() > 0 && matches!(self.state, State::Running(_)) {
            self.collect();
        }
        match self.state {
            State::Evicted => return Err(StartError::Evicted),
            State::Running(_) | State::Waiting(_) | State::Starting(_) => {
                for (new, map) in (0..).zip(peer.maps.clone()) {
                    let Some(old) = self.same(&map).filter(|_| carries(&map)) else { continue };
                    match self.state {
                        State::Running(_) => self.carry(old, &mut peer, new, &mut journal)?,
                        // Its tables went with the last process, but not what the next would have.
                        _ => self.tell_again(old, &mut peer, new, &mut journal)?,
                    }
                }
            }
        }
        if !changes.is_empty() {
            self.tell(&mut peer, changes.to_vec())?;
            changes.iter().cloned().for_each(|change| journal.note(change));
        }
        self.journal = journal;
        self.object = object;
        self.take_over(peer);
        Ok(self.version)
    }

    /// The place of a map like this one.
    fn same(&self, map: &Map) -> Option<u32> {
        let is_same = |other: &Map| {
            (&other.name, other.kind, other.key_size, other.value_size)
                == (&map.name, map.kind, map.key_size, map.value_size)
        };
        self.maps.iter().position(is_same).and_then(|at| u32::try_from(at).ok())
    }

    fn carry(
        &mut self,
        old: u32,
        peer: &mut Peer,
        new: u32,
        journal: &mut Journal,
    ) -> Result<(), StartError> {
        let mut batch = vec![Operation::Clear { map: new }];
        let mut from = Some(0);
        while let Some(at) = from {
            let piece = self.read(old, at, u32::MAX).map_err(StartError::Carry)?;
            let entry = |entry| Operation::Put(p4::object::Entry { map: new, ..entry });
            batch.extend(piece.entries.into_iter().map(entry));
            self.tell(peer, batch.clone())?;
            batch.drain(..).for_each(|operation| journal.note(operation));
            from = piece.next;
        }
        Ok(())
    }

    fn tell_again(
        &mut self,
        old: u32,
        peer: &mut Peer,
        new: u32,
        journal: &mut Journal,
    ) -> Result<(), StartError> {
        journal.take_over(new, &self.journal, old);
        let told = journal.operations().filter(|one| one.map() == new).cloned();
        told_again(peer, &told.collect::<Vec<_>>(), &self.config)
    }

    fn tell(&self, peer: &mut Peer, batch: Vec<Operation>) -> Result<(), StartError> {
        match peer.ask(&Request::Apply(batch), Instant::now() + self.config.answer_time) {
            Ok(Answer::Done) => Ok(()),
            Ok(_) => Err(StartError::Carry(ControlError::Gone)),
            Err(why) => Err(StartError::Carry(why)),
        }
    }
}
