//! Files of this program's installation.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use nix::unistd::{Uid, User};

use crate::Writers;

/// Opens a file of this program's installation: `name` in the directory of the executable, or in
/// `apart`, which is relative to that directory. The file and its directory have to belong to root
/// or to the owner of the executable, and no other group than that user's primary one may write
/// them. Returns its path too.
///
/// # Errors
///
/// Fails if it is in neither directory, or if another user could have put it there.
pub fn open_installed(name: &str, apart: &str) -> io::Result<(PathBuf, File)> {
    // The name of an executable that was replaced has a suffix, but its directory has none.
    let myself = std::env::current_exe()?;
    let directory = myself.parent().unwrap_or(Path::new("/"));
    let places = [directory.into(), directory.join(apart)].map(|place: PathBuf| place.join(name));
    let path = places.iter().find(|place| place.exists()).ok_or_else(|| {
        let [beside, apart] = places.each_ref().map(|place| place.display());
        let why = format!("neither {beside} nor {apart} exists: install it with `kaido`");
        io::Error::new(ErrorKind::NotFound, why)
    })?;
    let file = File::open(path)?;
    let owner = std::fs::metadata(&myself).map_or(0, |found| found.uid());
    let directory = path.parent().unwrap_or(Path::new("/"));
    let both = [(path.as_path(), file.metadata()?), (directory, std::fs::metadata(directory)?)];
    for (path, found) in both {
        check(&found, owner).map_err(|why| {
            let why = format!("{} is not used: {why}", path.display());
            io::Error::new(ErrorKind::PermissionDenied, why)
        })?;
    }
    Ok((path.clone(), file))
}

fn check(found: &Metadata, owner: u32) -> Result<(), String> {
    let user = found.uid();
    if user != 0 && user != owner {
        return Err(format!("its owner, user {user}, is neither root nor the owner of `kaido`"));
    }
    // A user's own group, as with umask 002.
    let own = match user {
        0 => Some(0),
        user => User::from_uid(Uid::from_raw(user)).ok().flatten().map(|user| user.gid.as_raw()),
    };
    Writers { owner, group: own == Some(found.gid()) }.check(found)
}
