//! TLS handshakes of the server, in the background: a slow client does not delay the others.
//!
//! Clients without a certificate can begin handshakes, so that these do not count as connections of
//! clients. Beyond a limit of their own, the oldest handshake of the address with the most of them
//! is ended, in the subnet with the most of them. Addresses from which clients with a certificate
//! came before keep some.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serve::{Connection, Incoming, Limits, Turns};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected as _;

use crate::peer::Known;
use crate::warnings::Warnings;

/// Time limit of a handshake, including the wait for a connection of the server.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of concurrent handshakes.
const AT_ONCE: usize = 512;
/// Handshakes of an address that are never ended early if a client with a certificate came from
/// there before.
const OF_KNOWN: usize = 4;
/// Maximum number of addresses of clients with a certificate that are remembered.
const MAX_KNOWN: usize = 1024;

type Done = io::Result<Known<Turns<TlsStream<Connection<TcpStream>>>>>;

/// Connections that have completed the TLS handshake, up to the limit of `limits`. Ends when the
/// receiver is dropped.
pub(crate) fn handshakes(
    listener: TcpListener,
    config: Arc<ServerConfig>,
    limits: Limits,
) -> ReceiverStream<Done> {
    let acceptor = TlsAcceptor::from(config);
    let connections = Arc::new(Semaphore::new(limits.connections));
    // One for the handshake that replaces another.
    let all = limits.connections + AT_ONCE + 1;
    let mut incoming = Incoming::tcp(listener, Limits { connections: all, ..limits });
    let (done, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let (mut running, holders) = (Running::default(), Arc::<Holders>::default());
        let warnings = Arc::<Warnings>::default();
        loop {
            let connection = tokio::select! {
                connection = incoming.accept() => connection,
                () = done.closed() => return,
            };
            let address = connection.connect_info().remote_addr().map(|address| address.ip());
            let (acceptor, done) = (acceptor.clone(), done.clone());
            let (connections, seen) = (Arc::clone(&connections), Arc::clone(&holders));
            let (address, refused) = (address.map(network), Arc::clone(&warnings));
            let one = async move {
                let stream = acceptor.accept(connection).await?;
                seen.add(address);
                let Ok(permit) = connections.acquire_owned().await else { return Ok(()) };
                // Fails after the server has stopped accepting.
                drop(done.send(Ok(Known::with(Turns::new(stream), permit))).await);
                Ok::<(), io::Error>(())
            };
            let task = tokio::spawn(async move {
                match tokio::time::timeout(TIMEOUT, one).await {
                    Ok(Ok(())) => {}
                    Ok(Err(why)) => refused.warn(format_args!("refused a client: {why}")),
                    Err(_) => refused.warn("refused a client: its handshake takes too long"),
                }
            });
            if running.add(address, task.abort_handle(), &holders) {
                warnings.warn("ended a client's handshake for another one: there are too many");
            }
        }
    });
    ReceiverStream::new(receiver)
}

/// Returns the address whose handshakes count together. A host usually has a whole /64 of IPv6.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        address => address,
    }
}

/// Returns the subnet of an address: a /24 of IPv4, a /48 of IPv6.
fn subnet(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            IpAddr::V4(Ipv4Addr::new(a, b, c, 0))
        }
        IpAddr::V6(address) => {
            let [a, b, c, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0))
        }
    }
}

/// Addresses from which clients with a certificate came, the latest ones last.
#[derive(Default)]
struct Holders(Mutex<VecDeque<IpAddr>>);

impl Holders {
    fn add(&self, address: Option<IpAddr>) {
        let Some(address) = address else { return };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|other| *other != address);
        if known.len() == MAX_KNOWN {
            known.pop_front();
        }
        known.push_back(address);
    }

    fn all(&self) -> Vec<IpAddr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }
}

/// The running handshakes by their clients' addresses, the oldest one first.
#[derive(Default)]
struct Running(Vec<(Option<IpAddr>, AbortHandle)>);

impl Running {
    /// Adds a handshake, and ends another one if there are too many. Returns true if it has ended
    /// one.
    fn add(&mut self, address: Option<IpAddr>, task: AbortHandle, holders: &Holders) -> bool {
        let mut ended = false;
        self.0.retain(|(_, task)| !task.is_finished());
        if self.0.len() >= AT_ONCE {
            let addresses: Vec<_> = self.0.iter().map(|(address, _)| *address).collect();
            if let Some(at) = surplus(&addresses, &holders.all()) {
                let (_, task) = self.0.remove(at);
                task.abort();
                ended = true;
            }
        }
        self.0.push((address, task));
        ended
    }
}

/// Returns the position of the first handshake of the address that has the most, in the subnet that
/// has the most. The first [`OF_KNOWN`] of each known address do not count.
fn surplus(addresses: &[Option<IpAddr>], known: &[IpAddr]) -> Option<usize> {
    let mut kept: HashMap<IpAddr, usize> = known.iter().map(|address| (*address, 0)).collect();
    let counted: Vec<(usize, Option<IpAddr>)> = addresses
        .iter()
        .copied()
        .enumerate()
        .filter(|(_, address)| match address.and_then(|address| kept.get_mut(&address)) {
            Some(count) => {
                *count += 1;
                *count > OF_KNOWN
            }
            None => true,
        })
        .collect();
    let net = |address: &Option<IpAddr>| address.map(subnet);
    let busiest = most(counted.iter().map(|(_, address)| net(address)))?;
    let inside = || counted.iter().filter(|(_, address)| net(address) == busiest);
    let address = most(inside().map(|(_, address)| *address))?;
    inside().find(|(_, other)| *other == address).map(|(at, _)| *at)
}

/// Returns the most frequent item, the first of several.
fn most<T: Copy + Eq + std::hash::Hash>(items: impl Iterator<Item = T> + Clone) -> Option<T> {
    let mut counts = HashMap::new();
    for item in items.clone() {
        *counts.entry(item).or_insert(0) += 1;
    }
    let most = counts.values().copied().max()?;
    items.into_iter().find(|item| counts.get(item) == Some(&most))
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Poll;

    use tokio::io::{AsyncRead as _, AsyncReadExt as _, AsyncWriteExt as _, ReadBuf};
    use tokio_rustls::TlsConnector;
    use tokio_rustls::rustls::pki_types::pem::PemObject as _;
    use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use tokio_rustls::rustls::server::ResolvesServerCertUsingSni;
    use tokio_rustls::rustls::{ClientConfig, RootCertStore};
    use tokio_stream::StreamExt as _;

    use super::*;

    #[test]
    fn the_oldest_handshake_of_the_busiest_address_is_surplus() {
        let of = |texts: &[&str]| {
            let address = |text: &&str| Some(network(text.parse().unwrap()));
            surplus(&texts.iter().map(address).collect::<Vec<_>>(), &[])
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["192.0.2.1", "192.0.2.2", "192.0.2.2"]), Some(1));
        assert_eq!(of(&["192.0.2.1", "192.0.2.1", "192.0.2.2"]), Some(0));
        // A /64 is one address.
        let addresses = ["2001:db8::1", "192.0.2.1", "2001:db8:0:1::1", "2001:db8:0:1::2"];
        assert_eq!(of(&addresses), Some(2));
        // A subnet with many addresses has more than an address with several handshakes.
        let addresses = ["192.0.2.1", "192.0.2.1", "198.51.100.1", "198.51.100.2", "198.51.100.3"];
        assert_eq!(of(&addresses), Some(2));
        // IPv4 on an IPv6 socket.
        let addresses = ["::ffff:192.0.2.1", "::ffff:192.0.2.2", "::ffff:192.0.2.2"];
        assert_eq!(of(&addresses), Some(1));
    }

    #[test]
    fn an_address_of_a_holder_keeps_some_handshakes() {
        let [holder, other] = ["192.0.2.1", "198.51.100.1"].map(|text| text.parse().unwrap());
        let mut addresses = vec![Some(holder); OF_KNOWN];
        addresses.push(Some(other));
        assert_eq!(surplus(&addresses, &[]), Some(0));
        assert_eq!(surplus(&addresses, &[holder]), Some(OF_KNOWN));
        addresses.extend([Some(holder); 2]);
        assert_eq!(surplus(&addresses, &[holder]), Some(OF_KNOWN + 1), "the others are surplus");
        let holders = Holders::default();
        for number in 0..=MAX_KNOWN as u32 {
            holders.add(Some(IpAddr::V4(Ipv4Addr::from(number))));
        }
        assert_eq!(holders.all().len(), MAX_KNOWN);
        assert_eq!(holders.all().first(), Some(&IpAddr::V4(Ipv4Addr::from(1))));
    }

    /// Returns a server's address and its connections. It has no certificate.
    async fn server() -> (std::net::SocketAddr, ReceiverStream<Done>) {
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions().unwrap();
        let certificates = Arc::new(ResolvesServerCertUsingSni::new());
        let config = config.with_no_client_auth().with_cert_resolver(certificates);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (address, handshakes(listener, Arc::new(config), Limits::new(1)))
    }

    /// Returns a certificate for `switch` and its key, in PEM.
    fn certificate() -> String {
        let arguments = "req -x509 -newkey ed25519 -nodes -days 1 -subj /CN=switch -keyout - -out - \
                         -addext subjectAltName=DNS:switch -addext basicConstraints=critical,CA:FALSE";
        let made =
            std::process::Command::new("openssl").args(arguments.split_whitespace()).output();
        let made = made.unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        String::from_utf8(made.stdout).unwrap()
    }

    /// TLS reads on from a stream below it that gives way, since it holds more data itself.
    #[tokio::test]
    async fn a_client_that_sends_without_end_gives_way() {
        let pem = certificate();
        let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).unwrap();
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let config = config.with_single_cert(vec![certificate.clone()], key).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut served = handshakes(listener, Arc::new(config), Limits::new(1));

        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        let config = ClientConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions().unwrap();
        let config = config.with_root_certificates(roots).with_no_client_auth();
        let client = TlsConnector::from(Arc::new(config));
        let stream = TcpStream::connect(address).await.unwrap();
        let mut client = client.connect("switch".try_into().unwrap(), stream).await.unwrap();
        client.write_all(&[0; 256 << 10]).await.unwrap();
        let mut stream = served.next().await.unwrap().unwrap();
        stream.read_exact(&mut [0]).await.unwrap();

        let mut taken = 0;
        std::future::poll_fn(|context| {
            let mut bytes = [0; 1024];
            let mut buffer = ReadBuf::new(&mut bytes);
            while Pin::new(&mut stream).poll_read(context, &mut buffer).is_ready() {
                taken += buffer.filled().len();
                buffer.clear();
            }
            Poll::Ready(())
        })
        .await;
        assert!(taken > 0 && taken < 8 << 10, "{taken}");
    }

    #[tokio::test]
    async fn a_silent_client_is_disconnected_when_its_time_is_over() {
        let (address, mut served) = server().await;
        let mut client = TcpStream::connect(address).await.unwrap();
        let begun = std::time::Instant::now();
        let mut byte = [0];
        tokio::select! {
            read = client.read(&mut byte) => assert_eq!(read.unwrap_or(0), 0),
            _ = served.next() => panic!("it is served"),
        }
        let elapsed = begun.elapsed();
        assert!(elapsed > TIMEOUT / 2 && elapsed < 2 * TIMEOUT, "{elapsed:?}");
    }

    #[tokio::test]
    async fn the_oldest_silent_client_makes_room() {
        let (address, _served) = server().await;
        let begun = std::time::Instant::now();
        let mut clients = Vec::new();
        for _ in 0..=AT_ONCE {
            clients.push(TcpStream::connect(address).await.unwrap());
        }
        let read = clients[0].read(&mut [0]).await;
        assert_eq!(read.unwrap_or(0), 0);
        assert!(begun.elapsed() < TIMEOUT / 2, "{:?}", begun.elapsed());
        let mut byte = [0];
        let last = clients[AT_ONCE].read(&mut byte);
        let last = tokio::time::timeout(Duration::from_millis(100), last).await;
        assert!(last.is_err(), "the newest one stays: {last:?}");
    }

    /// Counts warnings.
    #[derive(Default)]
    struct Log(AtomicUsize);

    impl tracing::Subscriber for &'static Log {
        fn enabled(&self, of: &tracing::Metadata<'_>) -> bool {
            *of.level() == tracing::Level::WARN
        }
        fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            tracing::span::Id::from_u64(1)
        }
        fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
        fn event(&self, _: &tracing::Event<'_>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        fn enter(&self, _: &tracing::span::Id) {}
        fn exit(&self, _: &tracing::span::Id) {}
    }

    #[tokio::test]
    async fn refused_clients_fill_no_log() {
        let log: &'static Log = Box::leak(Box::default());
        let _log = tracing::subscriber::set_default(log);
        let (address, _served) = server().await;
        let begun = std::time::Instant::now();
        for _ in 0..100 {
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_all(b"this is not TLS, and refused immediately").await.unwrap();
            // An alert, then the end.
            while client.read(&mut [0; 64]).await.is_ok_and(|read| read > 0) {}
        }
        let (count, seconds) = (log.0.load(Ordering::Relaxed), begun.elapsed().as_secs());
        assert!(count > 0 && count as u64 <= seconds + 1, "{count} warnings in {seconds} s");
    }
}
