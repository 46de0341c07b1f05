//! Directories of any owner, in which files for the user are created, and files of any owner.
//!
//! Another user may own a directory on the way, but not lead elsewhere: symbolic links on the way have to
//! be root's or this user's, or are reported. The descriptor of the directory or file stays the same if a
//! name on the way changes.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, mkdirat};

use crate::trust::{is_owned, is_shared, refused};
use crate::walk::Walk;

/// Opens a directory (O_PATH).
///
/// # Errors
///
/// Fails if it does not exist, or if a symbolic link of another user is on the way.
pub fn open_directory(path: &Path) -> io::Result<File> {
    let Walk { directories, missing, .. } = walk(path)?;
    if missing.is_empty() { last(directories) } else { Err(Errno::ENOENT.into()) }
}

/// Like [`open_directory`], after creating the missing directories. The umask applies to their mode.
///
/// # Errors
///
/// As [`open_directory`], or if a directory cannot be created.
pub fn make_directory(path: &Path) -> io::Result<File> {
    let Walk { mut directories, missing, .. } = walk(path)?;
    for name in missing {
        let directory = directories.last().ok_or(ErrorKind::NotFound)?;
        match mkdirat(directory, name.as_os_str(), Mode::from_bits_truncate(0o777)) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        directories.push(openat(directory, name.as_os_str(), flags, Mode::empty())?.into());
    }
    last(directories)
}

fn last(mut directories: Vec<File>) -> io::Result<File> {
    // The root directory is never removed.
    let found = directories.pop().ok_or(ErrorKind::NotFound)?;
    if found.metadata()?.is_dir() { Ok(found) } else { Err(Errno::ENOTDIR.into()) }
}

/// Returns the path of an entry of an open directory. It is valid while the directory is open.
pub fn entry(directory: &File, name: &OsStr) -> PathBuf {
    Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name)
}

/// Opens a directory as [`open_directory`] does, with the directories that lead to it.
///
/// # Errors
///
/// As [`open_directory`].
pub fn open_place(path: &Path) -> io::Result<Followed> {
    let Walk { at, mut directories, missing } = walk(path)?;
    match directories.pop() {
        Some(file) if missing.is_empty() && file.metadata()?.is_dir() => {
            Ok(Followed { file, link: None, above: directories, path: at })
        }
        Some(_) if missing.is_empty() => Err(Errno::ENOTDIR.into()),
        _ => Err(Errno::ENOENT.into()),
    }
}

/// A file or directory of any owner.
#[derive(Debug)]
pub struct Followed {
    /// Its descriptor (O_PATH).
    pub file: File,
    /// The first symbolic link of another user on the way, who could lead it to any file.
    pub link: Option<PathBuf>,
    /// The directories in which it was found, from the root directory on.
    above: Vec<File>,
    /// Its path then, without symbolic links.
    path: PathBuf,
}

impl Followed {
    /// Checks that no user but root, this one and the owner of its directory can have created a file: another
    /// one can create a file in a directory that others write to, also a sticky one, before its rightful
    /// owner does. The same holds for the directories that lead to a file of another user. They are those
    /// in which the file was found, also if it is elsewhere now.
    ///
    /// # Errors
    ///
    /// Fails if another user can have created it.
    pub fn check_place(&self) -> io::Result<()> {
        check_place(&self.above, &self.file, &self.path)
    }

    /// Does the same for the file `name`, which has been opened in this directory.
    ///
    /// # Errors
    ///
    /// As [`Followed::check_place`].
    pub fn check_entry(&self, name: &OsStr, file: &File) -> io::Result<()> {
        check_place(self.above.iter().chain([&self.file]), file, &self.path.join(name))
    }
}

/// Checks the place of a file by the directories that led to it, from the root directory on.
fn check_place<'f>(
    above: impl IntoIterator<Item = &'f File, IntoIter: DoubleEndedIterator>,
    file: &File,
    path: &Path,
) -> io::Result<()> {
    let mut found = file.metadata()?;
    if is_owned(&found).is_ok() {
        return Ok(());
    }
    for (at, directory) in path.ancestors().zip(above.into_iter().rev()) {
        let above = directory.metadata()?;
        if is_owned(&found).is_err() && is_shared(&above) {
            let user = found.uid();
            let why = format!("it is user {user}'s, in a directory that others may write to");
            return Err(refused(at, why));
        }
        found = above;
    }
    Ok(())
}

/// Opens a file or directory as the kernel does, with O_PATH.
///
/// # Errors
///
/// Fails if it does not exist.
pub fn follow(path: &Path) -> io::Result<Followed> {
    let mut link = None;
    let Walk { at, mut directories, missing } = walk_with(path, |path, found| {
        if link.is_none() && is_owned(found).is_err() {
            link = Some(path.to_owned());
        }
        Ok(())
    })?;
    match directories.pop() {
        Some(file) if missing.is_empty() => {
            Ok(Followed { file, link, above: directories, path: at })
        }
        _ => Err(Errno::ENOENT.into()),
    }
}

fn walk(path: &Path) -> io::Result<Walk> {
    walk_with(path, |next, link| is_owned(link).map_err(|why| refused(next, why)))
}

fn walk_with(
    path: &Path,
    check_link: impl FnMut(&Path, &Metadata) -> io::Result<()>,
) -> io::Result<Walk> {
    fn any(_: &Metadata) -> Result<(), String> {
        Ok(())
    }
    // Components such as `..` are kept, since they follow links.
    let absolute = match path.is_absolute() {
        true => path.to_owned(),
        false => std::env::current_dir()?.join(path),
    };
    Walk::with(&absolute, any, check_link)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, symlink};
    use std::process::Command;

    use super::*;
    use crate::real_path;

    #[test]
    fn directories_are_opened_and_made() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b");
        let missing = open_directory(&path).map(drop).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        let made = make_directory(&path).unwrap();
        let number = |file: &File| file.metadata().unwrap().ino();
        assert_eq!(number(&made), number(&open_directory(&path).unwrap()));
        // A link of this user, and `..` after it.
        symlink(&path, root.path().join("link")).unwrap();
        let parent = open_directory(&root.path().join("link/..")).unwrap();
        assert_eq!(number(&parent), number(&open_directory(&root.path().join("a")).unwrap()));
        fs::write(entry(&made, "file".as_ref()), "text").unwrap();
        assert_eq!(fs::read(path.join("file")).unwrap(), b"text");
        // The name leads elsewhere now, and the descriptor does not.
        fs::rename(&path, root.path().join("moved")).unwrap();
        fs::write(entry(&made, "file".as_ref()), "again").unwrap();
        assert_eq!(fs::read(root.path().join("moved/file")).unwrap(), b"again");
        assert!(open_directory(&root.path().join("moved/file")).is_err());
        assert!(make_directory(&root.path().join("moved/file")).is_err());
    }

    #[test]
    fn root_links_of_other_users_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("theirs");
        fs::create_dir(&path).unwrap();
        let link = path.join("link");
        symlink("/root", &link).unwrap();
        let run = |arguments: &[&str]| {
            let status = Command::new("chown").args(arguments).args([&path, &link]).status();
            assert!(status.unwrap().success());
        };
        run(&["-h", "65534"]);
        // Their directory may be used.
        make_directory(&path.join("new")).unwrap();
        for refused in [&link, &link.join("x")] {
            for result in [open_directory(refused), make_directory(refused)] {
                let why = result.map(drop).unwrap_err().to_string();
                assert!(why.contains("it is user 65534's"), "{why}");
            }
        }
    }

    #[test]
    fn root_links_of_other_users_are_reported() {
        let root = tempfile::tempdir().unwrap();
        let [file, own, theirs] = ["file", "own", "theirs"].map(|name| root.path().join(name));
        fs::write(&file, "text").unwrap();
        symlink("file", &own).unwrap();
        symlink(&own, &theirs).unwrap();
        std::os::unix::fs::lchown(&theirs, Some(65534), Some(65534)).unwrap();
        for (path, link) in [(&file, None), (&own, None), (&theirs, Some(&theirs))] {
            let found = follow(path).unwrap();
            assert_eq!(found.link.as_ref(), link);
            // The descriptor leads to the file that was found.
            assert_eq!(real_path(&found.file).unwrap(), file);
        }
        assert_eq!(follow(&root.path().join("none")).unwrap_err().kind(), ErrorKind::NotFound);
    }

    /// A file of another user, by the mode of its directory and its owner.
    #[test]
    fn root_a_file_that_another_user_could_create_is_refused() {
        use std::os::unix::fs::{PermissionsExt as _, lchown};
        let root = tempfile::tempdir().unwrap();
        let [directory, file] = ["at", "at/file"].map(|name| root.path().join(name));
        fs::create_dir(&directory).unwrap();
        fs::write(&file, "").unwrap();
        let check = |mode, owner: u32| {
            fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).unwrap();
            lchown(&file, Some(owner), None).unwrap();
            follow(&file).unwrap().check_place().map_err(|why| why.to_string())
        };
        for (mode, is_safe) in [(0o755, true), (0o1777, false), (0o777, false), (0o770, false)] {
            assert_eq!(check(mode, 65534).is_ok(), is_safe, "{mode:o}");
            check(mode, 0).unwrap();
        }
        let why = check(0o1777, 65534).unwrap_err();
        assert!(why.contains("at/file is not safe: it is user 65534's"), "{why}");
        // Their own directory, in one that others write to.
        lchown(&directory, Some(65534), None).unwrap();
        check(0o755, 65534).unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        let why = check(0o755, 65534).unwrap_err();
        assert!(why.contains("at is not safe: it is user 65534's"), "{why}");
    }

    /// The owner of a file moves it from a directory that others write to into an own one, and back.
    #[test]
    fn root_a_file_that_is_moved_during_the_check_is_refused() {
        use std::os::unix::fs::{PermissionsExt as _, lchown};
        use std::sync::atomic::{AtomicBool, Ordering};
        let root = tempfile::tempdir().unwrap();
        let [shared, own] = ["shared", "own"].map(|name| root.path().join(name));
        for (directory, mode) in [(&shared, 0o1777), (&own, 0o755)] {
            fs::create_dir(directory).unwrap();
            fs::set_permissions(directory, fs::Permissions::from_mode(mode)).unwrap();
        }
        let [planted, moved] = [&shared, &own].map(|directory| directory.join("file"));
        fs::write(&planted, "").unwrap();
        for path in [&own, &planted] {
            lchown(path, Some(65534), None).unwrap();
        }
        let has_ended = AtomicBool::new(false);
        let accepted = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !has_ended.load(Ordering::Relaxed) {
                    fs::rename(&planted, &moved).unwrap();
                    fs::rename(&moved, &planted).unwrap();
                }
            });
            let opened = (0..5000).filter_map(|_| follow(&planted).ok());
            let accepted = opened.filter(|opened| opened.check_place().is_ok()).count();
            has_ended.store(true, Ordering::Relaxed);
            accepted
        });
        assert_eq!(accepted, 0);
        // A file that was found in its owner's directory is accepted.
        fs::rename(&planted, &moved).unwrap();
        let found = follow(&moved).unwrap();
        fs::rename(&moved, &planted).unwrap();
        found.check_place().unwrap();
        let why = open_place(&shared).unwrap().check_entry("file".as_ref(), &found.file);
        assert!(why.unwrap_err().to_string().contains("shared/file is not safe"));
    }
}
