//! Addresses of P4Runtime, for the server and the client: a Unix socket of this user, or TCP with
//! known clients.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use p4runtime::{Address, Files, Listener};
use tokio::net::TcpListener;

use crate::cli::{P4Device, P4Run, P4Tls, Served};
use crate::failure::Failure;

/// A listening socket, with the address that clients use.
pub(super) struct Serving {
    pub(super) listener: Listener,
    pub(super) address: String,
    /// Removed when the command ends.
    pub(super) _socket: Option<Socket>,
}

/// The file of a Unix socket, removed on drop.
pub(super) struct Socket(PathBuf);

impl Drop for Socket {
    fn drop(&mut self) {
        // The next command replaces a leftover file.
        let _ = fs::remove_file(&self.0);
    }
}

/// Returns the default socket of a device: in the run directory, or in this user's own.
fn of_device(device: u64) -> Result<PathBuf, Failure> {
    let own = std::env::var_os("XDG_RUNTIME_DIR").filter(|directory| !directory.is_empty());
    let is_root = nix::unistd::geteuid().is_root();
    let directory = match own.filter(|_| !is_root && std::env::var_os("KAIDO_RUN").is_none()) {
        Some(own) => PathBuf::from(own).join("kaido/p4"),
        None => lab::run_directory("p4").map_err(Failure::usage)?,
    };
    Ok(directory.join(format!("device-{device}.sock")))
}

/// Returns the TLS files of this side, if TLS is requested.
fn files(tls: &P4Tls) -> Option<Files> {
    let (certificate, key) = (tls.tls_cert.clone()?, tls.tls_key.clone()?);
    Some(Files { certificate, key, authority: tls.tls_ca.clone()? })
}

/// Fails for TCP without an authenticated peer, unless it is requested on a loopback address.
fn insecure(address: SocketAddr, is_allowed: bool) -> Result<(), Failure> {
    if !is_allowed {
        return Err(Failure::usage(anyhow!(
            "P4Runtime at {address}: TCP does not authenticate the peer: use the Unix socket (the \
             default), TLS (`--tls-cert`, `--tls-key` and `--tls-ca`), or `--insecure-tcp` on a loopback \
             address, where every user of this machine may then program the device"
        )));
    }
    if !address.ip().is_loopback() {
        return Err(Failure::usage(anyhow!(
            "P4Runtime at {address}: `--insecure-tcp` is for loopback addresses (127.0.0.1, ::1): use \
             TLS (`--tls-cert`, `--tls-key` and `--tls-ca`)"
        )));
    }
    Ok(())
}

/// Listens for control planes, unless P4Runtime is not to be served. Must be called in a tokio
/// runtime.
pub(super) async fn listen(options: &P4Run) -> Result<Option<Serving>, Failure> {
    let tls = files(&options.tls);
    let address = match &options.p4runtime {
        Some(Served::Nowhere) => return Ok(None),
        None if options.pcap.is_some() => return Ok(None),
        None if tls.is_some() || options.insecure_tcp => {
            let help = "add `--p4runtime ADDRESS`";
            return Err(Failure::usage(anyhow!("TLS or TCP without an address: {help}")));
        }
        None => {
            let path = of_device(options.device_id)?;
            let made = path.parent().map_or(Ok(()), private::make);
            made.map_err(|why| {
                let help = "set XDG_RUNTIME_DIR, or write `--p4runtime unix:PATH`";
                let path = path.display();
                let why = anyhow!("P4Runtime cannot be served at unix:{path}: {why}: {help}");
                Failure::failed(why)
            })?;
            return unix(&path).map(Some);
        }
        Some(Served::Socket(path)) => return unix(path).map(Some),
        Some(Served::At(address)) => *address,
    };
    if tls.is_none() {
        insecure(address, options.insecure_tcp)?;
    }
    let config = tls.map(|files| files.server()).transpose().map_err(Failure::usage)?;
    let cannot = || format!("P4Runtime cannot be served at {address}");
    let listener = TcpListener::bind(address).await.with_context(cannot);
    let listener = listener.map_err(Failure::failed)?;
    let address = listener.local_addr().map_err(Failure::failed)?.to_string();
    let listener = match config {
        Some(config) => Listener::tls(listener, config),
        None => {
            crate::output::tell(&format!(
                "kaido: P4Runtime at {address} is not protected: every user of this machine may program \
                 the device"
            ));
            Listener::insecure(listener)
        }
    };
    Ok(Some(Serving { listener, address, _socket: None }))
}

fn unix(path: &Path) -> Result<Serving, Failure> {
    let cannot = || format!("P4Runtime cannot be served at unix:{}", path.display());
    // In a directory of another user the socket could be replaced before its mode is set.
    private::check_parent(path).with_context(cannot).map_err(Failure::usage)?;
    remove_stale(path)?;
    let listener = Listener::unix(path).with_context(cannot).map_err(Failure::failed)?;
    let address = format!("unix:{}", path.display());
    Ok(Serving { listener, address, _socket: Some(Socket(path.to_owned())) })
}

/// Replaces the socket of a command that was killed.
fn remove_stale(path: &Path) -> Result<(), Failure> {
    use serve::PathError::{InUse, NotASocket};
    let fix = |error: &_| match error {
        InUse(_) => "`--device-id` or `--p4runtime` gives this device a socket of its own",
        NotASocket(_) => "`--p4runtime` names another socket",
        _ => "remove it",
    };
    serve::remove_stale(path).map_err(|error| {
        let fix = fix(&error);
        let cannot = format!("P4Runtime cannot be served ({fix})");
        Failure::failed(anyhow::Error::new(error).context(cannot))
    })
}

/// Returns the address of a device, and its name for messages.
pub(super) fn find(to: &P4Device) -> Result<(Address, String), Failure> {
    let unix = |path: PathBuf| {
        let shown = format!("unix:{}", path.display());
        (Address::Unix(path), shown)
    };
    let Some(address) = &to.address else { return of_device(to.device_id).map(unix) };
    if let Some(path) = socket(address) {
        return Ok(unix(path));
    }
    let shown = address.clone();
    if let Some(files) = files(&to.tls) {
        let (host, _) = address.rsplit_once(':').ok_or_else(|| {
            Failure::usage(anyhow!("`{address}` is not an address: HOST:PORT, as 192.0.2.1:9559"))
        })?;
        let name = to.tls_name.as_deref().unwrap_or(host).trim_matches(['[', ']']).to_owned();
        let wrong = |_| Failure::usage(anyhow!("a certificate cannot have the name `{host}`"));
        let name = name.try_into().map_err(wrong)?;
        let config = files.client().map_err(Failure::usage)?;
        return Ok((Address::Tls { address: address.clone(), name, config }, shown));
    }
    let wrong = |_| {
        Failure::usage(anyhow!(
            "`{address}` is not an address, such as 127.0.0.1:9559 or unix:PATH"
        ))
    };
    let address = address.parse().map_err(wrong)?;
    insecure(address, to.insecure_tcp)?;
    Ok((Address::Insecure(address), shown))
}

/// Returns the path if the text names a Unix socket: `unix:PATH`, or a path with a slash.
pub(crate) fn socket(text: &str) -> Option<PathBuf> {
    match text.strip_prefix("unix:") {
        Some(path) => Some(path.into()),
        None => text.contains('/').then(|| text.into()),
    }
}
