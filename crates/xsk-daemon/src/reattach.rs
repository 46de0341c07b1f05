//! Attachments whose program has another process.

use xsk_link::{Error, Order};

use crate::program::{Attached, Program};
use crate::session::Session;

/// Moves the attachments of a program to its new process, or ends them if there is none.
pub(crate) fn reattach(
    number: u64,
    session: &mut Session,
    its: &Program,
    program: usize,
) -> Result<(), Error> {
    for at in 0..session.attached.len() {
        let attached = &session.attached[at];
        // A socket that was opened after the process had started has it already.
        if attached.program != program || attached.incarnation == Some(its.seen) {
            continue;
        }
        let old = attached.clone();
        // The process of another program goes on until it is drained.
        let has_ended = old.incarnation.is_some_and(|old| old.0 == its.seen.0);
        if has_ended {
            let (flying, later) = its.without_verdict;
            let order = Order::Ended { attachment: old.attachment, flying, later };
            session.link.send(&order, &[])?;
            session.attached[at].incarnation = None;
        }
        let to = Attached { attachment: session.number(), ..old.clone() };
        if let Some(incarnation) = its.attach(number, &session.link, &to)? {
            if old.incarnation.is_some() && !has_ended {
                session.draining.push(old);
            }
            session.attached[at] = Attached { incarnation: Some(incarnation), ..to };
        }
    }
    Ok(())
}
