//! Links to the processes of the client.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use xsk_link::{ClientLink, Error, Listener};

use crate::event::Event;
use crate::places::{MAX_SESSIONS, Places};
use crate::reader;
use crate::session::Session;

/// Gives links to the processes of the client that request one, in the background.
///
/// # Errors
///
/// Fails if the thread cannot be started.
pub(crate) fn listen(listener: Listener, events: SyncSender<Event>) -> io::Result<()> {
    let listen = move || {
        let (places, mut is_refusing) = (Places::default(), false);
        for number in 0.. {
            match listener.wait() {
                Ok(true) => {}
                Err(Error::Invalid) => continue,
                Ok(false) | Err(_) => return,
            }
            let Err(why) = link(number, &listener, &places, &events) else {
                is_refusing = false;
                continue;
            };
            // The client may not read its answers.
            let _ = listener.refuse();
            // Further requests do not fill the log.
            let was_refusing = std::mem::replace(&mut is_refusing, true);
            if !was_refusing && events.send(Event::Refused(why)).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("xsk-listen".to_owned()).spawn(listen).map(drop)
}

/// Links a process of the client as session `number`. Returns the reason if that fails.
fn link(
    number: u64,
    listener: &Listener,
    places: &Places,
    events: &SyncSender<Event>,
) -> Result<(), String> {
    let full = || format!("{MAX_SESSIONS} processes use AF_XDP already");
    let place = places.take().ok_or_else(full)?;
    let (link, end) = ClientLink::new().map_err(|why| why.to_string())?;
    let link = Arc::new(link);
    reader::start(number, Arc::clone(&link), place, events.clone())
        .map_err(|why| why.to_string())?;
    let session = Box::new(Session::new(link));
    // Before the client's first report.
    events.send(Event::Linked(number, session)).map_err(|why| why.to_string())?;
    // If it fails, the session ends with the client's end.
    listener.give(&end).map_err(|why| why.to_string())
}
