//! Folders of mode 0700, and the check that no other user can replace one.

use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::Path;

use nix::fcntl::OFlag;
use nix::unistd::geteuid;

/// The modes by which others than the owner write.
const OTHERS_WRITE: u32 = 0o022;

/// In such a folder (/tmp), only its owner renames or removes a name.
const STICKY: u32 = 0o1000;

/// A user to whom a folder is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// User ID.
    pub user: u32,
    /// Group ID.
    pub group: u32,
}

/// Makes a folder of mode 0700, and those above it that are missing. One that exists has to be this user's, and
/// loses what its mode allows to others.
pub fn make(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let folder = open(path)?;
    let found = folder.metadata()?;
    if found.uid() != geteuid().as_raw() {
        return Err(refused(path, format!("it is user {}'s", found.uid())));
    }
    if found.mode() & 0o7777 != 0o700 {
        folder.set_permissions(fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Checks that no user but root and this one can create or replace a name in the folders that lead to `path`, which
/// need not exist.
pub fn check(path: &Path) -> io::Result<()> {
    let path = &std::path::absolute(path)?;
    check_each(path)?;
    // Links on the way lead elsewhere.
    let exists = path.ancestors().find_map(|folder| fs::canonicalize(folder).ok());
    exists.map_or(Ok(()), |folder| check_each(&folder))
}

fn check_each(path: &Path) -> io::Result<()> {
    for folder in path.ancestors() {
        // The caller's own use of the path reports other errors.
        let Ok(found) = fs::metadata(folder) else { continue };
        is_private(&found).map_err(|why| refused(folder, why))?;
    }
    Ok(())
}

fn is_private(found: &Metadata) -> Result<(), String> {
    let user = found.uid();
    if user != 0 && user != geteuid().as_raw() {
        return Err(format!("it is user {user}'s"));
    }
    if found.mode() & OTHERS_WRITE != 0 && found.mode() & STICKY == 0 {
        return Err(format!(
            "its mode is {:04o}, so that others write to it",
            found.mode() & 0o7777
        ));
    }
    Ok(())
}

fn refused(path: &Path, why: String) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, format!("{} is not safe: {why}", path.display()))
}

/// Opens a folder that is not behind a symbolic link.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW;
    File::options().read(true).custom_flags(flags.bits()).open(path)
}

impl Owner {
    /// Gives a folder away, by its descriptor. From then on its content is the new owner's: nothing
    /// of root's is created or followed in there.
    pub fn give_folder(self, path: &Path) -> io::Result<()> {
        let folder = open(path)?;
        fchown(&folder, Some(self.user), Some(self.group))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn folders_are_their_users_alone() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a/b");
        make(&folder).unwrap();
        assert_eq!((mode(&root.path().join("a")), mode(&folder)), (0o700, 0o700));
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        make(&folder).unwrap();
        assert_eq!(mode(&folder), 0o700);
    }

    #[test]
    fn a_link_in_the_place_of_a_folder_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join("target");
        fs::create_dir(&target).unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o755)).unwrap();
        let link = root.path().join("link");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(make(&link).is_err());
        assert_eq!(mode(&target), 0o755);
    }

    #[test]
    fn folders_that_others_write_to_are_not_safe_unless_sticky() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("open");
        fs::create_dir(&folder).unwrap();
        for (mode, is_safe) in [(0o755, true), (0o775, false), (0o777, false), (0o1777, true)] {
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(check(&folder.join("run/labs")).is_ok(), is_safe, "{mode:o}");
        }
    }
}
