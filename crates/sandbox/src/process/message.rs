//! Messages of the control socket, in postcard's encoding. The switch sends a request, and the
//! process answers it.

use p4_object::vm::{MAX_KEYS, is_name};
use p4_object::{Digest, Key, MAX_DIGESTS, MAX_MAPS, Map};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use super::isolation::Isolation;
use crate::control::{MAX_PIECE, Operation, Piece};
use crate::maps::MapError;
use crate::program::{Executor, Limits};
use p4_object::bounded;

/// Version of the socket protocol and of the shared memory layout.
pub(super) const VERSION: u32 = 8;
/// Maximum length of the reason of a failure in characters.
const MAX_REASON: usize = 1000;

/// First message. The file descriptors of the rings and of the arena accompany it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    /// Protocol [`VERSION`] of the switch.
    pub(super) version: u32,
    /// Capacity of each ring.
    pub(super) places: u32,
    /// Number of queues.
    pub(super) queues: u32,
    pub(super) frames: u32,
    pub(super) frame_size: u32,
    /// Time to poll for packets before sleeping, in microseconds.
    pub(super) spin_us: u32,
    /// Memory limit in bytes, including shared memory.
    pub(super) memory: u64,
}

impl Hello {
    /// # Errors
    ///
    /// Describes the two versions if they differ.
    pub(super) fn check_version(&self) -> Result<(), String> {
        let (its, mine) = (self.version, VERSION);
        if its == mine {
            return Ok(());
        }
        Err(format!("the process speaks version {mine}, the switch version {its}"))
    }
}

/// Request of the switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Request {
    Hello(Hello),
    Load {
        limits: Limits,
        /// Monotonic time of the switch when it sends the request, in nanoseconds.
        now_ns: u64,
        #[serde(with = "serde_bytes")]
        object: Vec<u8>,
    },
    Apply(Vec<Operation>),
    Read {
        map: u32,
        from: u32,
        most: u32,
    },
    Get {
        map: u32,
        keys: Vec<Key>,
    },
    /// Runs a self-test packet on a fresh instance, after these changes.
    Test {
        setup: Vec<Operation>,
        port: u32,
        #[serde(with = "serde_bytes")]
        packet: Vec<u8>,
    },
}

/// Answer of the process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Answer {
    Isolated(Isolation),
    Ready {
        #[serde(deserialize_with = "bounded::<_, _, MAX_MAPS>")]
        maps: Vec<Map>,
        /// Keys of VM values that the program reads.
        #[serde(deserialize_with = "bounded::<_, _, MAX_KEYS>")]
        keys: Vec<String>,
        #[serde(deserialize_with = "bounded::<_, _, MAX_DIGESTS>")]
        digests: Vec<Digest>,
        executor: Executor,
    },
    /// The request failed, with the reason as text.
    Failed(String),
    Done,
    Refused {
        at: u32,
        why: MapError,
    },
    Piece(Piece),
    Values(#[serde(deserialize_with = "bounded::<_, _, MAX_PIECE>")] Vec<Option<ByteBuf>>),
    Tested {
        verdict: u32,
        port: u32,
        clone: Option<u32>,
        #[serde(with = "serde_bytes")]
        packet: Vec<u8>,
    },
}

impl Request {
    pub(super) fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        decode(bytes)
    }
}

impl Answer {
    pub(super) fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// Decodes an answer. Input is not trusted: the process may be compromised.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let answer = decode(bytes).filter(Self::is_valid)?;
        Some(match answer {
            // It is logged: it forges no line, and does not fill the log.
            Self::Failed(why) => {
                let line = |c: char| if c.is_control() { ' ' } else { c };
                Self::Failed(why.chars().take(MAX_REASON).map(line).collect())
            }
            answer => answer,
        })
    }

    fn is_valid(&self) -> bool {
        match self {
            Self::Ready { maps, keys, digests, .. } => {
                maps.iter().all(|map| map.check().is_ok())
                    && keys.iter().all(|key| is_name(key))
                    && digests.iter().all(|digest| digest.check().is_ok())
            }
            _ => true,
        }
    }
}

/// For the fuzzer: decodes an answer, which must be the same after encoding. Returns `None` if the
/// message is invalid.
#[doc(hidden)]
pub fn checked_answer(bytes: &[u8]) -> Option<()> {
    let answer = Answer::decode(bytes)?;
    let again = Answer::decode(&answer.encode());
    assert_eq!(again.as_ref(), Some(&answer), "an answer is the same after encoding");
    Some(())
}

fn encode(message: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(message)
        .expect("writing to memory does not fail, and all lengths are known")
}

/// Decodes a message that is neither truncated nor followed by other bytes.
fn decode<'b, T: Deserialize<'b>>(bytes: &'b [u8]) -> Option<T> {
    let (message, rest) = postcard::take_from_bytes(bytes).ok()?;
    rest.is_empty().then_some(message)
}

#[cfg(test)]
mod tests {
    use p4_object::{Entry, MapKind, WordRange};
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
            Operation::Fill { map: 2, count: 3, value: vec![6] },
            Operation::Values { map: 2, first: 1, bytes: vec![6, 7] },
            Operation::Write { map: 1, key: key.clone(), at: 3, bytes: vec![4, 5] },
        ];
        let hello = Hello {
            version: 1,
            places: 1,
            queues: 1,
            frames: 2,
            frame_size: 3,
            spin_us: 4,
            memory: 5,
        };
        let requests = [
            Request::Hello(hello),
            Request::Load { limits: Limits::default(), now_ns: 5, object: vec![1, 2, 3] },
            Request::Apply(batch.clone()),
            Request::Read { map: 1, from: 2, most: 3 },
            Request::Get { map: 1, keys: vec![key; 2] },
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
                executor: Executor::Native,
            },
            Answer::Failed("no".to_owned()),
            Answer::Done,
            Answer::Refused { at: 3, why: MapError::KeySize { given: 1, wanted: 2 } },
            Answer::Piece(Piece { entries: vec![entry], next: Some(3) }),
            Answer::Values(vec![]),
            Answer::Values(vec![None, Some(ByteBuf::new()), Some(ByteBuf::from(vec![1, 2]))]),
            Answer::Tested { verdict: 1, port: 2, clone: Some(3), packet: vec![4] },
        ];
        for answer in answers {
            let bytes = answer.encode();
            assert_eq!(Answer::decode(&bytes), Some(answer));
            assert_eq!(Answer::decode(&bytes[..bytes.len() - 1]), None);
        }
    }

    #[test]
    fn a_reason_is_a_short_line() {
        let failed = Answer::Failed(format!("no\n\x1b[31mforged{}", "x".repeat(1 << 20)));
        let Some(Answer::Failed(why)) = Answer::decode(&failed.encode()) else { panic!() };
        assert!(why.starts_with("no  [31mforged") && why.len() == MAX_REASON, "{why}");
    }

    #[test]
    fn keys_are_names_and_not_too_many() {
        let ready = |keys: &[&str]| {
            let keys = keys.iter().map(|key| (*key).to_owned()).collect();
            let ready =
                Answer::Ready { maps: vec![], keys, digests: vec![], executor: Executor::Native };
            Answer::decode(&ready.encode())
        };
        assert!(ready(&["a", "b"]).is_some() && ready(&["a"; MAX_KEYS]).is_some());
        assert_eq!((ready(&["two words"]), ready(&["a"; MAX_KEYS + 1])), (None, None));
    }

    #[test]
    fn a_piece_has_a_limit() {
        let entry = Entry { map: 0, key: Key::Bytes(vec![]), value: vec![] };
        let piece = |entries| {
            let piece = Piece { entries: vec![entry.clone(); entries], next: None };
            Answer::decode(&Answer::Piece(piece).encode())
        };
        assert!(piece(MAX_PIECE).is_some());
        assert_eq!(piece(MAX_PIECE + 1), None);
        let values = |count| Answer::decode(&Answer::Values(vec![None; count]).encode());
        assert!(values(MAX_PIECE).is_some());
        assert_eq!(values(MAX_PIECE + 1), None);
    }

    #[test]
    fn a_ternary_key_has_at_most_max_words() {
        let word = WordRange { mask: 0, from: 0, to: 0 };
        let get = |words| {
            let key = Key::Words(vec![word; words], 0);
            Request::decode(&Request::Get { map: 0, keys: vec![key] }.encode())
        };
        let most = p4_object::MAX_KEY as usize / 8;
        assert!(get(most).is_some());
        assert_eq!(get(most + 1), None);
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            Answer::decode(&bytes);
            Request::decode(&bytes);
        }
    }
}
