//! REPLACE-C-SID (RFC 9800 section 4.2). The kernel does not have it: the oracle is a model of the RFC's
//! pseudocode in Python (`tests/models/replace_csid.py`).

use bpf::Srv6;
use bpf::measure::{run_once, verdict};
use bpf::srv6::{Sizes, types};
use testkit::Random;

use crate::bed::*;
use crate::model::{Model, hex, packets};

const PACKETS: u64 = 100_000;

/// Lengths of block and C-SID, in bits.
const LENGTHS: [(u8, u8); 6] = [(48, 32), (48, 16), (32, 16), (64, 32), (80, 32), (104, 16)];

/// The address of the SID's prefix. All of fd00::/16 has a route to the right.
const BYTES: [u8; 16] = [0xfd, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13];

/// Loads the program with an End of these lengths.
fn with_sid(block: u8, csid: u8, flags: u32) -> Srv6 {
    let mut plane = loaded(Sizes::default());
    let mut control = plane.control.read(0);
    control.sids[0].length[0] = block + csid;
    plane.control.write(0, control);
    let mut prefix = [0; 16];
    let length = usize::from((block + csid) / 8);
    prefix[..length].copy_from_slice(&BYTES[..length]);
    let value = types::sid {
        address: bpf::words(prefix.into()),
        length: block + csid,
        behavior: types::behavior::BEHAVIOR_END.0 as u8,
        flags: (types::sid_flag::SID_REPLACE_CSID.0 | flags) as u8,
        csid: ((block / 8) << 4) | (csid / 8),
        counter: 70,
        ..Default::default()
    };
    plane.sids.add(value).unwrap();
    plane
}

/// Returns a random packet to the SID: its lists are mostly valid, its C-SIDs often zero.
fn packet(random: &mut Random, block: u8, csid: u8) -> Vec<u8> {
    let count = 1 + random.below(4) as usize;
    let mut list = vec![0; 16 * count];
    for at in list.chunks_mut(usize::from(csid / 8)) {
        match random.below(3) {
            0 => {}
            // A C-SID with a single bit may look like a zero one to wrong code.
            1 => at[random.below(at.len() as u64) as usize] = 1 << random.below(8),
            _ => at.iter_mut().for_each(|byte| *byte = random.below(256) as u8),
        }
    }
    // Whole SIDs begin like the others, so that they have a route.
    for entry in list.chunks_mut(16).filter(|_| random.below(3) == 0) {
        entry[..4].copy_from_slice(&BYTES[..4]);
    }
    let left = random.below(count as u64 + 2) as u8;
    let last = if random.below(16) == 0 { random.below(8) as u8 } else { count as u8 - 1 };
    let mut srh = vec![59, 2 * count as u8, 4, left, last, 0, 0, 0];
    srh.extend(&list);
    srh.extend((0..random.below(40)).map(|byte| byte as u8));
    let mut packet = vec![0x60, 0, 0, 0, 0, srh.len() as u8, 43];
    packet.push(if random.below(16) == 0 { random.below(3) as u8 } else { 64 });
    packet.extend("fd00:9::1".parse::<std::net::Ipv6Addr>().unwrap().octets());
    let mut address = BYTES;
    let length = usize::from((block + csid) / 8);
    address[length..].iter_mut().for_each(|byte| *byte = random.below(256) as u8);
    address[15] = random.below(256) as u8;
    packet.extend(address);
    packet.extend(srh);
    packet
}

#[test]
fn root_replace_csid_does_what_the_pseudocode_says() {
    in_node(|| {
        ip("-6 route add fd00::/16 via fd00:b::2");
        let packets = packets(PACKETS);
        let mut model = Model::start("python3", "replace_csid.py");
        let mut random = Random::seeded();
        let mut forwarded = 0;
        for lengths in LENGTHS {
            for psp in [false, true] {
                let (block, csid) = lengths;
                let flags = if psp { types::sid_flag::SID_PSP.0 } else { 0 };
                let plane = with_sid(block, csid, flags);
                for _ in 0..packets / (2 * LENGTHS.len() as u64) {
                    let sent = packet(&mut random, block, csid);
                    let run = run_once(plane.program(), index("l"), &frame(&sent)).unwrap();
                    let question = format!("{block} {csid} {} {}", u8::from(psp), hex(&sent));
                    let expected = model.ask(&question);
                    // The next segment may have no route, or be of this node.
                    let found = match run.verdict {
                        verdict::REDIRECT => Ok(hex(&run.frame[14..])),
                        _ => Err(run.verdict),
                    };
                    match (&found, &expected) {
                        (Ok(found), Ok(expected)) if found == expected => forwarded += 1,
                        (Err(_), Err(_)) => {}
                        (Err(_), Ok(packet)) if has_tlvs(&sent) || !has_route(packet) => {}
                        _ => panic!("{lengths:?} {psp} {}: {found:?}, {expected:?}", hex(&sent)),
                    }
                }
            }
        }
        assert!(forwarded * 4 > packets, "{forwarded} of {packets}");
    });
}

/// Returns true if the SRH of a packet has TLVs, with which only the kernel processes packets.
fn has_tlvs(packet: &[u8]) -> bool {
    packet[41] / 2 > packet[44] + 1
}

/// Returns true if the destination of a packet has a route.
fn has_route(packet: &str) -> bool {
    packet[48..80].starts_with("fd00")
}
