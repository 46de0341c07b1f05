//! For any input, the program forwards, leaves or drops the frame, and counts it.

use bpf::measure::verdict;
use srv6::Form;
use testkit::Random;
use wire::protocol::{IPV4, IPV6};

use super::compare::{Account, hex, is_whole, tells_the_sender, wanted};
use super::differential::{ALL, packets};
use super::network::{BINDING, INSERTING, POLICIES, SIDS};
use super::node::{Node, with_node};
use super::packets::*;
use super::random::Dice;

/// Returns valid frames, one for each kind of entry.
pub(super) fn good() -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let v4 = V4::new("10.1.0.1", "10.2.0.1").with(&udp(9));
    let v6 = V6::new("fd00:9::9", "fd00:8::9", 17).with(&udp(9));
    for prefix in SIDS.iter().map(|sid| sid.0).chain([BINDING.0, INSERTING.0]) {
        let sid = prefix.split_once('/').unwrap().0;
        for (next_header, inner) in [(IPV4, &v4), (IPV6, &v6), (143, &ethernet(&[], 0x0800, &v4))] {
            frames.push(on_path(&[sid, "fd00:2::1"], 1, next_header, inner));
            frames.push(on_path(&["fd00:2::1", sid], 0, next_header, inner));
            frames.push(frame6(&V6::new("fd00:9::1", sid, next_header).with(inner)));
        }
    }
    for (n, (form, _)) in POLICIES.iter().enumerate() {
        if *form != Form::Insert {
            frames.push(frame4(&V4::new("10.1.0.1", &format!("10.10.{n}.9")).with(&udp(9))));
        }
        let dst = format!("fd00:3:{n:x}::9");
        frames.push(frame6(&V6::new("fd00:9::1", &dst, 17).with(&udp(9))));
    }
    frames
}

impl Node {
    /// Runs only the program on a frame, and checks that its result is complete.
    pub(super) fn survives(&self, frame: &[u8], account: &mut Account) {
        let run = self.program(frame);
        let told = tells_the_sender(frame, &run.frame);
        account.add(if told { verdict::DROP } else { run.verdict });
        let fine = match run.verdict {
            // The length of the frame is that of its header, or of the inner frame of End.DX2.
            verdict::REDIRECT => {
                wanted(&run.frame) == run.frame.len() || is_inside(frame, &run.frame)
            }
            verdict::PASS => is_whole(frame, &run.frame),
            verdict => verdict == verdict::DROP,
        };
        assert!(fine, "{} became {} {}", hex(frame), run.verdict, hex(&run.frame));
    }
}

fn is_inside(whole: &[u8], part: &[u8]) -> bool {
    whole.windows(part.len()).any(|window| window == part)
}

/// Returns the ratio of cases to those that a run has time for.
pub(super) fn cases_for_one() -> usize {
    ALL.div_ceil(packets()) as usize
}

/// Runs the test with entries in the kernel and without. Without, packets for the entries must not
/// reach the kernel.
pub(super) fn in_both(test: fn(&mut Node, bool, &mut Account)) {
    for in_kernel in [true, false] {
        with_node(move |node| {
            node.configure_all(in_kernel);
            let mut account = Account::default();
            test(node, in_kernel, &mut account);
            assert_eq!(Account::new(node), account, "{:?}", node.reasons());
            let declined = if in_kernel { account.left } else { account.dropped };
            assert!(account.forwarded > 0 && declined > 0, "{account:?}");
        });
    }
}

#[test]
fn root_malformed_cut_at_every_byte() {
    in_both(|node, in_kernel, account| {
        let mut cases = (0..cases_for_one()).cycle();
        for frame in good() {
            for length in 14..=frame.len() {
                if cases.next() != Some(0) && length < frame.len() {
                    continue;
                }
                let before = account.left;
                node.survives(&frame[..length], account);
                // A packet for an entry may be left to the kernel only if the kernel has the entry,
                // or if the packet is too short to be recognized.
                let told = length >= 54 || frame[12] == 8 && length >= 34;
                if !in_kernel && told && account.left > before {
                    panic!("{} goes on to the kernel", hex(&frame[..length]));
                }
            }
        }
    });
}

#[test]
fn root_malformed_every_byte_of_the_headers() {
    in_both(|node, _, account| {
        let mut cases = (0..cases_for_one()).cycle();
        for frame in good() {
            for at in 12..frame.len().min(110) {
                for value in [0, 1, 0x7f, 0x80, 0xff, frame[at] ^ 1, frame[at].wrapping_add(2)] {
                    if cases.next() != Some(0) {
                        continue;
                    }
                    let mut frame = frame.clone();
                    frame[at] = value;
                    node.survives(&frame, account);
                }
            }
        }
    });
}

#[test]
fn root_malformed_random() {
    in_both(|node, _, account| {
        let mut dice = Dice(Random::seeded());
        for _ in 0..packets() {
            node.survives(&dice.frame(), account);
        }
    });
}
