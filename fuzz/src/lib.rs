//! Properties that hold for every input. The fuzz targets and the tests of this package call the
//! same functions; a panic is a finding.

mod network;

pub use network::network;

use wire::{
    Ethernet, EthernetPacket, Headers, Ipv4, Ipv4Packet, Ipv6, Ipv6Packet, Srh, SrhPacket, Udp,
    UdpPacket, Vlan, VlanPacket,
};

/// Frames and headers: a view is rejected, or reads only its own bytes. A value, emitted and parsed
/// again, is the same.
pub fn headers(input: &[u8]) {
    let _ = Headers::dissect(input);
    if let Ok(packet) = EthernetPacket::new_checked(input) {
        let mut out = Vec::new();
        Ethernet::parse(&packet).emit(&mut out);
        assert_eq!(out, input[..out.len()]);
    }
    if let Ok(packet) = VlanPacket::new_checked(input) {
        let _ = (packet.payload(), packet.drop_eligible());
        let mut out = Vec::new();
        Vlan::parse(&packet).emit(&mut out);
        assert_eq!(out, input[..out.len()]);
    }
    if let Ok(packet) = Ipv4Packet::new_checked(input) {
        let _ = (packet.payload(), packet.checksum_ok());
        let value = Ipv4::parse(&packet);
        let mut out = Vec::new();
        if value.emit(&mut out).is_ok() {
            out.resize(out.len() + usize::from(value.payload_len), 0);
            let again = Ipv4Packet::new_checked(&out).expect("what was written is a header");
            assert_eq!(Ipv4::parse(&again), value);
        }
    }
    if let Ok(packet) = Ipv6Packet::new_checked(input) {
        let _ = packet.payload();
        let mut out = Vec::new();
        Ipv6::parse(&packet).emit(&mut out);
        assert_eq!(out, input[..out.len()]);
    }
    if let Ok(packet) = UdpPacket::new_checked(input) {
        let _ = packet.payload();
        let mut out = Vec::new();
        if Udp::parse(&packet).emit(&mut out).is_ok() {
            assert_eq!(out, input[..out.len()]);
        }
    }
    srh(input);
}

fn srh(input: &[u8]) {
    let Ok(packet) = SrhPacket::new_checked(input) else { return };
    let _ = packet.payload();
    let value = Srh::parse(&packet);
    assert!(usize::from(value.segments_left) <= value.segments.len());
    let mut out = Vec::new();
    value.emit(&mut out).expect("what was read can be written");
    let again = SrhPacket::new_checked(&out).expect("what was written is a header");
    assert_eq!(Srh::parse(&again), value);
}

/// Data plane files: accepted, or rejected with at least one error message.
pub fn dataplane_file(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Err(problems) = dataplane_file::parse("fuzz.yaml", text) {
        assert!(!problems.to_string().is_empty());
    }
}

/// Topology files: accepted, or rejected with at least one error message.
pub fn topology_file(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Err(problems) = topology_file::parse("fuzz.yaml", text) {
        assert!(!problems.to_string().is_empty());
    }
}

/// Lab files of other programs, in each format: rejected with a message, or imported as a valid
/// topology file that contains every note.
pub fn imports(input: &[u8]) {
    use import::Format::{Containerlab, Kathara, Miniedit};
    let Ok(text) = std::str::from_utf8(input) else { return };
    let beside = import::Beside { name: "a.startup".into(), text: text.into() };
    for format in [Containerlab, Kathara, Miniedit] {
        match import::import(format, "fuzz", "fuzz", text, std::slice::from_ref(&beside)) {
            Ok(imported) => {
                assert!(topology_file::parse("made", &imported.topology).is_ok());
                assert!(imported.notes.iter().all(|note| imported.topology.contains(&note.text)));
            }
            Err(problems) => assert!(!problems.to_string().is_empty()),
        }
    }
}

/// P4 programs: checked, or rejected with a message. A checked program compiles to a verifiable
/// object, or is rejected with a message. The program may include itself up to the nesting limit.
pub fn p4_program(input: &[u8]) {
    struct Itself<'t>(&'t str);

    impl p4::Includes for Itself<'_> {
        fn read(&self, name: &str, _: &str, _: bool) -> Result<(String, String), String> {
            Ok((name.to_owned(), self.0.to_owned()))
        }
    }

    let Ok(text) = std::str::from_utf8(input) else { return };
    let checked = p4::check("program.p4", text, &Itself(text));
    let said = checked.diagnostics.render(&checked.sources, false);
    assert_eq!(said.is_empty(), checked.diagnostics.iter().next().is_none());
    if checked.diagnostics.has_errors() {
        return;
    }
    match p4_ebpf::compile(&checked.program, &checked.sources) {
        Ok(compiled) => p4_object::verify(&compiled.object).expect("what is compiled can be run"),
        Err(why) => assert!(why.has_errors()),
    }
}

/// Objects: rejected, or unchanged after being written and read again.
pub fn p4_object(input: &[u8]) {
    let Ok(mut object) = p4_object::read(input) else { return };
    // Line information is normalised on writing.
    object.lines = p4_object::Lines::default();
    if p4_object::verify(&object).is_ok() {
        let bytes = p4_object::write(&object).expect("what it refers to is there");
        assert_eq!(p4_object::read(&bytes).as_ref(), Ok(&object));
    }
}

/// Answers of a tenant's process, which may be compromised: rejected, or the same after encoding.
pub fn sandbox_answer(input: &[u8]) {
    let _ = sandbox::process::checked_answer(input);
}

/// Shared memory of a VM: rejected with a message, or entries with valid names. Computing their
/// ages never panics.
pub fn vm_info(input: &[u8]) {
    let said = match vminfo::parse(input) {
        Ok(said) => said,
        Err(why) => return assert!(!why.to_string().is_empty()),
    };
    assert!(said.entries.len() <= vminfo::layout::MAX_KEYS);
    let mut ages = vminfo::Ages::default();
    let before = vminfo::Publication { beat: said.beat.wrapping_sub(1), ..said.clone() };
    for now_ns in [0, said.now_ns, u64::MAX] {
        ages.hear(&before, now_ns);
        ages.hear(&said, now_ns);
        for entry in &said.entries {
            assert!(vminfo::is_name(&entry.name));
            let aged = ages.of(&said, &entry.name);
            assert_eq!(aged.map(|one| one.value), entry.value);
            let Some(aged) = aged else { continue };
            assert!(!(said.ended && aged.is_fresh(now_ns)));
            assert!(aged.age_ns(now_ns) >= said.now_ns.saturating_sub(entry.at_ns).min(1 << 62));
        }
    }
}
