//! Files that a program includes.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use p4::Includes;
use p4::source::MAX_BYTES;

/// Included files: searched next to the including file, then in the directories of `--include`. Names
/// and symbolic links must stay below the directory of the program or of `--include`, since root
/// compiles tenants' programs.
pub(super) struct Directories {
    /// Directory of the program.
    pub(super) program: PathBuf,
    /// Its descriptor, if it is open already.
    pub(super) opened: Option<Arc<File>>,
    pub(super) directories: Vec<PathBuf>,
    pub(super) defines: Vec<(String, String)>,
}

impl Directories {
    /// The innermost of the directories that has the including file, with the name relative to it.
    fn beside<'f>(
        &'f self,
        from: &Path,
        directories: impl Iterator<Item = &'f Path>,
        name: &str,
    ) -> Option<(&'f Path, PathBuf)> {
        let within = |directory: &'f Path| {
            let rest = from.strip_prefix(directory).ok()?;
            Some((directory, rest.parent().unwrap_or(Path::new("")).join(name)))
        };
        let all = directories.chain([&*self.program]).filter_map(within);
        all.max_by_key(|(directory, _)| directory.components().count())
    }
}

impl Includes for Directories {
    fn read(&self, name: &str, from: &str, system: bool) -> Result<(String, String), String> {
        let directories = self.directories.iter().map(PathBuf::as_path);
        let all = directories.clone().map(|directory| (directory, PathBuf::from(name)));
        let beside = self.beside(Path::new(from), directories, name).filter(|_| !system);
        for (directory, name) in beside.into_iter().chain(all) {
            let path = directory.join(&name);
            // A link counts, wherever it leads.
            if path.symlink_metadata().is_ok() {
                let of = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
                let opened = self.opened.as_deref().filter(|_| directory == self.program);
                let largest = MAX_BYTES as u64;
                return crate::input::read_in(of, opened, name.as_ref(), "program", largest)
                    .map(|text| (path.display().to_string(), text))
                    .map_err(|why| why.text());
            }
        }
        Err("no such file beside it, and in no directory of `--include`".to_owned())
    }

    fn defines(&self) -> &[(String, String)] {
        &self.defines
    }
}
