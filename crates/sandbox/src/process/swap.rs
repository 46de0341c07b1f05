//! Hitless replacement of a program by a new version.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use p4_object::{Map, MapKind};
use sandbox_queue::{Arena, Code, Decision, Reason};

use super::error::StartError;
use super::journal::Journal;
use super::message::{Answer, Request};
use super::peer::Peer;
use super::policy::Config;
use super::sandbox::{Sandbox, State, replay};
use super::spawn::Launcher;
use super::vm_feed::{self, VmFeed};
use crate::control::{ControlError, Maps, Operation};

/// Time limit for loading a program in a process that hosts it.
const MOVE_TIME: Duration = Duration::from_secs(5);

/// Expected outcome of a self-test packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// Expected decision.
    pub decision: Decision,
    /// Expected egress port of a clone.
    pub clone: Option<u32>,
    /// Expected packet; `None` to ignore its bytes.
    pub packet: Option<Vec<u8>>,
}

/// Self-test of a program before it takes over. Each packet runs on fresh maps with the setup
/// applied.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SelfTest {
    /// Changes to the maps before each packet.
    pub setup: Vec<Operation>,
    /// Ingress port, bytes and expected outcome of each packet.
    pub packets: Vec<(u32, Vec<u8>, Expected)>,
}

/// A program that is ready to take over, in its own process.
#[derive(Debug)]
pub struct Prepared {
    peer: Box<Peer>,
    /// Packet memory of the process.
    arena: Arc<Arena>,
    object: Arc<[u8]>,
    /// Journal of the new program, initially empty.
    journal: Journal,
}

impl Prepared {
    /// Maps of the new program.
    pub fn maps(&self) -> &[Map] {
        &self.peer.maps
    }
}

/// Prepares programs, in any thread, without delaying packets.
#[derive(Debug, Clone)]
pub struct Preparer {
    launcher: Launcher,
    config: Config,
    arena: Arc<Arena>,
    vm: Option<VmFeed>,
}

impl Preparer {
    /// Starts a process with a program and runs the self-test.
    ///
    /// # Errors
    ///
    /// Fails if the process does not start, or if the self-test fails.
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
                    check(Code::decode(verdict, port), clone, &packet, expected).map_err(wrong)?;
                }
                Answer::Failed(why) => return Err(wrong(why)),
                _ => return Err(StartError::InvalidMessage),
            }
        }
        // Parse the initial entries here, where no packet is waiting.
        let journal = Journal::new(&peer.maps, object);
        let arena = Arc::clone(&self.arena);
        Ok(Prepared { peer: Box::new(peer), arena, object: object.into(), journal })
    }
}

fn check(
    said: Option<Code>,
    clone: Option<u32>,
    packet: &[u8],
    expected: &Expected,
) -> Result<(), String> {
    let decision = match said {
        Some(Code::Drop) => Decision::Drop,
        Some(Code::Pass) => Decision::Pass,
        Some(Code::Redirect(port)) => Decision::Redirect(port),
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
    /// Returns a preparer for this sandbox.
    pub fn preparer(&self) -> Preparer {
        Preparer {
            launcher: self.launcher.clone(),
            config: self.config,
            arena: Arc::clone(&self.arena),
            vm: self.vm.clone(),
        }
    }

    /// Replaces the running program between two packets, after packets in flight have been
    /// answered. Maps that both versions have (same name, kind, key and value size) and that
    /// `carries` selects keep their contents. Then `changes` are applied. Returns the new version
    /// number.
    ///
    /// # Errors
    ///
    /// Returns the first failure; the old version then continues unchanged.
    pub fn swap(
        &mut self,
        prepared: Prepared,
        changes: &[Operation],
        carries: impl Fn(&Map) -> bool,
    ) -> Result<u64, StartError> {
        let Prepared { mut peer, arena, object, mut journal } = prepared;
        self.check_arena(&arena)?;
        self.carry_all(&mut peer, &mut journal, carries, &|| false)?;
        if !changes.is_empty() {
            self.change(&mut peer, changes.to_vec())?;
            changes.iter().cloned().for_each(|change| journal.note(change));
        }
        self.journal = Arc::new(journal);
        self.object = object;
        self.take_over(peer);
        Ok(self.version)
    }

    /// Returns a function that starts the running program in a process of another launcher, for
    /// [`Sandbox::move_to`]. It may run on any thread, and blocks until the program is compiled.
    pub fn prepare_move(
        &self,
        launcher: &Launcher,
    ) -> impl FnOnce() -> Result<Prepared, StartError> + Send + use<> {
        // A client that is stopped does not respond.
        let load_time = self.config.load_time.min(MOVE_TIME);
        let config = Config { load_time, ..self.config };
        let preparer = Preparer { launcher: launcher.clone(), config, ..self.preparer() };
        let object = Arc::clone(&self.object);
        move || preparer.prepare(&object, &SelfTest::default())
    }

    /// Moves the running program to a process of [`Sandbox::prepare_move`], with the contents of its
    /// maps. Packets in flight are judged there ([`Reason::Crashed`]). If that process is a host that
    /// ends, or if the program fails, it gets a process of this sandbox's own launcher again.
    ///
    /// # Errors
    ///
    /// Returns the first failure; the old process then continues. Fails if the prepared program is
    /// not the running one anymore, or if `is_over` returns true before all contents have moved.
    pub fn move_to(
        &mut self,
        prepared: Prepared,
        is_over: &dyn Fn() -> bool,
    ) -> Result<(), StartError> {
        let Prepared { mut peer, arena, object, mut journal } = prepared;
        self.check_arena(&arena)?;
        if object != self.object {
            return Err(StartError::Replaced);
        }
        self.carry_all(&mut peer, &mut journal, |_| true, is_over)?;
        self.journal = Arc::new(journal);
        self.last_end = Reason::Crashed;
        self.adopt(peer);
        Ok(())
    }

    /// Fails if a process was prepared for another sandbox: it would judge that one's packets.
    fn check_arena(&self, arena: &Arc<Arena>) -> Result<(), StartError> {
        match Arc::ptr_eq(arena, &self.arena) {
            true => Ok(()),
            false => Err(StartError::Replaced),
        }
    }

    /// Copies the maps that `carries` selects from the current process, after the packets in flight
    /// of the sandbox's own queue.
    fn carry_all(
        &mut self,
        peer: &mut Peer,
        journal: &mut Journal,
        carries: impl Fn(&Map) -> bool,
        is_over: &dyn Fn() -> bool,
    ) -> Result<(), StartError> {
        self.flush();
        // A process is killed at the deadline. A host is not late.
        let until = Instant::now() + 2 * self.config.deadline;
        while self.flying() > 0 && matches!(self.state, State::Running(_)) {
            self.collect();
            if Instant::now() > until {
                return Err(StartError::NotReady(io::ErrorKind::TimedOut.into()));
            }
        }
        if matches!(self.state, State::Evicted) {
            return Err(StartError::Evicted);
        }
        for (new, map) in (0..).zip(peer.maps.clone()) {
            let Some(old) = self.same(&map).filter(|_| carries(&map)) else { continue };
            match self.state {
                State::Running(_) => self.carry(old, peer, new, journal, is_over)?,
                // The tables are lost with the process; rebuild them from the journal as a restart
                // would.
                _ => self.replay_map(old, peer, new, journal)?,
            }
        }
        Ok(())
    }

    /// Index of the corresponding map in the current program.
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
        is_over: &dyn Fn() -> bool,
    ) -> Result<(), StartError> {
        let mut batch = vec![Operation::Clear { map: new }];
        let mut from = Some(0);
        let is_array = peer.maps.get(new as usize).is_some_and(|map| map.kind == MapKind::Array);
        while let Some(at) = from {
            if is_over() {
                return Err(StartError::Replaced);
            }
            let piece = self.read(old, at, u32::MAX).map_err(StartError::Carry)?;
            if is_array {
                batch.extend(Operation::nonzero_values(new, at, &piece.entries));
            } else {
                let entry = |entry| Operation::Put(p4_object::Entry { map: new, ..entry });
                batch.extend(piece.entries.into_iter().map(entry));
            }
            self.change(peer, batch.clone())?;
            batch.drain(..).for_each(|operation| journal.note(operation));
            from = piece.next;
        }
        Ok(())
    }

    fn replay_map(
        &mut self,
        old: u32,
        peer: &mut Peer,
        new: u32,
        journal: &mut Journal,
    ) -> Result<(), StartError> {
        journal.take_over(new, &self.journal, old);
        replay(peer, journal.of_map(new), &self.config)
    }

    fn change(&self, peer: &mut Peer, batch: Vec<Operation>) -> Result<(), StartError> {
        match peer.ask(&Request::Apply(batch), Instant::now() + self.config.answer_time) {
            Ok(Answer::Done) => Ok(()),
            Ok(_) => Err(StartError::Carry(ControlError::Gone)),
            Err(why) => Err(StartError::Carry(why)),
        }
    }
}
