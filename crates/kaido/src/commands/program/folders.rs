//! Files that a program includes.

use std::path::{Path, PathBuf};

use p4::Includes;
use p4::source::MAX_BYTES;

/// Included files: searched next to the including file, then in the folders of `--include`. No name
/// and no link leads out of the folder of the program or of `--include`: root compiles programs of
/// tenants.
pub(super) struct Folders<'f> {
    /// Folder of the program.
    pub(super) program: &'f Path,
    pub(super) folders: &'f [PathBuf],
    pub(super) defines: &'f [(String, String)],
}

impl<'f> Folders<'f> {
    /// The innermost of the folders that has the including file, with the name relative to it.
    fn beside(
        &self,
        from: &Path,
        folders: impl Iterator<Item = &'f Path>,
        name: &str,
    ) -> Option<(&'f Path, PathBuf)> {
        let within = |folder: &'f Path| {
            let rest = from.strip_prefix(folder).ok()?;
            Some((folder, rest.parent().unwrap_or(Path::new("")).join(name)))
        };
        let all = folders.chain([self.program]).filter_map(within);
        all.max_by_key(|(folder, _)| folder.components().count())
    }
}

impl Includes for Folders<'_> {
    fn read(&self, name: &str, from: &str, system: bool) -> Result<(String, String), String> {
        let folders = self.folders.iter().map(PathBuf::as_path);
        let all = folders.clone().map(|folder| (folder, PathBuf::from(name)));
        let beside = self.beside(Path::new(from), folders, name).filter(|_| !system);
        for (folder, name) in beside.into_iter().chain(all) {
            let path = folder.join(&name);
            // A link counts, wherever it leads.
            if path.symlink_metadata().is_ok() {
                let of = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
                let text = crate::input::read_in(of, name.as_ref(), "program", MAX_BYTES as u64);
                return text
                    .map(|text| (path.display().to_string(), text))
                    .map_err(|why| why.text());
            }
        }
        Err("no such file beside it, and in no folder of `--include`".to_owned())
    }

    fn defines(&self) -> &[(String, String)] {
        self.defines
    }
}
