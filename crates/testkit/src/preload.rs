//! The library that `kaido xsk run` preloads into clients.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Name of the library.
const NAME: &str = "libkaido_xsk.so";

/// Puts the library next to a program (`CARGO_BIN_EXE_kaido`). Cargo leaves libraries of
/// dependencies in a directory of their own. The caller's crate has a dev-dependency on
/// `interposer`.
///
/// # Panics
///
/// If the library has not been built.
pub fn preloads(program: &Path) {
    let built = program.with_file_name("deps").join(NAME);
    let place = program.with_file_name(NAME);
    let file = |path: &Path| fs::metadata(path).map(|found| found.ino());
    let is = file(&built).unwrap_or_else(|why| panic!("{}: {why}", built.display()));
    if file(&place).is_ok_and(|there| there == is) {
        return;
    }
    // Other tests may do the same at this time.
    let new =
        tempfile::tempdir_in(program.parent().expect("it is in a directory")).expect("a directory");
    let new = new.path().join(NAME);
    fs::hard_link(&built, &new).expect("a link");
    fs::rename(&new, &place).expect("it is replaced");
}
