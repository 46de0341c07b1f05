//! The netlink socket: requests in batches, acknowledgements, dumps.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use netlink_packet_core::{DecodeError, Emitable};
use netlink_sys::SocketAddr;
use netlink_sys::protocols::NETLINK_ROUTE;
use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::{TimeVal, TimeValLike};

use crate::attribute::{self, u32_at};
use crate::{Error, Namespace, Result};

const NLMSG_ERROR: u16 = libc::NLMSG_ERROR as u16;
const NLMSG_DONE: u16 = libc::NLMSG_DONE as u16;
const HEADER: usize = 16;

pub(crate) const REQUEST: u16 = libc::NLM_F_REQUEST as u16;
pub(crate) const ACK: u16 = libc::NLM_F_ACK as u16;
pub(crate) const DUMP: u16 = libc::NLM_F_DUMP as u16;
pub(crate) const CREATE: u16 = libc::NLM_F_CREATE as u16;
pub(crate) const EXCL: u16 = libc::NLM_F_EXCL as u16;
pub(crate) const REPLACE: u16 = libc::NLM_F_REPLACE as u16;
const DUMP_INTR: u16 = libc::NLM_F_DUMP_INTR as u16;
const CAPPED: u16 = libc::NLM_F_CAPPED as u16;
const ACK_TLVS: u16 = libc::NLM_F_ACK_TLVS as u16;

/// Attempts at a dump that the kernel reports as inconsistent.
const DUMP_ATTEMPTS: u32 = 16;
/// Bytes and requests in one send. Only failures and the last request are acknowledged, and this
/// number of ACKs fits into the smallest default receive buffer.
const SEND_BYTES: usize = 64 << 10;
const SEND_REQUESTS: usize = 128;
/// Maximum size of a message from the kernel. An interface with the maximum number of alternative
/// names has 66 KiB.
pub(crate) const RECEIVE_BYTES: usize = 128 << 10;
const SOCKET_BUFFER: usize = 4 << 20;

/// A change requested from the kernel.
#[derive(Debug)]
pub struct Request {
    pub(crate) kind: u16,
    pub(crate) flags: u16,
    pub(crate) body: Vec<u8>,
    /// Errors that this request ignores.
    tolerated: Tolerated,
    /// Namespaces that the body refers to by descriptor; they stay open until the request is sent.
    pub(crate) namespaces: Vec<Arc<OwnedFd>>,
}

impl Request {
    pub(crate) fn new(kind: u16, flags: u16, body: Vec<u8>) -> Self {
        Self { kind, flags, body, tolerated: Tolerated::Nothing, namespaces: Vec::new() }
    }

    pub(crate) fn encode(kind: u16, flags: u16, message: &impl Emitable) -> Self {
        Self::new(kind, flags, bytes(message))
    }

    /// Treats `errno` as success: EEXIST for "create if missing".
    pub fn tolerate(mut self, errno: Errno) -> Self {
        self.tolerated = Tolerated::One(errno);
        self
    }

    /// Treats every error as success, for callers that check the result themselves.
    pub fn tolerate_any(mut self) -> Self {
        self.tolerated = Tolerated::Any;
        self
    }
}

/// Errors that a request ignores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tolerated {
    Nothing,
    One(Errno),
    Any,
}

impl Tolerated {
    fn has(self, errno: Errno) -> bool {
        self == Self::Any || self == Self::One(errno)
    }
}

/// The bytes of a message.
pub(crate) fn bytes(message: &impl Emitable) -> Vec<u8> {
    let mut body = vec![0; message.buffer_len()];
    message.emit(&mut body);
    body
}

/// Requests that are sent to the kernel together, each with the label that its error carries.
#[derive(Debug, Default)]
pub struct Batch(Vec<(String, Request)>);

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends `request`; `label` describes it in errors, such as `route fd00:0:1::/48 on r1`.
    pub fn push(&mut self, label: impl Into<String>, request: Request) -> &mut Self {
        self.0.push((label.into(), request));
        self
    }

    /// The number of pending requests.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are no pending requests.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// One message of a reply.
pub(crate) struct Answer<'a> {
    pub(crate) kind: u16,
    pub(crate) flags: u16,
    sequence: u32,
    pub(crate) body: &'a [u8],
}

/// Splits a received datagram into its messages.
pub(crate) fn answers(bytes: &[u8]) -> impl Iterator<Item = Answer<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = u32_at(rest, 0).ok()? as usize;
        let message = rest.get(..length).filter(|message| message.len() >= HEADER)?;
        let half = |at: usize| u16::from_ne_bytes([message[at], message[at + 1]]);
        let answer = Answer {
            kind: half(4),
            flags: half(6),
            sequence: u32_at(message, 8).ok()?,
            body: &message[HEADER..],
        };
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(answer)
    })
}

/// The result in an NLMSG_ERROR or NLMSG_DONE: None for success, or the error number and the
/// kernel's message.
fn verdict(answer: &Answer<'_>) -> Option<(Errno, Option<String>)> {
    let code = u32_at(answer.body, 0).unwrap_or(0) as i32;
    if code == 0 {
        return None;
    }
    // The header of the failed request follows and, unless the ACK is capped, its body; then
    // attributes.
    let skip = match answer.kind {
        NLMSG_DONE => 4,
        _ if answer.flags & CAPPED != 0 => 4 + HEADER,
        _ => 4 + u32_at(answer.body, 4).map_or(HEADER, |length| length as usize),
    };
    let attributes = answer.body.get(skip.next_multiple_of(4)..).unwrap_or_default();
    let message = (answer.flags & ACK_TLVS != 0)
        .then(|| attribute::each(attributes).flatten().find(|a| a.kind() == 1))
        .flatten()
        .map(|found| attribute::text(found.value()));
    Some((Errno::from_raw(-code), message))
}

/// A socket for one netlink protocol in one namespace.
#[derive(Debug)]
pub(crate) struct Socket {
    inner: netlink_sys::Socket,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Socket {
    /// Opens a socket in the calling thread's namespace.
    pub(crate) fn open(protocol: isize) -> Result<Self> {
        let failed = |source| Error::io("open a netlink socket", source);
        let mut inner = netlink_sys::Socket::new(protocol).map_err(failed)?;
        // SAFETY: `inner` owns the descriptor and outlives this function.
        let fd = unsafe { BorrowedFd::borrow_raw(inner.as_raw_fd()) };
        // Without privilege the default sizes remain, and SEND_REQUESTS fits them.
        let _ = setsockopt(&fd, sockopt::RcvBufForce, &SOCKET_BUFFER);
        let _ = setsockopt(&fd, sockopt::SndBufForce, &SOCKET_BUFFER);
        // The kernel replies within the send. A timeout means that a reply was lost.
        setsockopt(&fd, sockopt::ReceiveTimeout, &TimeVal::seconds(20))
            .map_err(|errno| failed(errno.into()))?;
        inner.bind_auto().map_err(failed)?;
        inner.connect(&SocketAddr::new(0, 0)).map_err(failed)?;
        inner.set_ext_ack(true).map_err(failed)?;
        inner.set_cap_ack(true).map_err(failed)?;
        // Linux 4.20 and later. Without it the kernel does not filter dumps.
        inner.set_netlink_get_strict_chk(true).map_err(failed)?;
        Ok(Self { inner, sequence: 0, buffer: vec![0; RECEIVE_BYTES] })
    }

    fn append(&mut self, out: &mut Vec<u8>, kind: u16, flags: u16, body: &[u8]) -> u32 {
        self.sequence = self.sequence.wrapping_add(1);
        let length = u32::try_from(HEADER + body.len()).expect("a request is a few KiB at most");
        out.extend_from_slice(&length.to_ne_bytes());
        out.extend_from_slice(&kind.to_ne_bytes());
        out.extend_from_slice(&flags.to_ne_bytes());
        out.extend_from_slice(&self.sequence.to_ne_bytes());
        out.extend_from_slice(&0u32.to_ne_bytes());
        out.extend_from_slice(body);
        out.resize(out.len().next_multiple_of(4), 0);
        self.sequence
    }

    fn send(&self, operation: &str, bytes: &[u8]) -> Result<()> {
        self.inner.send(bytes, 0).map(drop).map_err(|source| Error::io(operation, source))
    }

    /// Receives one datagram into the buffer and returns its length.
    fn receive(&mut self, operation: &str) -> Result<usize> {
        loop {
            match self.inner.recv(&mut &mut self.buffer[..], libc::MSG_TRUNC) {
                Ok(length) if length <= self.buffer.len() => return Ok(length),
                Ok(_) => return Err(Error::io(operation, Errno::EMSGSIZE)),
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                Err(source) => return Err(Error::io(operation, source)),
            }
        }
    }

    /// Sends `requests` and returns the first failure. Requests after a failed one may have been
    /// executed.
    pub(crate) fn commit(&mut self, requests: &[(String, Request)]) -> Result<()> {
        let mut rest = requests;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |(_, request): &&(String, Request)| {
                bytes += HEADER + request.body.len().next_multiple_of(4);
                bytes <= SEND_BYTES
            };
            let count = rest.iter().take(SEND_REQUESTS).take_while(fits).count().max(1);
            let (now, later) = rest.split_at(count);
            self.round(now)?;
            rest = later;
        }
        Ok(())
    }

    /// Sends one chunk of a batch and collects its ACKs.
    fn round(&mut self, requests: &[(String, Request)]) -> Result<()> {
        let mut out = Vec::new();
        let first = self.sequence.wrapping_add(1);
        for (index, (_, request)) in requests.iter().enumerate() {
            // Request an ACK for the last one only: the kernel executes requests in order and
            // reports each failure as it happens.
            let ack = if index + 1 == requests.len() { ACK } else { 0 };
            self.append(&mut out, request.kind, request.flags | REQUEST | ack, &request.body);
        }
        self.send(&requests[0].0, &out)?;
        let mut failure = None;
        loop {
            let length = self.receive(&requests[0].0)?;
            for answer in answers(&self.buffer[..length]) {
                let index = answer.sequence.wrapping_sub(first) as usize;
                // Skip echoes and the remains of an interrupted call.
                let Some((label, request)) = requests.get(index) else { continue };
                if answer.kind != NLMSG_ERROR {
                    continue;
                }
                if let Some((errno, message)) = verdict(&answer)
                    && !request.tolerated.has(errno)
                    && failure.is_none()
                {
                    failure = Some(Error::Kernel { operation: label.clone(), errno, message });
                }
                if index + 1 == requests.len() {
                    return failure.map_or(Ok(()), Err);
                }
            }
        }
    }

    /// Requests one object; `read` parses its message.
    pub(crate) fn get<T>(
        &mut self,
        operation: &str,
        kind: u16,
        body: &[u8],
        mut read: impl FnMut(&[u8]) -> Result<T, DecodeError>,
    ) -> Result<T> {
        let mut out = Vec::new();
        let sequence = self.append(&mut out, kind, REQUEST | ACK, body);
        self.send(operation, &out)?;
        let mut found = None;
        loop {
            let length = self.receive(operation)?;
            for answer in answers(&self.buffer[..length]) {
                if answer.sequence != sequence {
                    continue;
                }
                if answer.kind != NLMSG_ERROR {
                    found = Some(read(answer.body));
                } else if let Some((errno, message)) = verdict(&answer) {
                    return Err(Error::Kernel { operation: operation.into(), errno, message });
                } else {
                    let found = found.unwrap_or_else(|| Err("no object in it".into()));
                    return found
                        .map_err(|source| Error::Decode { operation: operation.into(), source });
                }
            }
        }
    }

    /// Dumps a table; `read` parses each entry, and returns None for entries to skip.
    pub(crate) fn dump<T>(
        &mut self,
        operation: &str,
        kind: u16,
        body: &[u8],
        mut read: impl FnMut(&[u8]) -> Result<Option<T>, DecodeError>,
    ) -> Result<Vec<T>> {
        for _ in 0..DUMP_ATTEMPTS {
            let (entries, is_interrupted) = self.dump_once(operation, kind, body, &mut read)?;
            if !is_interrupted {
                return Ok(entries);
            }
        }
        Err(Error::Unstable { operation: operation.into(), attempts: DUMP_ATTEMPTS })
    }

    /// One attempt at a dump, and true if the table changed during it.
    pub(crate) fn dump_once<T>(
        &mut self,
        operation: &str,
        kind: u16,
        body: &[u8],
        read: &mut impl FnMut(&[u8]) -> Result<Option<T>, DecodeError>,
    ) -> Result<(Vec<T>, bool)> {
        let mut out = Vec::new();
        let sequence = self.append(&mut out, kind, REQUEST | DUMP, body);
        self.send(operation, &out)?;
        let (mut entries, mut interrupted, mut failure) = (Vec::new(), false, None);
        loop {
            let length = match self.receive(operation) {
                Ok(length) => length,
                // The rest is received, since the kernel refuses another dump before its end.
                Err(why) if why.errno() == Some(Errno::EMSGSIZE) => {
                    failure = Some(why);
                    continue;
                }
                Err(why) => return Err(why),
            };
            for answer in answers(&self.buffer[..length]) {
                if answer.sequence != sequence {
                    continue;
                }
                interrupted |= answer.flags & DUMP_INTR != 0;
                if !matches!(answer.kind, NLMSG_DONE | NLMSG_ERROR) {
                    match read(answer.body) {
                        Ok(entry) => entries.extend(entry),
                        Err(source) => {
                            let operation = operation.into();
                            failure.get_or_insert(Error::Decode { operation, source });
                        }
                    }
                    continue;
                }
                if let Some((errno, message)) = verdict(&answer) {
                    return Err(Error::Kernel { operation: operation.into(), errno, message });
                }
                return failure.map_or(Ok((entries, interrupted)), Err);
            }
        }
    }
}

/// A netlink handle on the links, addresses, routes, rules, neighbors and queueing disciplines of
/// one namespace.
#[derive(Debug)]
pub struct Handle {
    pub(crate) socket: Socket,
}

impl Handle {
    /// A handle on the calling thread's namespace. It stays in that namespace even if the handle
    /// moves to another thread.
    pub fn new() -> Result<Self> {
        Ok(Self { socket: Socket::open(NETLINK_ROUTE)? })
    }

    /// A handle on `namespace`.
    pub fn within(namespace: &Namespace) -> Result<Self> {
        namespace.run(Self::new)?
    }

    /// Executes one request; `label` describes it in an error.
    pub fn request(&mut self, label: impl Into<String>, request: Request) -> Result<()> {
        self.socket.commit(&[(label.into(), request)])
    }

    /// Executes the whole batch in order and returns the first failure. Requests after a failed one
    /// may have been executed.
    pub fn commit(&mut self, batch: Batch) -> Result<()> {
        self.socket.commit(&batch.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::in_namespace;
    use crate::{add_bridge, delete_link};

    #[test]
    fn a_refusal_carries_the_kernels_sentence() {
        let mut body = (-libc::EINVAL).to_ne_bytes().to_vec();
        body.extend_from_slice(&[0; HEADER]);
        let mut attributes = attribute::Writer::default();
        attributes.put(2, &4u32.to_ne_bytes()).put_text(1, "Invalid prefix");
        body.extend_from_slice(&attributes.0);
        let answer =
            Answer { kind: NLMSG_ERROR, flags: CAPPED | ACK_TLVS, sequence: 1, body: &body };
        assert_eq!(verdict(&answer), Some((Errno::EINVAL, Some("Invalid prefix".into()))));
    }

    #[test]
    fn a_cut_answer_ends_the_reading() {
        let mut bytes = 20u32.to_ne_bytes().to_vec();
        bytes.extend_from_slice(&[0; 16]);
        assert_eq!(answers(&bytes).count(), 1);
        assert_eq!(answers(&bytes[..19]).count(), 0);
        assert_eq!(answers(&[0; 16]).count(), 0);
    }

    #[test]
    fn root_a_long_batch_works_and_names_the_failed_request() {
        in_namespace(|| {
            let mut handle = Handle::new().unwrap();
            let mut batch = Batch::new();
            for number in 0..300 {
                batch.push(format!("bridge b{number}"), add_bridge(&format!("b{number}"), None));
            }
            handle.commit(batch).unwrap();
            assert_eq!(handle.links().unwrap().len(), 301);

            let mut batch = Batch::new();
            batch.push("bridge new0", add_bridge("new0", None));
            batch.push("bridge b7", add_bridge("b7", None));
            batch.push("bridge new1", add_bridge("new1", None));
            let error = handle.commit(batch).unwrap_err();
            assert!(error.is_exists(), "{error}");
            assert!(error.to_string().starts_with("bridge b7: "), "{error}");

            let mut batch = Batch::new();
            batch.push("bridge b7", add_bridge("b7", None).tolerate(Errno::EEXIST));
            handle.commit(batch).unwrap();
            let error = handle.request("delete x", delete_link("x")).unwrap_err();
            assert!(error.is_not_found(), "{error}");
        });
    }
}
