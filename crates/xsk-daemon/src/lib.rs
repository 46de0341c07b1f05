//! Runs tenants' P4 programs for an AF_XDP client: `kaido xsk run`.
//!
//! The client's library (`interposer`) reports the client's sockets over a link (`xsk_link`) for
//! each process. The [`Daemon`] attaches the program of the tenant that owns the socket's interface:
//! it gives the library a packet queue of the program's sandbox process. From then on packets go
//! directly from the client's thread to the process and back; the daemon only reacts to events.
//!
//! - `tenant`: configuration of tenants;
//! - `program`: a tenant's program, its process, and its packet queues;
//! - `host`: moves of programs to a process of the client;
//! - `listener`: links for the processes of the client; `reader`: the thread that reads the reports of a client process;
//! - `session`: a client process, its sockets, and their attachments;
//! - `daemon`: the event loop; `reports`: messages of clients; `attachments`: programs at sockets;
//!   `trace`: single packets;
//! - `ports`: attaching and detaching on request; `control`: requests from outside of the loop;
//!   `pending`: those that wait for clients; `status`: its answers, which `snapshot` makes;
//! - `server`: the requests as a gRPC service; `metrics`: the counters for Prometheus.
//!
//! A program is replaced between two packets, by its process's end or by a control plane. The
//! library then gets a queue of the new process. The old process, if it still runs, is kept until
//! the library has reported that no packet is in flight there.

mod attachments;
mod control;
mod daemon;
mod error;
mod event;
mod host;
mod listener;
mod metrics;
mod numbers;
mod pending;
mod places;
mod ports;
mod program;
mod reader;
mod reattach;
mod reports;
mod server;
mod session;
mod snapshot;
mod status;
mod tenant;
mod trace;
mod tracing;
mod unjudged;

pub use control::Control;
pub use daemon::{Daemon, Device};
pub use error::{Error, Refusal};
pub use event::AttachedPort;
pub use server::{Client, Server};
pub use status::{AttachmentStatus, ClientStatus, ProgramStatus, SocketStatus, Status};
pub use tenant::{Port, Tenant};
pub use trace::TracedPacket;
