//! A queue of an interface: moves packets between its judged socket and the plain one of the peer.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use xsk::{CHUNK, Consumer, Descriptor, Frames, Kind, Offsets, Producer, Ring, RingMemory, Umem};
use xsk_client::{Area, ClientRings, LongestFrame, Memory, QueueName, kick};

use crate::error::Error;

/// Entries of each ring.
const ENTRIES: u32 = 1024;
/// Chunks for packets of one direction, so that one that is stuck does not stop the other.
const CHUNKS: u32 = 2048;
/// Time for which a thread polls for verdicts, which take microseconds, before it sleeps.
const SPIN: Duration = Duration::from_millis(1);
/// Sleep of a thread whose packets wait for a process or for an interface.
const SHORT: Duration = Duration::from_millis(1);
/// Maximum sleep: another thread may have moved a packet in between.
const LONG: Duration = Duration::from_millis(5);

/// This side's ends of a socket's rings.
struct Ends {
    rx: Consumer<Descriptor>,
    tx: Producer<Descriptor>,
    fill: Producer<u64>,
    completion: Consumer<u64>,
}

impl Ends {
    /// # Safety
    ///
    /// The rings are valid while the ends exist, and have no other ends on this side.
    unsafe fn new(rx: &Ring, tx: &Ring, fill: &Ring, completion: &Ring) -> Self {
        // SAFETY: required by this function as well.
        unsafe {
            Self {
                rx: Consumer::new(rx),
                tx: Producer::new(tx),
                fill: Producer::new(fill),
                completion: Consumer::new(completion),
            }
        }
    }

    /// Gives free chunks to the fill ring.
    fn refill(&mut self, free: &mut Vec<u64>) {
        let count = (self.fill.free() as usize).min(free.len());
        if count > 0 {
            free.drain(free.len() - count..).for_each(|chunk| self.fill.put(chunk));
            self.fill.publish();
        }
    }

    /// Takes the transmitted chunks.
    fn reclaim(&mut self, free: &mut Vec<u64>) {
        let count = self.completion.available();
        for _ in 0..count {
            let address = self.completion.take();
            free.push(address - address % u64::from(CHUNK));
        }
        if count > 0 {
            self.completion.release();
        }
    }
}

/// Moves received packets to the TX ring of the other socket. Returns their number.
fn forward(from: &mut Ends, to: &mut Ends) -> u32 {
    let count = from.rx.available().min(to.tx.free());
    for _ in 0..count {
        let Descriptor { address, length, .. } = from.rx.take();
        to.tx.put(Descriptor { address, length, options: 0 });
    }
    if count > 0 {
        to.tx.publish();
        from.rx.release();
    }
    count
}

/// The sockets of a queue before they are connected with the programs.
pub(crate) struct Sockets {
    umem: Arc<Umem>,
    client: ClientRings,
    interface: xsk::Socket,
}

impl Sockets {
    /// Opens the socket of the interface, which no packet reaches yet.
    pub(crate) fn new(interface: u32, queue: u32) -> Result<Self, xsk::Error> {
        let umem = Arc::new(Umem::new(2 * CHUNKS)?);
        let interface = xsk::Socket::open(&umem, ENTRIES, None, interface, queue)?;
        let ring = |kind: Kind| {
            let made = RingMemory::new(Offsets::OWN, ENTRIES, kind.words());
            made.map(Arc::new).map_err(xsk::Error::Rings)
        };
        let client = ClientRings {
            fill: ring(Kind::Fill)?,
            completion: ring(Kind::Completion)?,
            rx: ring(Kind::Rx)?,
            tx: ring(Kind::Tx)?,
        };
        Ok(Self { umem, client, interface })
    }

    /// Opens the socket of the peer's inner end, in the calling thread's namespace.
    pub(crate) fn open_peer(&self, inner: u32, queue: u32) -> Result<xsk::Socket, xsk::Error> {
        xsk::Socket::open(&self.umem, ENTRIES, Some(&self.interface), inner, queue)
    }

    /// Socket of the interface.
    pub(crate) fn interface(&self) -> &xsk::Socket {
        &self.interface
    }
}

/// A queue with its programs.
pub(crate) struct Queue {
    judged: Ends,
    plain: Ends,
    /// Free chunks for packets from the interface.
    inward: Vec<u64>,
    /// Free chunks for packets to the interface.
    outward: Vec<u64>,
    socket: Arc<xsk_client::Socket>,
    interface: xsk::Socket,
    peer: xsk::Socket,
}

impl Drop for Queue {
    fn drop(&mut self) {
        // The link's thread advances all sockets. It must not use the rings of `interface` any more.
        xsk_client::delete(&self.socket);
    }
}

impl Queue {
    /// Waits until the daemon has attached the program of the interface's tenant. `longest` are the
    /// frames to the users, and to the interface.
    pub(crate) fn open(
        sockets: Sockets,
        peer: xsk::Socket,
        name: QueueName,
        longest: &[LongestFrame; 2],
    ) -> Result<Self, Error> {
        let Sockets { umem, client, interface } = sockets;
        // SAFETY: the client's rings are kept by the socket, whose ends these are.
        let judged = unsafe {
            let views = [client.rx.view(), client.tx.view()];
            Ends::new(&views[0], &views[1], &client.fill.view(), &client.completion.view())
        };
        // SAFETY: the socket is kept with its ends, and has no others.
        let plain = unsafe {
            let [fill, completion, rx, tx] = Kind::ALL.map(|kind| peer.rings.ring(kind));
            Ends::new(rx, tx, fill, completion)
        };
        let memory = Memory {
            frames: Arc::new(Frames::new(umem.bytes(), CHUNK, false)),
            area: Area::new(umem.base(), umem.bytes(), CHUNK, false),
            longest: longest.clone(),
        };
        let descriptor = interface.as_fd().as_raw_fd();
        // SAFETY: the kernel's rings have no other ends. They are mapped as long as `interface`, which
        // is dropped after the socket has been deleted (`Drop`, and `open` if it fails).
        let socket =
            unsafe { xsk_client::Socket::new(descriptor, &interface.rings, client, &memory) };
        let socket =
            xsk_client::open(socket, name).map_err(|refused| Error::Refused(refused.why))?;
        let chunks = |from: u32| (from..from + CHUNKS).map(|chunk| u64::from(chunk * CHUNK));
        let (inward, outward) = (chunks(0).collect(), chunks(CHUNKS).collect());
        Ok(Self { judged, plain, inward, outward, socket, interface, peer })
    }

    /// Moves packets until the port ends.
    pub(crate) fn run(mut self, has_ended: &AtomicBool) {
        let mut since = Instant::now();
        while !has_ended.load(Ordering::Relaxed) {
            if self.step() {
                since = Instant::now();
                continue;
            }
            let is_judging = self.socket.is_judging();
            if is_judging && since.elapsed() < SPIN {
                // The process may need this CPU.
                std::thread::yield_now();
                continue;
            }
            let is_stuck = is_judging || self.is_sending();
            if self.wait(if is_stuck { SHORT } else { LONG }) && !self.step() {
                // The packets that the kernel has wait for a process or for an interface, neither of
                // which is announced.
                sleep(&mut [], SHORT);
            }
        }
    }

    /// Returns true if packets wait for the system calls of this thread.
    fn is_sending(&self) -> bool {
        self.plain.tx.pending() > 0 || self.socket.sending() > 0
    }

    /// Moves everything that can be moved. Returns true if there was something.
    fn step(&mut self) -> bool {
        self.plain.refill(&mut self.outward);
        self.judged.refill(&mut self.inward);
        self.socket.advance();
        let inward = forward(&mut self.judged, &mut self.plain);
        let outward = forward(&mut self.plain, &mut self.judged);
        if outward > 0 {
            self.socket.advance();
        }
        let sent = self.send();
        self.plain.reclaim(&mut self.inward);
        self.judged.reclaim(&mut self.outward);
        inward + outward > 0 || sent
    }

    /// Lets the kernel transmit, as long as it does. Returns true if it has.
    fn send(&self) -> bool {
        let begin = (self.plain.tx.pending(), self.socket.sending());
        let mut left = begin.0;
        while left > 0 {
            kick(self.peer.as_fd().as_raw_fd());
            let before = std::mem::replace(&mut left, self.plain.tx.pending());
            if left >= before {
                break;
            }
        }
        let mut sending = begin.1;
        while sending > 0 {
            self.socket.advance();
            let before = std::mem::replace(&mut sending, self.socket.sending());
            if sending >= before {
                break;
            }
        }
        left < begin.0 || sending < begin.1
    }

    /// Waits for packets of the kernel. Returns true if there are.
    fn wait(&self, time: Duration) -> bool {
        let fds = [self.interface.as_fd(), self.peer.as_fd()];
        let mut fds = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        sleep(&mut fds, time)
    }
}

/// Sleeps until one of the descriptors is ready, at most for this time. Returns true if one is.
fn sleep(fds: &mut [PollFd<'_>], time: Duration) -> bool {
    let timeout = PollTimeout::try_from(time).unwrap_or(PollTimeout::ZERO);
    // An interrupted call is like one without packets.
    poll(fds, timeout).is_ok_and(|ready| ready > 0)
}
