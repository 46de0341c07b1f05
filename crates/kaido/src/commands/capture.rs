//! `kaido lab capture --link`: captures the packets that enter and leave an emulated link.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use ::capture::{Interface, Writer};
use anyhow::{Context, anyhow};
use api::v1;
use api::v1::captured_frame::{Deed, Gap};
use lab::Lab;
use nix::time::{ClockId, clock_gettime};
use output::capture::CapturedLink;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::failure::{Done, Failure};
use crate::foreign::is_own;
use crate::output::Output;
use crate::runtime::{asked_to_end, block_on};
use crate::target::Place;

/// Packet comments in the file.
pub(super) const CROSS: &str = "cross traffic";
pub(super) const REFUSED: &str = "no room in the emulator";
pub(super) const CHANGED: &str = "the link was changed before";
pub(super) const MISSED: &str = "packets are missing before";
/// Interface numbers in the file.
pub(super) const IN: u32 = 0;
pub(super) const OUT: u32 = 1;

/// The limits of a capture, unless it is ended earlier.
pub(super) struct Ends {
    /// Number of packets that have entered.
    pub(super) count: Option<u64>,
    /// Time since the start.
    pub(super) after: Option<Duration>,
}

/// The state that a replay needs: the comment of the first interface, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Origin {
    pub(super) link: String,
    pub(super) from: String,
    pub(super) does: String,
    /// Seconds added to the emulator's clock.
    pub(super) clock_offset_s: i64,
    pub(super) number: u64,
    pub(super) cross_number: u64,
    pub(super) is_bad: bool,
    pub(super) cross_is_bad: bool,
    pub(super) origin_ns: u64,
    pub(super) last_ns: u64,
    pub(super) opportunity: u64,
    pub(super) opportunity_used: u32,
}

#[derive(Debug, Default)]
struct Counts {
    entered: u64,
    left: u64,
    missed: u64,
}

/// Creates the file, or empties one of this user: another user's could be read by that user.
fn create(path: &Path) -> io::Result<File> {
    let place = Place::open(path)?;
    let file = match place.open_existing(File::options().write(true)) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            File::options().write(true).create_new(true).open(place.path())?
        }
        opened => opened?,
    };
    let found = file.metadata()?;
    if !is_own(&found) {
        return Err(io::Error::other("the file belongs to another user"));
    }
    if found.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}

/// An output file in progress.
struct Recording<'a> {
    link: &'a str,
    from: &'a str,
    /// The file before its header is written, which needs the position of the link.
    waiting: Option<BufWriter<File>>,
    writer: Option<Writer<BufWriter<File>>>,
    counts: Counts,
    most: u64,
}

pub(super) fn run(
    lab: &Lab,
    link: &str,
    from: Option<String>,
    path: &Path,
    ends: Ends,
    output: &Output,
) -> Done {
    let (socket, link) = lab.emulator(link)?;
    let first = || {
        let end = lab.segment(&link).ok()?.ends.first()?;
        Some(lab.topology().nodes[end.node].name.clone())
    };
    let from = from.or_else(first).unwrap_or_default();
    lab.check_sender(&link, &from)?;
    let cannot = || format!("cannot write {}", path.display());
    let mut recording = Recording {
        link: &link,
        from: &from,
        waiting: None,
        writer: None,
        counts: Counts::default(),
        most: ends.count.unwrap_or(u64::MAX),
    };
    block_on(async {
        let request = v1::CaptureEmulatedLinkRequest { link: link.clone(), from: from.clone() };
        let mut client = api::connect_emulator(&socket).await?;
        let mut stream =
            client.capture_emulated_link(request).await.map_err(Failure::of_emulator)?.into_inner();
        // Create the file only now: until the emulator has accepted the request, the existing file
        // may be the output of another capture of this link.
        let file = create(path).with_context(cannot).map_err(Failure::failed)?;
        recording.waiting = Some(BufWriter::new(file));
        let time = async {
            match ends.after {
                Some(after) => tokio::time::sleep(after).await,
                None => std::future::pending().await,
            }
        };
        let asked = asked_to_end();
        tokio::pin!(time, asked);
        loop {
            let message = tokio::select! {
                message = stream.message() => message.map_err(Failure::of_emulator)?,
                () = &mut time => return Ok(()),
                () = &mut asked => return Ok(()),
            };
            let Some(message) = message else {
                return Err(Failure::failed(anyhow!("the emulator exited")));
            };
            if !recording.take(message).with_context(cannot).map_err(Failure::failed)? {
                return Ok(());
            }
        }
    })
    // However the capture ends, the file has all packets received until then.
    .and_then(|done| {
        recording.finish().with_context(cannot).map_err(Failure::failed)?;
        done
    })?;
    let Counts { entered, left, missed } = recording.counts;
    let file = path.display().to_string();
    let captured = CapturedLink { link, from, file, entered, left, missed };
    output.print(&captured, |CapturedLink { link, from, file, .. }| {
        let lost = if missed == 0 { String::new() } else { format!(", {missed} missed") };
        let of = format!("{link} from {from}");
        format!("{of}: {entered} packets entered, {left} left{lost}: {file}")
    })?;
    Ok(ExitCode::SUCCESS)
}

impl Recording<'_> {
    /// Writes the frames of a message. Returns false once the packet limit is reached.
    fn take(&mut self, message: v1::CapturedFrames) -> std::io::Result<bool> {
        self.counts.missed = message.missed;
        if let Some(position) = message.position {
            self.begin(Some(position))?;
        }
        let Some(writer) = &mut self.writer else { return Ok(true) };
        for frame in message.frames {
            let mut words = Vec::new();
            words.extend(frame.is_cross.then_some(CROSS));
            words.extend((frame.deed() == Deed::Refused).then_some(REFUSED));
            words.extend(match frame.gap() {
                Gap::Unspecified => None,
                Gap::Changed => Some(CHANGED),
                Gap::Missed => Some(MISSED),
            });
            let (interface, count) = match frame.deed() {
                Deed::Left => (OUT, &mut self.counts.left),
                _ => (IN, &mut self.counts.entered),
            };
            writer.packet(interface, frame.at_ns, &frame.bytes, &words.join(", "))?;
            *count += 1;
            if self.counts.entered >= self.most {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn begin(&mut self, position: Option<v1::LinkPosition>) -> std::io::Result<()> {
        let Some(file) = self.waiting.take() else { return Ok(()) };
        let offset = clock_offset();
        let (link, from) = (self.link, self.from);
        let origin = position.map(|position| Origin {
            link: link.into(),
            from: from.into(),
            does: position.does,
            clock_offset_s: offset,
            number: position.number,
            cross_number: position.cross_number,
            is_bad: position.is_bad,
            cross_is_bad: position.cross_is_bad,
            origin_ns: position.origin_ns,
            last_ns: position.last_ns,
            opportunity: position.opportunity,
            opportunity_used: position.opportunity_used,
        });
        let comment = origin.map(|origin| json!(origin).to_string()).unwrap_or_default();
        let interface = |way: &str, comment: String| Interface {
            name: format!("{link} from {from}, {way}"),
            comment,
        };
        let interfaces = [interface("in", comment), interface("out", String::new())];
        self.writer = Some(Writer::begin(file, &interfaces, offset)?);
        Ok(())
    }

    fn finish(&mut self) -> std::io::Result<()> {
        self.begin(None)?;
        self.writer.take().map_or(Ok(()), |writer| writer.finish().map(drop))
    }
}

/// Returns the offset from the emulator's clock to the time of day, in whole seconds, which keeps
/// the nanoseconds unchanged.
fn clock_offset() -> i64 {
    let read = |clock| clock_gettime(clock).map_or(0, |time| time.tv_sec());
    read(ClockId::CLOCK_REALTIME) - read(ClockId::CLOCK_MONOTONIC)
}
