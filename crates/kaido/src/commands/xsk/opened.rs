//! Files of tenants, opened once: what is read is what was checked.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::Tenant;
use private::Followed;

use crate::input::Opened;

/// The files of a tenant's program.
pub(super) struct Files {
    pub(super) opened: Opened,
    /// The first symbolic link of another user on the way to one of them.
    pub(super) link: Option<PathBuf>,
}

impl Files {
    /// Opens the files, whose names are relative to `config`. A pipe is refused, since it may never have a
    /// writer.
    ///
    /// # Errors
    ///
    /// Returns the name of the first file that cannot be opened, with the reason.
    pub(super) fn open<'t>(
        tenant: &'t Tenant,
        config: &Path,
    ) -> Result<Self, (&'t Path, io::Error)> {
        let mut link = None;
        let mut follow = |path: &Path| {
            let Followed { file, link: on_the_way, .. } = private::follow(path)?;
            link = link.take().or(on_the_way);
            Ok(file)
        };
        let mut open = |path: &Path| private::reopen_regular(&follow(path)?);
        let failed = |name: &'t Path| move |why| (name, why);
        let path = beside(config, &tenant.program);
        let program = open(&path).map_err(failed(&tenant.program))?;
        let entries = tenant.entries.as_deref();
        let entries = entries.map(|file| open(&beside(config, file)).map_err(failed(file)));
        let entries = entries.transpose()?;
        let directory = follow(path.parent().unwrap_or(Path::new("")));
        let directory = Arc::new(directory.map_err(failed(&tenant.program))?);
        Ok(Self { opened: Opened { program, entries, directory }, link })
    }

    /// Returns the name of a file that is outside of a directory, if there is one.
    pub(super) fn outside<'t>(&self, tenant: &'t Tenant, directory: &Path) -> Option<&'t Path> {
        let is_outside = |file: &File| !private::is_below(file, directory).unwrap_or(false);
        let Opened { program, entries, directory: includes } = &self.opened;
        if is_outside(program) || is_outside(includes) {
            return Some(&tenant.program);
        }
        tenant.entries.as_deref().filter(|_| entries.as_ref().is_some_and(is_outside))
    }
}

/// Resolves a path that a tenants file names.
pub(super) fn beside(config: &Path, file: &Path) -> PathBuf {
    config.parent().unwrap_or(Path::new("")).join(file)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::super::tenants::load_files;
    use super::*;
    use crate::output::Output;

    const INCLUDING: &str = "#include \"part.p4\"\n";

    /// The author of a lab replaces files, and their directory, after they were checked.
    #[test]
    fn files_that_are_replaced_after_the_check_are_not_read() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        for directory in ["lab", "lab/part", "secret"] {
            fs::create_dir(path(directory)).unwrap();
        }
        for name in ["a.p4", "part.p4", "rules"] {
            fs::write(path("secret").join(name), "const hidden_word x = 1;\n").unwrap();
        }
        fs::write(path("lab/part/a.p4"), INCLUDING).unwrap();
        fs::write(path("lab/part/part.p4"), "const shown_word x = 1;\n").unwrap();
        fs::write(path("lab/part/rules"), "const shown_word x = 1;\n").unwrap();
        let mut tenant = tenants_file::of_interface("a", Path::new("part/a.p4"), "eth1");
        tenant.entries = Some("part/rules".into());
        let lab = path("lab/lab.yaml");
        let files = Files::open(&tenant, &lab).map_err(|(_, why)| why).unwrap();
        assert_eq!(files.outside(&tenant, &path("lab")), None);
        fs::rename(path("lab/part"), path("lab/moved")).unwrap();
        symlink(path("secret"), path("lab/part")).unwrap();
        // With JSON, diagnostics are in the failure.
        let said = load_files(&tenant, &lab, &[], files.opened, &Output::new(true));
        let said = format!("{:?}", said.map(drop).unwrap_err());
        assert!(said.contains("shown_word") && !said.contains("hidden_word"), "{said}");
        let files = Files::open(&tenant, &lab).map_err(|(_, why)| why).unwrap();
        assert_eq!(files.outside(&tenant, &path("lab")), Some(Path::new("part/a.p4")));
    }

    /// The directory of a lab is replaced by a link to another one, after its file was read.
    #[test]
    fn a_directory_that_is_replaced_after_the_check_shows_nothing() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        for directory in ["lab", "secret"] {
            fs::create_dir(path(directory)).unwrap();
            fs::write(path(directory).join("a.p4"), "").unwrap();
        }
        fs::rename(path("lab"), path("moved")).unwrap();
        symlink(path("secret"), path("lab")).unwrap();
        let tenant = tenants_file::of_interface("a", Path::new("a.p4"), "eth1");
        let files = Files::open(&tenant, &path("lab/lab.yaml")).map_err(|(_, why)| why).unwrap();
        assert_eq!(files.outside(&tenant, &path("lab")), Some(Path::new("a.p4")));
    }

    #[test]
    fn pipes_are_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let tenant = tenants_file::of_interface("a", &pipe, "eth1");
        let (name, why) = Files::open(&tenant, Path::new("")).map(drop).unwrap_err();
        assert_eq!((name, &*why.to_string()), (&*pipe, "it is not a regular file"));
    }
}
