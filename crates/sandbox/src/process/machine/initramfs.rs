//! The guest's file system: this executable, with the libraries that it is linked with.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Cursor};
use std::path::{Path, PathBuf};

use cpio::newc::{Builder, ModeFileType};

/// Directory of the libraries in the guest.
const LIBRARIES: &str = "lib";
/// Path of this executable in the guest, without the leading slash.
const PROGRAM: &str = "program";

/// Writes the archive, and returns the words of a command that runs this executable in the guest.
/// Its libraries are those that this process has mapped.
pub(super) fn write(archive: &File) -> io::Result<Vec<String>> {
    let libraries = mapped(&std::fs::read_to_string("/proc/self/maps")?);
    let mut files = Vec::from(["dev", "sys", LIBRARIES].map(directory));
    files.push(file(Path::new("/proc/self/exe"), PROGRAM)?);
    for library in &libraries {
        files.push(file(library, &in_guest(library))?);
    }
    cpio::write_cpio(files.into_iter(), archive)?;
    Ok(command(&libraries))
}

fn directory(name: &str) -> (Builder, Cursor<Vec<u8>>) {
    let builder = Builder::new(name).mode(0o755).set_mode_file_type(ModeFileType::Directory);
    (builder, Cursor::default())
}

fn file(path: &Path, name: &str) -> io::Result<(Builder, Cursor<Vec<u8>>)> {
    let builder = Builder::new(name).mode(0o755).set_mode_file_type(ModeFileType::Regular);
    Ok((builder, Cursor::new(std::fs::read(path)?)))
}

/// Path of a library in the guest, without the leading slash.
fn in_guest(library: &Path) -> String {
    let name = library.file_name().unwrap_or_default().to_string_lossy();
    format!("{LIBRARIES}/{name}")
}

/// Returns the words of a command that runs this executable: by its dynamic loader, since that has
/// another path in the guest (ld.so(8)).
fn command(libraries: &BTreeSet<PathBuf>) -> Vec<String> {
    let is_loader = |library: &&PathBuf| in_guest(library).starts_with(&format!("{LIBRARIES}/ld-"));
    let program = format!("/{PROGRAM}");
    match libraries.iter().find(is_loader) {
        Some(loader) => {
            let loader = format!("/{}", in_guest(loader));
            vec![loader, "--library-path".to_owned(), format!("/{LIBRARIES}"), program]
        }
        None => vec![program],
    }
}

/// Returns the shared libraries in `/proc/PID/maps`, the dynamic loader among them.
fn mapped(maps: &str) -> BTreeSet<PathBuf> {
    // The path is the rest of the line, after padding.
    let paths = maps.lines().filter_map(|line| line.splitn(6, ' ').nth(5)).map(str::trim_start);
    let is_library = |path: &&Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path.is_absolute() && name.contains(".so")
    };
    paths.map(Path::new).filter(is_library).map(Path::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_a_process_are_found() {
        let maps = "55d0-55d1 r--p 00000000 08:01 1 /usr/bin/kaido-sandbox\n\
                    7f00-7f01 r-xp 00000000 08:01 2 /usr/lib/x86_64-linux-gnu/libc.so.6\n\
                    7f01-7f02 r--p 00000000 08:01 2 /usr/lib/x86_64-linux-gnu/libc.so.6\n\
                    7f02-7f03 rw-p 00000000 00:00 0\n\
                    7f03-7f04 r-xp 00000000 08:01 3 /usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2\n\
                    7ffd-7ffe rw-p 00000000 00:00 0 [stack]\n";
        let libraries = mapped(maps);
        let names: Vec<_> = libraries.iter().map(|path| in_guest(path)).collect();
        assert_eq!(names, ["lib/ld-linux-x86-64.so.2", "lib/libc.so.6"]);
        let words = ["/lib/ld-linux-x86-64.so.2", "--library-path", "/lib", "/program"];
        assert_eq!(command(&libraries), words);
        assert_eq!(command(&BTreeSet::new()), ["/program"]);
    }
}
