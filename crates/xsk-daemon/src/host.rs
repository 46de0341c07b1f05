//! Moves of programs to a process of the client (`isolation: inline`).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use p4runtime::{Alone, Plane};
use sandbox::process::{Host, Launcher, StartError};
use xsk_link::{ClientLink, Order};

/// A process of the client, as the host of a program.
#[derive(Debug)]
pub(crate) struct ClientHost {
    pub(crate) session: u64,
    pub(crate) link: Arc<ClientLink>,
    pub(crate) process: u32,
    /// Number of the program on the link.
    pub(crate) program: u64,
}

impl Host for ClientHost {
    fn start(&self, control: OwnedFd, bell: OwnedFd) -> io::Result<()> {
        let files = [control.as_raw_fd(), bell.as_raw_fd()];
        let order = Order::Host { program: self.program };
        self.link.send(&order, &files).map_err(io::Error::other)
    }

    fn end(&self) {
        let _ = self.link.send(&Order::Unhost { program: self.program }, &[]);
    }

    fn process(&self) -> u32 {
        self.process
    }
}

/// Place of a hosted program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) session: u64,
    /// Number of the program on the session's link.
    pub(crate) program: u64,
    /// Sequence number of the program.
    pub(crate) number: u64,
}

/// A move of a program to a process of the client, on a thread of its own: it waits for the
/// compiler there, and for each part of the tables.
pub(crate) struct Move {
    pub(crate) to: Place,
    done: Receiver<Result<(), StartError>>,
}

impl Move {
    /// Begins to move a program.
    pub(crate) fn begin(plane: Plane<Alone>, host: ClientHost, number: u64) -> io::Result<Self> {
        let to = Place { session: host.session, program: host.program, number };
        let launcher = Launcher::hosted(Arc::new(host));
        let (sender, done) = channel();
        let run = move || {
            let prepare = plane.with(|alone| alone.sandbox().prepare_move(&launcher));
            let moved = match prepare.map(|prepare| prepare()) {
                Some(Ok(prepared)) => {
                    plane.with(|alone| alone.sandbox().move_to(prepared, &|| plane.is_ending()))
                }
                Some(Err(why)) => Some(Err(why)),
                None => None,
            };
            // Without a program there is nothing to move. The daemon may have ended.
            let _ = sender.send(moved.unwrap_or(Err(StartError::Replaced)));
        };
        std::thread::Builder::new().name("xsk-move".to_owned()).spawn(run)?;
        Ok(Self { to, done })
    }

    /// Returns the result once the move is over.
    pub(crate) fn result(&self) -> Option<Result<(), StartError>> {
        match self.done.try_recv() {
            Ok(moved) => Some(moved),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(StartError::InvalidMessage)),
        }
    }
}
