//! Sends a frame through the program and through the kernel.

use std::collections::HashSet;
use std::fmt::Write;

use bpf::measure::{Run, run_once, verdict};

use super::node::{Left, Node, Side};
use crate::bed::{NODE_LEFT, index};

/// Result of the program, if it matches that of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Same {
    Forwarded(Vec<u8>),
    /// Left to the kernel, and therefore equal. True if the kernel forwarded it.
    Left(bool),
    Dropped,
    /// The sender was notified that its packet is too big. The kernel notifies the outer source.
    Told,
}

impl Node {
    /// Runs only the program on a frame from the left.
    pub(crate) fn program(&self, frame: &[u8]) -> Run {
        run_once(self.plane.program(), index("l"), frame).unwrap()
    }

    /// Sends a frame through both. The error describes the difference. If the kernel cannot have
    /// the SID, the result of the program is accepted.
    pub(crate) fn both(&mut self, frame: &[u8]) -> Result<Same, String> {
        let run = self.program(frame);
        if self.is_without_kernel(frame) {
            return Ok(match run.verdict {
                verdict::REDIRECT => Same::Forwarded(run.frame),
                verdict::PASS => Same::Left(false),
                _ => Same::Dropped,
            });
        }
        let kernel = self.kernel(frame);
        compare(frame, &run, &kernel)
            .map_err(|what| format!("{what}\n{}", describe(frame, &run, &kernel)))
    }

    /// Sends a frame that both must forward identically. Returns the forwarded frame.
    #[track_caller]
    pub(crate) fn forwards(&mut self, frame: &[u8]) -> Vec<u8> {
        match self.both(frame).unwrap_or_else(|what| panic!("{what}")) {
            Same::Forwarded(frame) => frame,
            other => panic!("{other:?}: {}\n{:?}", hex(frame), self.reasons()),
        }
    }

    /// Sends a frame that the program must leave to the kernel, or drop as the kernel does.
    #[track_caller]
    pub(crate) fn declines(&mut self, frame: &[u8]) {
        let same = self.both(frame).unwrap_or_else(|what| panic!("{what}"));
        assert!(!matches!(same, Same::Forwarded(_)), "forwarded: {}", hex(frame));
    }
}

fn compare(frame: &[u8], run: &Run, kernel: &Left) -> Result<Same, &'static str> {
    match run.verdict {
        verdict::PASS if !is_whole(frame, &run.frame) => Err("changed, and left to the kernel"),
        verdict::PASS => Ok(Same::Left(kernel.iter().any(|(_, out)| !is_error(out)))),
        verdict::DROP if !kernel.is_empty() => Err("dropped, and the kernel does not"),
        verdict::DROP => Ok(Same::Dropped),
        verdict::REDIRECT if tells_the_sender(frame, &run.frame) => {
            if kernel.iter().all(|(_, out)| is_error(out)) {
                Ok(Same::Told)
            } else {
                Err("the sender was told, and the kernel forwards")
            }
        }
        verdict::REDIRECT => {
            if kernel.is_empty() && is_no_packet(frame, &run.frame) {
                return Ok(Same::Forwarded(run.frame.clone()));
            }
            let [(side, expected)] = &kernel[..] else {
                return Err("forwarded, and the kernel does not, or more");
            };
            // A frame that End.DX2 decapsulates keeps its addresses and is sent to the right.
            let by = if run.frame[6..12] == NODE_LEFT { Side::Left } else { Side::Right };
            if by != *side {
                return Err("forwarded by another port");
            }
            let untagged = |frame: &[u8]| frame.len() - (layer3(frame) - 14);
            let before = wanted(frame).min(frame.len()) - (layer3(frame) - 14);
            let pushed = untagged(&run.frame) > before;
            if masked(&run.frame, pushed) != masked(expected, pushed) {
                return Err("forwarded otherwise");
            }
            Ok(Same::Forwarded(run.frame.clone()))
        }
        _ => Err("neither left, nor dropped, nor forwarded"),
    }
}

/// Returns true if a frame that was left to the kernel lacks only the padding after its packet,
/// which the kernel would remove itself.
pub(crate) fn is_whole(before: &[u8], after: &[u8]) -> bool {
    before == after || before.starts_with(after) && after.len() >= wanted(before)
}

/// Returns the length of a frame without padding. A jumbogram (RFC 2675) may be longer than its
/// header indicates.
pub(crate) fn wanted(frame: &[u8]) -> usize {
    let half = |at: usize| usize::from(u16::from_be_bytes([frame[at], frame[at + 1]]));
    let at = layer3(frame);
    match (frame.get(at - 2..at), frame.len() - at.min(frame.len())) {
        (Some([0x86, 0xdd]), 40..) if frame[at + 6] != 0 => at + 40 + half(at + 4),
        (Some([0x08, 0x00]), 20..) => at + half(at + 2),
        _ => frame.len(),
    }
}

/// Returns true if End.DX2 decapsulated a frame that the kernel drops, although RFC 8986 section
/// 4.9 does not: one with a length instead of an ethertype (IEEE 802.3), such as spanning tree
/// frames, or one with a truncated tag, which AF_PACKET sockets do not show.
pub(crate) fn is_no_packet(before: &[u8], after: &[u8]) -> bool {
    let before = &before[..wanted(before).min(before.len())];
    let taken_out = before.ends_with(after) && after.len() + 54 <= before.len();
    let cut_tag = after.len() < 18 && matches!(after[12..14], [0x81, 0x00] | [0x88, 0xa8]);
    taken_out && (after[12] < 6 || cut_tag)
}

/// Returns true for an error that the node itself sent: ICMP, or ICMPv6 with a type below 128.
pub(crate) fn is_error(frame: &[u8]) -> bool {
    match frame {
        [_, _, _, _, _, _, _, _, _, _, _, _, 0x86, 0xdd, ..] if frame.len() > 54 => {
            frame[20] == 58 && frame[54] < 128 && frame[22..28] == [0xfd, 0, 0, 0xa, 0, 0]
        }
        [_, _, _, _, _, _, _, _, _, _, _, _, 0x08, 0x00, ..] if frame.len() > 34 => {
            frame[23] == 1 && matches!(frame[34], 3 | 11 | 12)
        }
        _ => false,
    }
}

/// Returns the offset of layer 3, after up to two tags.
pub(crate) fn layer3(frame: &[u8]) -> usize {
    let is_tag = |at: usize| matches!(frame.get(at..at + 2), Some([0x81, 0x00] | [0x88, 0xa8]));
    let tags = (0..2).take_while(|tag| is_tag(12 + 4 * tag) && frame.len() >= 18 + 4 * tag);
    14 + 4 * tags.count()
}

/// Clears the flow label of an outer header that was pushed.
pub(crate) fn masked(frame: &[u8], pushed: bool) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let at = layer3(&frame);
    if pushed && frame.len() >= at + 4 {
        frame[at + 1] &= 0xf0;
        frame[at + 2..at + 4].fill(0);
    }
    frame
}

fn describe(frame: &[u8], run: &Run, kernel: &Left) -> String {
    let mut out = format!("  sent    {}\n  program {} ", hex(frame), run.verdict);
    let _ = writeln!(out, "{}", hex(&run.frame));
    for (side, frame) in kernel {
        let _ = writeln!(out, "  kernel  {side:?} {}", hex(frame));
    }
    if kernel.is_empty() {
        out.push_str("  kernel  nothing\n");
    }
    out
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// Number of packets that the program counted: those of entries, and by reason those that it left
/// to the kernel and that it dropped.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) forwarded: u64,
    pub(crate) left: u64,
    pub(crate) dropped: u64,
}

impl Account {
    pub(crate) fn new(node: &Node) -> Self {
        let mut account = Self::default();
        for (_, left, dropped) in node.reasons() {
            account.left += left;
            account.dropped += dropped;
        }
        let first = bpf::srv6::types::limit::LIMIT_REASONS.0;
        let of_sid = |sid: &u32| node.plane.sids.get(*sid).counter;
        let of_sids: HashSet<u32> = node.sids.iter().map(of_sid).collect();
        let others = (first..node.counters).filter(|counter| !of_sids.contains(counter));
        account.forwarded = others.map(|counter| node.plane.count(counter).packets).sum();
        for sid in &node.sids {
            account.forwarded += node.plane.count_of_sid(*sid).packets;
        }
        account
    }

    pub(crate) fn add(&mut self, verdict: u32) {
        match verdict {
            verdict::REDIRECT => self.forwarded += 1,
            verdict::PASS => self.left += 1,
            verdict::DROP => self.dropped += 1,
            other => panic!("verdict {other}"),
        }
    }
}

impl Node {
    /// Returns the reasons with nonzero counts: reason, left, dropped.
    pub(crate) fn reasons(&self) -> Vec<(u32, u64, u64)> {
        let reasons = bpf::srv6::types::reason::REASONS.0;
        let count = |counter| self.plane.count(counter).packets;
        let all = (0..reasons).map(|reason| (reason, count(reason), count(reasons + reason)));
        all.filter(|(_, left, dropped)| left + dropped > 0).collect()
    }
}

/// Returns true if `frame` notifies the sender of `sent` that it was too big.
pub(crate) fn tells_the_sender(sent: &[u8], frame: &[u8]) -> bool {
    // The reply has the tags of the original frame.
    let is_tag = |at: usize| matches!(frame.get(at..at + 2), Some([0x81, 0] | [0x88, 0xa8]));
    let l3 = 14 + 4 * [12, 16].into_iter().take_while(|at| is_tag(*at)).count();
    let ip = frame.get(l3..).unwrap_or_default();
    // An ICMP header and the quote.
    let (about, says) = match ip.first().map(|byte| byte >> 4) {
        Some(4) if ip.len() == 20 + 8 + 512 => (28, ip[9] == 1 && ip[20..22] == [3, 4]),
        Some(6) if ip.len() == 40 + 8 + 512 => (48, ip[6] == 58 && ip[40] == 2),
        _ => return false,
    };
    says && frame[..6] == sent[6..12] && sent[l3..].starts_with(&ip[about..])
}
