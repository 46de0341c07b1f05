//! Segment lists in the form of outer headers.

use std::net::Ipv6Addr;

use bpf::srv6::types::{self, outer_mode};
use srv6::{Form, Payload, SegmentList, SessionArgs};
use wire::{Ipv6, Srh, protocol};

use crate::Error;

/// Maximum length of an outer header in bytes (`LIMIT_OUTER` of `abi.h`).
const MAX: usize = types::limit::LIMIT_OUTER.0 as usize;

/// Returns the outer header from `source` along `segments`. Fields that depend on the packet are
/// zero: payload length, flow label, hop limit and the protocol of the inner packet. `session`: the
/// positions of the session, for payloads of GTP-U.
pub fn outer(
    source: Ipv6Addr,
    segments: &SegmentList,
    form: Form,
    session: Option<SessionArgs>,
) -> Result<types::outer, Error> {
    let path: Vec<Ipv6Addr> = segments.0.iter().map(|sid| sid.0).collect();
    let (&first, rest) = path.split_first().ok_or(Error::EmptyList)?;
    let inserted: Vec<Ipv6Addr>;
    let in_srh = match form {
        Form::EncapsRed => rest,
        Form::Encaps => &path[..],
        // The program replaces the last one by the packet's destination.
        Form::Insert => {
            inserted = path.iter().copied().chain([Ipv6Addr::UNSPECIFIED]).collect();
            &inserted
        }
    };
    let mut bytes = Vec::with_capacity(MAX);
    let next_header = if in_srh.is_empty() { 0 } else { protocol::ROUTING };
    let header = Ipv6 {
        dscp: 0,
        ecn: 0,
        flow_label: 0,
        payload_len: 0,
        next_header,
        hop_limit: 0,
        src: source,
        dst: first,
    };
    header.emit(&mut bytes);
    if !in_srh.is_empty() {
        let mut srh = Srh::of_path(0, in_srh);
        // With reduced encapsulation, the first segment is not in the list.
        let left = rest.len() + usize::from(form == Form::Insert);
        srh.segments_left = left.min(255) as u8;
        let failed = |_| Error::ListTooLong {
            segments: segments.clone(),
            most: form.longest(Payload::Packet),
        };
        srh.emit(&mut bytes).map_err(failed)?;
    }
    let mut outer = types::outer {
        length: bytes.len() as u16,
        has_srh: u8::from(!in_srh.is_empty()),
        mode: match (form, session) {
            (Form::Insert, _) => outer_mode::OUTER_INSERT.0 as u8,
            (_, Some(_)) => outer_mode::OUTER_GTP.0 as u8,
            (_, None) => outer_mode::OUTER_ENCAPS.0 as u8,
        },
        args_at: session.and_then(|session| session.segment).unwrap_or(0),
        source_at: session.map_or(0, |session| session.source),
        is_drop_in: u8::from(path.last() == Some(&Ipv6Addr::UNSPECIFIED)),
        ..types::outer::default()
    };
    let Some(room) = outer.header.get_mut(..bytes.len()) else {
        return Err(Error::ListTooLong {
            segments: segments.clone(),
            most: form.longest(Payload::Packet),
        });
    };
    room.copy_from_slice(&bytes);
    Ok(outer)
}

#[cfg(test)]
mod tests {
    use srv6::Sid;
    use wire::{Ipv6Packet, SrhPacket};

    use super::*;

    fn list(count: u16) -> SegmentList {
        SegmentList(
            (1..=count).map(|n| Sid(Ipv6Addr::from([0xfd00, n, 0, 0, 0, 0, 0, 1]))).collect(),
        )
    }

    #[test]
    fn headers_of_lists() {
        let source = "fd00::1".parse().unwrap();
        for (form, count, length) in [
            (Form::Encaps, 1, 64),
            (Form::Encaps, 10, 208),
            (Form::EncapsRed, 1, 40),
            (Form::EncapsRed, 2, 64),
            (Form::EncapsRed, 11, 208),
            (Form::Insert, 1, 80),
            (Form::Insert, 9, 208),
        ] {
            let made = outer(source, &list(count), form, None).unwrap();
            assert_eq!(usize::from(made.length), length);
            let packet = Ipv6Packet::new_checked(&made.header[..length]).unwrap();
            assert_eq!((packet.src(), packet.dst()), (source, list(1).0[0].0));
            if made.has_srh == 0 {
                assert_eq!((form, count), (Form::EncapsRed, 1));
                continue;
            }
            let srh = Srh::parse(&SrhPacket::new_checked(&made.header[40..length]).unwrap());
            let own = (form == Form::Insert).then_some(Ipv6Addr::UNSPECIFIED);
            assert_eq!(u16::from(srh.segments_left), count - 1 + u16::from(own.is_some()));
            let skipped = usize::from(form == Form::EncapsRed);
            let path: Vec<_> =
                list(count).0[skipped..].iter().map(|sid| sid.0).chain(own).collect();
            assert_eq!(srh.path().collect::<Vec<_>>(), path);
        }
    }

    #[test]
    fn lists_that_do_not_fit() {
        let source = "fd00::1".parse().unwrap();
        for (form, count, most) in
            [(Form::Encaps, 11, 10), (Form::EncapsRed, 12, 11), (Form::Insert, 10, 9)]
        {
            let error = outer(source, &list(count), form, None).unwrap_err();
            assert!(matches!(error, Error::ListTooLong { most: m, .. } if m == most), "{error}");
        }
        let none = outer(source, &SegmentList::default(), Form::Encaps, None);
        assert!(matches!(none, Err(Error::EmptyList)));
    }

    #[test]
    fn the_file_and_the_program_have_the_same_limits() {
        for form in [Form::Encaps, Form::EncapsRed, Form::Insert] {
            let list = |count| SegmentList(vec![Sid("fd00::1".parse().unwrap()); count]);
            let fits = |count| outer("fd00::".parse().unwrap(), &list(count), form, None).is_ok();
            let most = form.longest(Payload::Packet);
            assert!(fits(most) && !fits(most + 1), "{form:?}");
        }
    }
}
