//! Folders of mode 0700, and checks that other users cannot replace them.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::geteuid;

/// Mode bits that permit writing to users other than the owner.
const OTHERS_WRITE: u32 = 0o022;

/// Sticky bit: in such a folder (/tmp), only its owner can rename or remove a file.
const STICKY: u32 = 0o1000;

/// The new owner of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// User ID.
    pub user: u32,
    /// Group ID.
    pub group: u32,
}

/// Creates a folder of mode 0700 and its missing parents. No component is followed through a symbolic
/// link, and each is checked by its descriptor before anything is created in it, so that no other user
/// can move the folder while it is created. An existing folder has to be owned by this user, and its
/// mode is only changed while it is empty.
pub fn make(path: &Path) -> io::Result<()> {
    check(path)?;
    let path = std::path::absolute(path)?;
    if fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink()) {
        return Err(refused(&path, "it is a symbolic link".into()));
    }
    let Resolved { folder: mut at, missing } = resolved(&path)?;
    let mut folder = open(&at)?;
    is_ancestor(&folder.metadata()?).map_err(|why| refused(&at, why))?;
    for name in missing {
        match mkdirat(&folder, name.as_os_str(), Mode::S_IRWXU) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        folder = File::from(openat(&folder, name.as_os_str(), flags, Mode::empty())?);
        at.push(&name);
        is_ancestor(&folder.metadata()?).map_err(|why| refused(&at, why))?;
    }
    close(&path, &folder)
}

/// The existing part of a path, without symbolic links, and the names that are missing below it.
struct Resolved {
    folder: PathBuf,
    missing: Vec<OsString>,
}

fn resolved(path: &Path) -> io::Result<Resolved> {
    let mut missing = Vec::new();
    for folder in path.ancestors() {
        match fs::canonicalize(folder) {
            Ok(folder) => {
                missing.reverse();
                return Ok(Resolved { folder, missing });
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                missing.extend(folder.file_name().map(OsString::from));
            }
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::NotFound.into())
}

/// Restricts the folder to this user.
fn close(path: &Path, folder: &File) -> io::Result<()> {
    let found = folder.metadata()?;
    is_private(&found).map_err(|why| refused(path, why))?;
    if found.uid() != geteuid().as_raw() {
        return Err(refused(path, format!("it is user {}'s", found.uid())));
    }
    if found.mode() & 0o7777 == 0o700 {
        return Ok(());
    }
    if fs::read_dir(path)?.next().is_some() {
        let mode = found.mode() & 0o7777;
        return Err(refused(path, format!("its mode is {mode:04o}, and must be 0700")));
    }
    folder.set_permissions(fs::Permissions::from_mode(0o700))
}

/// Checks that only root and this user can create or replace entries in a folder, which need not
/// exist, and in the folders that lead to it. An ancestor may be writable by others if it is sticky.
pub fn check(path: &Path) -> io::Result<()> {
    let path = &std::path::absolute(path)?;
    check_each(path)?;
    // Symbolic links in the path lead to other folders: check these too.
    let exists = path.ancestors().find_map(|folder| fs::canonicalize(folder).ok());
    exists.map_or(Ok(()), |folder| check_each(&folder))?;
    // Other errors are reported when the caller uses the path.
    let Ok(found) = fs::metadata(path) else { return Ok(()) };
    is_private(&found).map_err(|why| refused(path, why))
}

fn check_each(path: &Path) -> io::Result<()> {
    for folder in path.ancestors() {
        // Other errors are reported when the caller uses the path.
        let Ok(found) = fs::metadata(folder) else { continue };
        is_ancestor(&found).map_err(|why| refused(folder, why))?;
        let Ok(link) = fs::symlink_metadata(folder) else { continue };
        is_owned(&link).map_err(|why| refused(folder, why))?;
    }
    Ok(())
}

pub(crate) fn is_owned(found: &Metadata) -> Result<(), String> {
    let user = found.uid();
    match user == 0 || user == geteuid().as_raw() {
        true => Ok(()),
        false => Err(format!("it is user {user}'s")),
    }
}

/// In a sticky folder other users create entries, but do not replace those of this user.
fn is_ancestor(found: &Metadata) -> Result<(), String> {
    if found.mode() & STICKY != 0 { is_owned(found) } else { is_private(found) }
}

fn is_private(found: &Metadata) -> Result<(), String> {
    is_owned(found)?;
    if found.is_dir() && found.mode() & OTHERS_WRITE != 0 {
        return Err(format!("its mode is {:04o}, which others may write", found.mode() & 0o7777));
    }
    Ok(())
}

pub(crate) fn refused(path: &Path, why: String) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, format!("{} is not safe: {why}", path.display()))
}

/// Opens a folder, without following a symbolic link.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW;
    File::options().read(true).custom_flags(flags.bits()).open(path)
}

impl Owner {
    /// Changes the owner of a folder through its descriptor. The new owner controls its content, so
    /// root must not create files or follow links in it from then on.
    pub fn give_folder(self, path: &Path) -> io::Result<()> {
        let folder = open(path)?;
        fchown(&folder, Some(self.user), Some(self.group))
    }

    /// Makes root the owner of a folder again. The group can use its entries, but not create, replace
    /// or remove any.
    pub fn take_back_folder(self, path: &Path) -> io::Result<()> {
        let folder = open(path)?;
        fchown(&folder, Some(0), Some(self.group))?;
        folder.set_permissions(fs::Permissions::from_mode(0o750))
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
        let set = |mode| fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
        set(0o755);
        make(&folder).unwrap();
        assert_eq!(mode(&folder), 0o700);
        for (is_empty, mode) in [(true, 0o777), (true, 0o1777), (false, 0o755), (false, 0o1777)] {
            let entry = folder.join("entry");
            let _ = if is_empty { Ok(()) } else { fs::write(&entry, "") };
            set(mode);
            assert!(make(&folder).is_err(), "{mode:o}");
            assert_eq!(self::mode(&folder), mode, "it is left alone");
            let _ = fs::remove_file(&entry);
        }
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
