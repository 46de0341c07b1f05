//! Threads that read the reports of the client's processes.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use xsk_link::ClientLink;

use crate::event::Event;
use crate::places::Place;

/// Starts to read the reports of a link as events of session `number`. `place` is free again when the
/// link is closed.
///
/// # Errors
///
/// Fails if there are too many threads.
pub(crate) fn start(
    number: u64,
    link: Arc<ClientLink>,
    place: Place,
    events: SyncSender<Event>,
) -> io::Result<()> {
    let read = move || {
        while let Ok(report) = link.receive() {
            if events.send(Event::Report(number, report)).is_err() {
                return;
            }
        }
        // The daemon may have ended.
        let _ = events.send(Event::Gone(number));
        ClientLink::close_last(link);
        drop(place);
    };
    std::thread::Builder::new().name("xsk-session".to_owned()).spawn(read).map(drop)
}
