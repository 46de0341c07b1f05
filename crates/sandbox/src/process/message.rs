//! Messages of the control socket. The switch sends a request, and the process answers it.

use p4::object::{Digest, Entry, Key, Map};
use p4::vm::{MAX_KEYS, is_name};

use super::codec::{Reader, Writer};
use super::isolation::Isolation;
use crate::control::{Operation, Piece};
use crate::maps::MapError;
use crate::program::{Engine, Limits};

/// Version of the socket protocol and of the shared memory layout.
pub(super) const VERSION: u32 = 2;

/// First message. The file descriptors of the rings and of the arena accompany it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hello {
    /// Protocol [`VERSION`] of the switch.
    pub(super) version: u32,
    /// Capacity of each ring.
    pub(super) places: u32,
    pub(super) frames: u32,
    pub(super) frame_size: u32,
    /// Time to poll for packets before sleeping, in microseconds.
    pub(super) spin_us: u32,
    /// Memory limit in bytes, including shared memory.
    pub(super) memory: u64,
}

/// Request of the switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Request {
    Hello(Hello),
    Load(Limits, Vec<u8>),
    Apply(Vec<Operation>),
    Read {
        map: u32,
        from: u32,
        most: u32,
    },
    Get {
        map: u32,
        key: Key,
    },
    /// Runs a self-test packet on a fresh instance, after these changes.
    Test {
        setup: Vec<Operation>,
        port: u32,
        packet: Vec<u8>,
    },
}

/// Answer of the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Isolated(Isolation),
    Ready {
        maps: Vec<Map>,
        /// Keys of VM values that the program reads.
        keys: Vec<String>,
        digests: Vec<Digest>,
        engine: Engine,
    },
    /// The request failed, with the reason as text.
    Failed(String),
    Done,
    Refused {
        at: u32,
        why: MapError,
    },
    Piece(Piece),
    Value(Option<Vec<u8>>),
    Tested {
        verdict: u32,
        port: u32,
        clone: Option<u32>,
        packet: Vec<u8>,
    },
}

impl Request {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut to = Writer::default();
        match self {
            Self::Hello(hello) => {
                to.u8(0);
                let Hello { version, places, frames, frame_size, spin_us, memory } = *hello;
                [version, places, frames, frame_size, spin_us]
                    .into_iter()
                    .for_each(|number| to.u32(number));
                to.u64(memory);
            }
            Self::Load(limits, object) => {
                to.u8(1);
                to.u32(limits.instructions);
                to.u64(limits.memory);
                to.u64(limits.code as u64);
                to.bytes(object);
            }
            Self::Apply(batch) => {
                to.u8(2);
                to.count(batch.len());
                batch.iter().for_each(|operation| to.operation(operation));
            }
            Self::Read { map, from, most } => {
                to.u8(3);
                [*map, *from, *most].into_iter().for_each(|number| to.u32(number));
            }
            Self::Get { map, key } => {
                to.u8(4);
                to.u32(*map);
                to.key(key);
            }
            Self::Test { setup, port, packet } => {
                to.u8(5);
                to.count(setup.len());
                setup.iter().for_each(|operation| to.operation(operation));
                to.u32(*port);
                to.bytes(packet);
            }
        }
        to.0
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        let request = match from.u8()? {
            0 => Self::Hello(Hello {
                version: from.u32()?,
                places: from.u32()?,
                frames: from.u32()?,
                frame_size: from.u32()?,
                spin_us: from.u32()?,
                memory: from.u64()?,
            }),
            1 => {
                let instructions = from.u32()?;
                let memory = from.u64()?;
                let code = usize::try_from(from.u64()?).ok()?;
                Self::Load(Limits { instructions, memory, code }, from.bytes()?.to_vec())
            }
            2 => Self::Apply(from.all(Reader::operation)?),
            3 => Self::Read { map: from.u32()?, from: from.u32()?, most: from.u32()? },
            4 => Self::Get { map: from.u32()?, key: from.key()? },
            5 => Self::Test {
                setup: from.all(Reader::operation)?,
                port: from.u32()?,
                packet: from.bytes()?.to_vec(),
            },
            _ => return None,
        };
        from.0.is_empty().then_some(request)
    }
}

impl Answer {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut to = Writer::default();
        match self {
            Self::Isolated(isolation) => {
                to.u8(0);
                to.u32(isolation.bits());
            }
            Self::Ready { maps, keys, digests, engine } => {
                to.u8(1);
                to.count(maps.len());
                maps.iter().for_each(|map| to.map(map));
                to.count(keys.len());
                keys.iter().for_each(|key| to.bytes(key.as_bytes()));
                to.count(digests.len());
                digests.iter().for_each(|digest| to.digest(digest));
                to.u8(u8::from(*engine == Engine::Native));
            }
            Self::Failed(why) => {
                to.u8(2);
                to.bytes(why.as_bytes());
            }
            Self::Done => to.u8(3),
            Self::Refused { at, why } => {
                to.u8(4);
                to.u32(*at);
                to.map_error(*why);
            }
            Self::Piece(Piece { entries, next }) => {
                to.u8(5);
                to.count(entries.len());
                entries.iter().for_each(|entry| to.entry(entry));
                optional(&mut to, *next);
            }
            Self::Value(value) => {
                to.u8(6);
                to.u8(u8::from(value.is_some()));
                to.bytes(value.as_deref().unwrap_or_default());
            }
            Self::Tested { verdict, port, clone, packet } => {
                to.u8(7);
                to.u32(*verdict);
                to.u32(*port);
                optional(&mut to, *clone);
                to.bytes(packet);
            }
        }
        to.0
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        let answer = match from.u8()? {
            0 => Self::Isolated(Isolation::from_bits(from.u32()?)),
            1 => {
                let maps = from.all(Reader::map)?;
                let name = |from: &mut Reader<'_>| from.text().filter(|name| is_name(name));
                let keys = from.all(name)?;
                if keys.len() > MAX_KEYS {
                    return None;
                }
                let digests = from.all(Reader::digest)?;
                let engine = if from.u8()? == 1 { Engine::Native } else { Engine::Interpreter };
                Self::Ready { maps, keys, digests, engine }
            }
            2 => Self::Failed(from.text()?),
            3 => Self::Done,
            4 => Self::Refused { at: from.u32()?, why: from.map_error()? },
            5 => {
                let entries: Vec<Entry> = from.all(Reader::entry)?;
                Self::Piece(Piece { entries, next: maybe(&mut from)? })
            }
            6 => {
                let is_there = from.u8()? == 1;
                let value = from.bytes()?;
                Self::Value(is_there.then(|| value.to_vec()))
            }
            7 => Self::Tested {
                verdict: from.u32()?,
                port: from.u32()?,
                clone: maybe(&mut from)?,
                packet: from.bytes()?.to_vec(),
            },
            _ => return None,
        };
        from.0.is_empty().then_some(answer)
    }
}

fn optional(to: &mut Writer, number: Option<u32>) {
    to.u8(u8::from(number.is_some()));
    to.u32(number.unwrap_or_default());
}

/// Reads an optional number. The outer `None` means that the message is truncated.
fn maybe(from: &mut Reader<'_>) -> Option<Option<u32>> {
    let is_there = from.u8()? == 1;
    let number = from.u32()?;
    Some(is_there.then_some(number))
}

#[cfg(test)]
mod tests {
    use p4::object::{MapKind, WordRange};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_come_as_they_went() {
        let word = WordRange { mask: 7, from: 1, to: 2 };
        let entry = Entry { map: 3, key: Key::Words(vec![word], 9), value: vec![1, 2] };
        let key = Key::Bytes(vec![4]);
        let batch = vec![
            Operation::Put(entry.clone()),
            Operation::Delete { map: 1, key: key.clone() },
            Operation::Clear { map: 2 },
            Operation::Write { map: 1, key: key.clone(), at: 3, bytes: vec![4, 5] },
        ];
        let hello =
            Hello { version: 1, places: 1, frames: 2, frame_size: 3, spin_us: 4, memory: 5 };
        let requests = [
            Request::Hello(hello),
            Request::Load(Limits::default(), vec![1, 2, 3]),
            Request::Apply(batch.clone()),
            Request::Read { map: 1, from: 2, most: 3 },
            Request::Get { map: 1, key },
            Request::Test { setup: batch, port: 1, packet: vec![5; 9] },
        ];
        for request in requests {
            let bytes = request.encode();
            assert_eq!(Request::decode(&bytes), Some(request));
            assert_eq!(Request::decode(&bytes[..bytes.len() - 1]), None);
        }
        let map = Map {
            name: "m".to_owned(),
            kind: MapKind::Hash,
            key_size: 1,
            value_size: 2,
            max_entries: 3,
        };
        let answers = [
            Answer::Isolated(Isolation::from_bits(5)),
            Answer::Ready {
                maps: vec![map],
                keys: vec!["net.utilisation".to_owned()],
                digests: vec![Digest { name: "d".to_owned(), size: 4 }],
                engine: Engine::Native,
            },
            Answer::Failed("no".to_owned()),
            Answer::Done,
            Answer::Refused { at: 3, why: MapError::KeySize { given: 1, wanted: 2 } },
            Answer::Piece(Piece { entries: vec![entry], next: Some(3) }),
            Answer::Value(None),
            Answer::Value(Some(vec![])),
            Answer::Tested { verdict: 1, port: 2, clone: Some(3), packet: vec![4] },
        ];
        for answer in answers {
            let bytes = answer.encode();
            assert_eq!(Answer::decode(&bytes), Some(answer));
            assert_eq!(Answer::decode(&bytes[..bytes.len() - 1]), None);
        }
    }

    #[test]
    fn keys_are_names_and_not_too_many() {
        let ready = |keys: &[&str]| {
            let keys = keys.iter().map(|key| (*key).to_owned()).collect();
            let ready =
                Answer::Ready { maps: vec![], keys, digests: vec![], engine: Engine::Native };
            Answer::decode(&ready.encode())
        };
        assert!(ready(&["a", "b"]).is_some() && ready(&["a"; MAX_KEYS]).is_some());
        assert_eq!((ready(&["two words"]), ready(&["a"; MAX_KEYS + 1])), (None, None));
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            Answer::decode(&bytes);
            Request::decode(&bytes);
        }
    }
}
