//! Unix sockets of mode 0600.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;

use nix::unistd::geteuid;

/// Listens on a new Unix socket, to which this user and root alone connect.
#[expect(clippy::disallowed_methods, reason = "the one place that sets the mode")]
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(path)?;
    // bind(2) takes the mode from the umask, which a program that uses this as a library may not have set.
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Whether a user at the other end of a socket may give orders: root, and the user of this process.
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
