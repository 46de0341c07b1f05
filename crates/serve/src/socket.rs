//! Unix sockets of mode 0600.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

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

/// Checks that no process listens on a socket, which need not exist. Returns true if a stale one
/// exists, left by a process that was killed.
pub fn is_stale(path: &Path) -> Result<bool, PathError> {
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(false) };
    if !found.file_type().is_socket() {
        return Err(PathError::NotASocket(path.into()));
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Ok(_) => Err(PathError::InUse(path.into())),
        Err(_) => Ok(true),
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
        assert!(is_stale(&socket).unwrap());
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
