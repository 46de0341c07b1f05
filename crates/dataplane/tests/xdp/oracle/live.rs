//! The program at work on the node's ports: what leaves the node then is what left it before.

use bpf::attach::{Attached, Mode};
use bpf::{Measure, measure::verdict};
use testkit::Random;

use super::compare::{is_error, is_no_packet, masked, tells_the_sender, wanted};
use super::differential::packets;
use super::node::{Left, with_node};
use super::random::Dice;
use crate::bed::index;

/// At most.
const PACKETS: u64 = 5000;

/// Whether the frame has an ICMP error of the node's own inside: the kernel numbers and limits them
/// as it goes, and puts them too into a tunnel where a route says so.
fn is_own_error(frame: &[u8]) -> bool {
    let from_node = |it: &[u8]| {
        matches!(it, [64, 1, _, _, 10, 0, 1 | 2, 1] | [58, 64, 0xfd, 0, 0, 0xa | 0xb, 0, 0])
    };
    frame.windows(8).any(from_node)
}

/// Without errors, and without the flow labels of headers that are new.
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

        // A port takes redirected frames only while its peer has a program of its own.
        let measure = Measure::load("fd00::".parse().unwrap()).unwrap();
        let attach = |name| Attached::new(measure.nothing(), index(name), Mode::Native).unwrap();
        let peers = node.among_peers(|| [attach("lp"), attach("rp")]);
        let attach = |name| Attached::new(node.plane.program(), index(name), Mode::Native).unwrap();
        let ports = [attach("l"), attach("r")];

        let mut redirected = 0;
        for (frame, before) in frames.iter().zip(before) {
            let alone = node.program(frame);
            // What XDP redirects is put out at the end of NAPI's turn, behind a marker of that turn.
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
