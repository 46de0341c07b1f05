//! Directories of mode 0700, and checks that other users cannot replace them.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::geteuid;

use crate::trust::{is_ancestor, is_private, refused};
use crate::walk::Walk;

/// The new owner of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// User ID.
    pub user: u32,
    /// Group ID.
    pub group: u32,
}

/// Creates a directory of mode 0700 and its missing parents. Each component is checked by its
/// descriptor before anything is created in it, and links of other users are refused, so that no
/// other user can move the directory while it is created. An existing directory has to be owned by
/// this user, and its mode is only changed while it is empty.
pub fn make(path: &Path) -> io::Result<()> {
    check(path)?;
    let path = std::path::absolute(path)?;
    if fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink()) {
        return Err(refused(&path, "it is a symbolic link".into()));
    }
    let Walk { mut at, mut directories, missing } = Walk::to(&path)?;
    for name in missing {
        let directory = directories.last().expect("the root directory is never removed");
        match mkdirat(directory, name.as_os_str(), Mode::S_IRWXU) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let made = File::from(openat(directory, name.as_os_str(), flags, Mode::empty())?);
        at.push(&name);
        is_ancestor(&made.metadata()?).map_err(|why| refused(&at, why))?;
        directories.push(made);
    }
    close(&path, &open(&at)?)
}

/// Restricts the directory to this user.
fn close(path: &Path, directory: &File) -> io::Result<()> {
    let found = directory.metadata()?;
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
    directory.set_permissions(fs::Permissions::from_mode(0o700))
}

/// Checks that only root and this user can create or replace entries in a directory, which need not
/// exist, and in the directories that lead to it. An ancestor may be writable by others if it is
/// sticky.
pub fn check(path: &Path) -> io::Result<()> {
    let path = &std::path::absolute(path)?;
    match Walk::to(path) {
        Err(error) if error.raw_os_error().is_none() => return Err(error),
        // The kernel's errors are reported when the caller uses the path.
        _ => {}
    }
    let Ok(found) = fs::metadata(path) else { return Ok(()) };
    is_private(&found).map_err(|why| refused(path, why))
}

/// Checks the directory of a file like [`check`].
pub fn check_parent(path: &Path) -> io::Result<()> {
    let path = std::path::absolute(path)?;
    path.parent().map_or(Ok(()), check)
}

/// Opens a directory, without following a symbolic link.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW;
    File::options().read(true).custom_flags(flags.bits()).open(path)
}

impl Owner {
    /// Changes the owner of a directory through its descriptor. The new owner controls its content,
    /// so root must not create files or follow links in it from then on.
    pub fn give_directory(self, path: &Path) -> io::Result<()> {
        let directory = open(path)?;
        fchown(&directory, Some(self.user), Some(self.group))
    }

    /// Makes root the owner of a directory again. The group can use its entries, but not create,
    /// replace or remove any.
    ///
    /// # Errors
    ///
    /// Fails if an entry is not a socket or a regular file of this owner's: root's programs would
    /// follow a symbolic link to the sockets of others.
    pub fn take_back_directory(self, path: &Path) -> io::Result<()> {
        let directory = open(path)?;
        fchown(&directory, Some(0), Some(self.group))?;
        directory.set_permissions(fs::Permissions::from_mode(0o750))?;
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let found = entry.metadata()?;
            let kind = found.file_type();
            if found.uid() != self.user || !(kind.is_socket() || kind.is_file()) {
                return Err(refused(
                    &entry.path(),
                    "it is not a socket or file of its daemon".into(),
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn directories_are_their_users_alone() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("a/b");
        make(&directory).unwrap();
        assert_eq!((mode(&root.path().join("a")), mode(&directory)), (0o700, 0o700));
        let set = |mode| fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).unwrap();
        set(0o755);
        make(&directory).unwrap();
        assert_eq!(mode(&directory), 0o700);
        for (is_empty, mode) in [(true, 0o777), (true, 0o1777), (false, 0o755), (false, 0o1777)] {
            let entry = directory.join("entry");
            let _ = if is_empty { Ok(()) } else { fs::write(&entry, "") };
            set(mode);
            assert!(make(&directory).is_err(), "{mode:o}");
            assert_eq!(self::mode(&directory), mode, "it is left alone");
            let _ = fs::remove_file(&entry);
        }
    }

    /// Another user plants a link while a directory is created: root creates nothing below its
    /// target.
    #[test]
    fn root_a_link_that_another_user_plants_meanwhile_leads_nowhere() {
        if !geteuid().is_root() {
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let [shared, victim] = ["shared", "victim"].map(|name| root.path().join(name));
        fs::create_dir(&victim).unwrap();
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
        let plant = "import os, sys
while True:
    try:
        os.symlink(sys.argv[2], sys.argv[1] + '/new')
        os.unlink(sys.argv[1] + '/new')
    except OSError: pass
";
        let mut planter = std::process::Command::new("/usr/bin/python3");
        planter.args(["-c", plant]).arg(&shared).arg(&victim);
        use std::os::unix::process::CommandExt as _;
        let mut planter = planter.uid(65534).gid(65534).spawn().unwrap();
        let (mut made, mut refused) = (0, 0);
        let began = std::time::Instant::now();
        // The planter may not run for a while on a busy machine.
        let waits = |made, refused| {
            (made == 0 || refused == 0 || made + refused < 2000) && began.elapsed().as_secs() < 60
        };
        while waits(made, refused) {
            match make(&shared.join("new/sub")) {
                Ok(()) => made += 1,
                Err(_) => refused += 1,
            }
            let _ = fs::remove_dir_all(shared.join("new"));
        }
        planter.kill().unwrap();
        planter.wait().unwrap();
        assert_eq!(fs::read_dir(&victim).unwrap().count(), 0, "{made} made, {refused} refused");
        assert!(made > 0 && refused > 0, "{made} made, {refused} refused");
    }

    #[test]
    fn a_link_in_the_place_of_a_directory_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join("target");
        fs::create_dir(&target).unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o755)).unwrap();
        let link = root.path().join("link");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(make(&link).is_err());
        assert_eq!(mode(&target), 0o755);
    }

    /// Returns a directory below `root` with this mode.
    fn directory(root: &Path, name: &str, mode: u32) -> PathBuf {
        let path = root.join(name);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn a_link_with_dots_is_followed_as_the_kernel_does() {
        let root = tempfile::tempdir().unwrap();
        let [inner, outer] = ["inner", "outer"].map(|name| directory(root.path(), name, 0o755));
        let link = inner.join("link");
        std::os::unix::fs::symlink("./../outer/./", &link).unwrap();
        check(&link.join("run")).unwrap();
        make(&link.join("run")).unwrap();
        assert!(outer.join("run").is_dir() && !inner.join("outer").exists());
        // The directory of the target counts, which is not that of the link.
        fs::set_permissions(&outer, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(check(&link.join("other")).is_err() && make(&link.join("other")).is_err());
    }

    #[test]
    fn a_link_through_a_directory_that_others_write_to_is_not_safe() {
        use std::os::unix::fs::symlink;
        let root = tempfile::tempdir().unwrap();
        let safe = directory(root.path(), "safe", 0o755);
        for (mode, is_safe) in [(0o755, true), (0o777, false), (0o775, false), (0o1777, true)] {
            let between = directory(root.path(), &format!("{mode:o}"), mode);
            symlink(&safe, between.join("second")).unwrap();
            // Both links lead to a safe directory. Others can replace the second one.
            let first = root.path().join(format!("first-{mode:o}"));
            symlink(between.join("second"), &first).unwrap();
            let up = root.path().join(format!("up-{mode:o}"));
            symlink(format!("{mode:o}/../{mode:o}/second"), &up).unwrap();
            for path in [&first, &up] {
                let checked = check(&path.join("run"));
                assert_eq!(checked.is_ok(), is_safe, "{mode:o}: {checked:?}");
                assert_eq!(make(&path.join("run")).is_ok(), is_safe, "{mode:o}");
                let _ = fs::remove_dir(safe.join("run"));
            }
        }
        assert_eq!(fs::read_dir(&safe).unwrap().count(), 0, "nothing is created there");
    }

    #[test]
    fn root_a_link_of_another_user_on_the_way_is_not_safe() {
        let root = tempfile::tempdir().unwrap();
        let safe = directory(root.path(), "safe", 0o755);
        let sticky = directory(root.path(), "sticky", 0o1777);
        let [theirs, first] = [sticky.join("theirs"), root.path().join("first")];
        std::os::unix::fs::symlink(&safe, &theirs).unwrap();
        std::os::unix::fs::symlink(&theirs, &first).unwrap();
        check(&first.join("run")).unwrap();
        std::os::unix::fs::lchown(&theirs, Some(65534), Some(65534)).unwrap();
        let why = check(&first.join("run")).unwrap_err().to_string();
        assert!(why.contains("sticky/theirs is not safe: it is user 65534's"), "{why}");
        assert!(make(&first.join("run")).is_err());
    }

    #[test]
    fn a_circle_of_links_has_an_end() {
        let root = tempfile::tempdir().unwrap();
        let link = root.path().join("link");
        std::os::unix::fs::symlink("link", &link).unwrap();
        check(&link).unwrap();
        assert!(make(&link.join("run")).is_err());
    }

    #[test]
    fn directories_that_others_write_to_are_not_safe_unless_sticky() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("open");
        fs::create_dir(&directory).unwrap();
        for (mode, is_safe) in [(0o755, true), (0o775, false), (0o777, false), (0o1777, true)] {
            fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(check(&directory.join("run/labs")).is_ok(), is_safe, "{mode:o}");
        }
    }

    #[test]
    fn root_a_directory_with_a_link_is_not_taken_back() {
        if !geteuid().is_root() {
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let run = directory(root.path(), "run", 0o755);
        let owner = Owner { user: 65534, group: 65534 };
        owner.give_directory(&run).unwrap();
        let socket = run.join("zebra.vty");
        let bind = "import os, socket, sys
socket.socket(socket.AF_UNIX).bind(sys.argv[1])
os.chown(sys.argv[1], 65534, 65534)";
        let mut python = std::process::Command::new("/usr/bin/python3");
        assert!(python.args(["-c", bind]).arg(&socket).status().unwrap().success());
        owner.take_back_directory(&run).unwrap();
        let link = run.join("staticd.vty");
        std::os::unix::fs::symlink("/run/frr/zebra.vty", &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(65534), Some(65534)).unwrap();
        let why = owner.take_back_directory(&run).unwrap_err().to_string();
        assert!(why.contains("staticd.vty is not safe"), "{why}");
        fs::remove_file(&link).unwrap();
        fs::write(run.join("planted"), "").unwrap();
        assert!(owner.take_back_directory(&run).is_err(), "a file of another user");
    }
}
