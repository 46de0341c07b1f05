//! Files of this program's installation.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::Writers;

/// Opens a file of this program's installation: `name` in the folder of the executable, or in
/// `apart`, which is relative to that folder. The file and its folder have to belong to root or to
/// the owner of the executable, and only members of their group may write them as well. Returns its
/// path too.
///
/// # Errors
///
/// Fails if it is in neither folder, or if another user could have put it there.
pub fn open_installed(name: &str, apart: &str) -> io::Result<(PathBuf, File)> {
    // The name of an executable that was replaced has a suffix, but its folder has none.
    let myself = std::env::current_exe()?;
    let folder = myself.parent().unwrap_or(Path::new("/"));
    let places = [folder.into(), folder.join(apart)].map(|place: PathBuf| place.join(name));
    let path = places.iter().find(|place| place.exists()).ok_or_else(|| {
        let [beside, apart] = places.each_ref().map(|place| place.display());
        let why = format!("neither {beside} nor {apart} exists: install it with `kaido`");
        io::Error::new(ErrorKind::NotFound, why)
    })?;
    let file = File::open(path)?;
    let owner = std::fs::metadata(&myself).map_or(0, |found| found.uid());
    let folder = path.parent().unwrap_or(Path::new("/"));
    let both = [(path.as_path(), file.metadata()?), (folder, std::fs::metadata(folder)?)];
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
    Writers { owner, group: true }.check(found)
}
