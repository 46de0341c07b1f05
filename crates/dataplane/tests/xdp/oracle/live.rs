//! The program attached to the node's ports: the output must be the same as without it.

use bpf::attach::{Attached, Mode};
use bpf::{Measure, measure::verdict};
use testkit::Random;

use super::compare::{is_error, is_no_packet, masked, tells_the_sender, wanted};
use super::differential::packets;
use super::node::{Left, with_node};
use super::random::Dice;
use crate::bed::index;

/// Maximum number of packets.
const PACKETS: u64 = 5000;

/// Returns true if the frame contains an ICMP error of the node itself. The kernel numbers and
/// rate-limits these errors, and encapsulates them too if a route says so.
fn is_own_error(frame: &[u8]) -> bool {
    let from_node = |it: &[u8]| {
        matches!(it, [64, 1, _, _, 10, 0, 1 | 2, 1] | [58, 64, 0xfd, 0, 0, 0xa | 0xb, 0, 0])
    };
    frame.windows(8).any(from_node)
}

/// Removes errors, and clears the flow labels of pushed headers.
fn comparable(sent: &[u8], left: Left) -> Left {
    let sent = wanted(sent).min(sent.len());
    let frames = left.into_iter().filter(|(_, frame)| !is_error(frame) && !is_own_error(frame));
    frames.map(|(side, frame)| (side, masked(&frame, frame.len() > sent))).collect()
}

#[test]
fn root_live_as_the_kernel_alone() {
    with_node(|node| {
        node.configure_all(true);
        let count = packets().min(PACKETS) as usize;
        let mut dice = Dice(Random::seeded());
        let frames: Vec<Vec<u8>> = std::iter::repeat_with(|| dice.frame())
            .filter(|frame| !node.is_without_kernel(frame))
            .take(count)
            .collect();
        let before: Vec<Left> =
            frames.iter().map(|frame| comparable(frame, node.kernel(frame))).collect();

        // A veth transmits redirected frames only while its peer has an XDP program.
        let measure = Measure::load("fd00::".parse().unwrap()).unwrap();
        let attach = |name| Attached::new(measure.nothing(), index(name), Mode::Native).unwrap();
        let peers = node.among_peers(|| [attach("lp"), attach("rp")]);
        let attach = |name| Attached::new(node.plane.program(), index(name), Mode::Native).unwrap();
        let ports = [attach("l"), attach("r")];

        let mut redirected = 0;
        for (frame, before) in frames.iter().zip(before) {
            let alone = node.program(frame);
            // Redirected frames are sent at the end of a NAPI poll, after a marker of the same
            // poll.
            let mut left = node.kernel(frame);
            left.extend(node.settle());
            let after = comparable(frame, left);
            redirected += usize::from(alone.verdict == verdict::REDIRECT);
            let told = tells_the_sender(frame, &alone.frame);
            if after != before && !is_no_packet(frame, &alone.frame) && !told {
                panic!("{}\nbefore {before:x?}\nafter {after:x?}", super::compare::hex(frame));
            }
        }
        assert!(redirected > count / 10);
        drop((ports, peers));
    });
}
