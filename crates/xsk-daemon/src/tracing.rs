//! Traces of a running client: orders to its processes, and the packets that they report.

use xsk_link::{Direction, Traced};

use crate::daemon::Daemon;
use crate::error::Error;
use crate::program::Attached;
use crate::trace::{Trace, TracedPacket};

impl Daemon {
    pub(crate) fn trace(&mut self, trace: Trace) -> Result<(), Error> {
        self.end_trace();
        if self.trace.is_some() {
            return Err(Error::Tracing);
        }
        if let Some(name) = &trace.interface
            && !self.programs.iter().any(|one| one.port(name).is_some())
        {
            return Err(Error::NotAttached(name.clone()));
        }
        let packets = trace.left;
        self.trace = Some(trace);
        self.order_trace(packets);
        Ok(())
    }

    /// Ends the trace if nothing is wanted any more.
    pub(crate) fn end_trace(&mut self) {
        if self.trace.as_ref().is_some_and(Trace::is_over) {
            self.order_trace(0);
            self.trace = None;
        }
    }

    /// Asks all processes for a number of packets, or for no more.
    fn order_trace(&mut self, packets: u32) {
        let Some(trace) = self.trace.take() else { return };
        self.each_session(|session| {
            let orders = trace.orders(session, packets);
            orders.iter().try_for_each(|order| session.link.send(order, &[]))
        });
        self.trace = Some(trace);
    }

    /// Passes traced packets of a process on.
    pub(crate) fn traced(
        &mut self,
        number: u64,
        socket: u32,
        direction: Direction,
        packets: Vec<Traced>,
    ) {
        let (Some(trace), Some(session)) = (&mut self.trace, self.sessions.get(&number)) else {
            return;
        };
        let Some(of) = session.sockets.get(&socket) else { return };
        let is_it = |one: &&Attached| one.socket == socket && one.direction == direction;
        let attached = session.attached.iter().find(is_it);
        for packet in packets {
            trace.pass(TracedPacket {
                process: session.process,
                interface: of.interface.clone(),
                queue: of.queue,
                direction,
                tenant: attached.map(|one| self.programs[one.program].tenant.name.clone()),
                port: attached.map(|one| one.port),
                packet,
            });
        }
        self.end_trace();
    }
}
