//! Unix sockets of mode 0600.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;

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
        assert!(may_order(0) && may_order(geteuid().as_raw()) && !may_order(65534));
    }
}
