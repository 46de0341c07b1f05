//! Unix sockets of mode 0600.

use std::fs;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, UnixAddr, connect as connect_to, socket,
};
use nix::unistd::geteuid;
use tokio::net::UnixStream;

/// Listens on a new Unix socket, to which only this user and root can connect.
#[expect(clippy::disallowed_methods, reason = "the one place that sets the mode")]
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(path)?;
    // bind(2) derives the mode from the umask, which a program that uses this library may not have
    // set.
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// The path of a socket is in use.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// Another process listens there.
    #[error("another process listens on {0}")]
    InUse(PathBuf),
    /// It is a file of another kind.
    #[error("{0} exists and is not a socket")]
    NotASocket(PathBuf),
    /// It cannot be connected to.
    #[error("cannot connect to {path}")]
    Unknown {
        /// The socket.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A stale socket cannot be removed.
    #[error("cannot remove the stale socket {path}")]
    Remove {
        /// The socket.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// Checks that a socket can be created here: that no process listens on it. A stale one may exist,
/// left by a process that was killed.
pub fn check_free(path: &Path) -> Result<(), PathError> {
    is_stale(path).map(drop)
}

/// Does the same. Returns true if a stale socket exists.
fn is_stale(path: &Path) -> Result<bool, PathError> {
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(false) };
    if !found.file_type().is_socket() {
        return Err(PathError::NotASocket(path.into()));
    }
    match is_served(path) {
        Ok(true) => Err(PathError::InUse(path.into())),
        Ok(false) => Ok(true),
        Err(source) => Err(PathError::Unknown { path: path.into(), source }),
    }
}

/// True if a process listens on a socket: a connection is accepted, or waits to be. Does not block.
pub fn is_served(path: &Path) -> io::Result<bool> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let ours = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    match connect_to(ours.as_raw_fd(), &UnixAddr::new(path)?) {
        Ok(()) | Err(Errno::EAGAIN) => Ok(true),
        Err(Errno::ECONNREFUSED | Errno::ENOENT) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Removes a stale socket, so that [`listen`] can create a new one.
pub fn remove_stale(path: &Path) -> Result<(), PathError> {
    if !is_stale(path)? {
        return Ok(());
    }
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(PathError::Remove { path: path.into(), source })
        }
        _ => Ok(()),
    }
}

/// Connects to a Unix socket of root or of this user. The socket of another user, in a place where this
/// user's is expected, is an error.
pub async fn connect(path: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(path).await?;
    let user = stream.peer_cred()?.uid();
    if !may_order(user) {
        let why = format!("{} is served by user {user}", path.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(stream)
}

/// True if the user of a peer is authorized: root, or the user of this process.
pub(crate) fn may_order(user: u32) -> bool {
    user == 0 || user == geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_socket_is_its_users_alone() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a.sock");
        let _listener = listen(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
        assert!(matches!(remove_stale(&path), Err(PathError::InUse(_))));
        assert!(may_order(0) && may_order(geteuid().as_raw()) && !may_order(65534));
    }

    #[test]
    fn only_a_stale_socket_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let [socket, file] = ["a.sock", "file"].map(|name| root.path().join(name));
        assert!(!is_stale(&socket).unwrap());
        remove_stale(&socket).unwrap();
        drop(listen(&socket).unwrap());
        // A process that another test starts has it open until it executes its program.
        testkit::until(
            Duration::from_secs(10),
            || is_stale(&socket).ok().filter(|stale| *stale),
            || "in use".into(),
        );
        remove_stale(&socket).unwrap();
        assert!(!socket.exists());
        fs::write(&file, "").unwrap();
        let link = root.path().join("link");
        std::os::unix::fs::symlink(&socket, &link).unwrap();
        for other in [file, link] {
            assert!(matches!(remove_stale(&other), Err(PathError::NotASocket(_))));
            assert!(fs::symlink_metadata(&other).is_ok());
        }
    }
}
