//! `kaido lab import`.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use import::{Beside, Format};
use output::error::Details;
use output::import::{ImportNote, ImportedLab};

use super::topology_file::LARGEST_FILE;
use crate::cli::ImportFormat;
use crate::failure::{Done, Failure};
use crate::input;
use crate::output::{Output, plain};
use crate::target::Place;

/// Maximum size of a startup file, in bytes; real ones have a few commands.
const LARGEST_STARTUP: u64 = 1 << 20;
/// Maximum size of all startup files of a lab, in bytes: they are kept until all are imported.
const LARGEST_STARTUPS: usize = 16 << 20;
/// Maximum number of startup files; a lab with more devices is too large anyway.
const MAX_STARTUPS: usize = 2000;

pub(crate) fn run(
    path: &Path,
    out: Option<&Path>,
    from: Option<ImportFormat>,
    output: &Output,
) -> Done {
    // A file that the user names may be a link. The files of a directory are the choice of its
    // owner.
    let (file, text) = if path.is_dir() {
        let name = "lab.conf";
        (path.join(name), input::read_in(path, None, name.as_ref(), "lab", LARGEST_FILE)?)
    } else {
        (path.to_owned(), input::read(path, "lab", LARGEST_FILE)?)
    };
    // The lab is named after the directory, even if the given path is `.`.
    let full = std::fs::canonicalize(&file).unwrap_or_else(|_| file.clone());
    let full = full.display().to_string();
    let format = from.map(Format::from).or_else(|| Format::recognise(&full, &text));
    let Some(format) = format else {
        let name = file.display();
        let what = "is not recognized: say --from containerlab, kathara or miniedit";
        return Err(Failure::usage(anyhow!("{name} {what}")));
    };
    let beside = match format {
        Format::Kathara => startups(&file)?,
        _ => Vec::new(),
    };
    let shown = file.display().to_string();
    let lab = Format::lab_of(&full);
    let imported = import::import(format, &shown, &lab, &text, &beside).map_err(|problems| {
        let details = Details { problems: Some(problems.problems.clone()), ..Details::default() };
        let text = match output.is_json() {
            true => anyhow!("{shown} cannot be imported"),
            false => anyhow!("{shown} cannot be imported\n{problems}"),
        };
        Failure::usage(text).with_details(details)
    })?;
    if let Some(out) = out {
        write_new(out, &imported.topology)?;
    }
    if !output.is_json() {
        let mut errors = std::io::stderr();
        for note in &imported.notes {
            let place = note.line.map(|line| format!(":{line}")).unwrap_or_default();
            // Ignore write errors: the notes are in the topology file as well.
            let _ = writeln!(errors, "{}", plain(&format!("{shown}{place}: {}", note.text)));
        }
    }
    let notes =
        imported.notes.into_iter().map(|note| ImportNote { line: note.line, text: note.text });
    let value = ImportedLab {
        lab: imported.lab,
        file: out.map(|out| out.display().to_string()),
        topology: imported.topology,
        notes: notes.collect(),
    };
    output.print(&value, |value| match out {
        Some(out) => format!("lab {} is in {}", value.lab, out.display()),
        None => value.topology.clone(),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Reads the startup files next to a lab.conf, sorted by name.
fn startups(file: &Path) -> Result<Vec<Beside>, Failure> {
    let directory = file.parent().filter(|directory| !directory.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    let cannot = || format!("cannot read {}", directory.display());
    let entries = std::fs::read_dir(directory).with_context(cannot).map_err(Failure::usage)?;
    let mut names: Vec<OsString> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "startup") && path.is_file())
        .filter_map(|path| Some(path.file_name()?.to_owned()))
        .collect();
    names.sort();
    if names.len() > MAX_STARTUPS {
        let text = format!("{} has more than {MAX_STARTUPS} startup files", directory.display());
        return Err(Failure::usage(anyhow!(text)));
    }
    let (mut all, mut total) = (Vec::with_capacity(names.len()), 0);
    for name in names {
        let text = input::read_in(directory, None, &name, "startup file", LARGEST_STARTUP)?;
        total += text.len();
        if total > LARGEST_STARTUPS {
            let most = LARGEST_STARTUPS >> 20;
            let text = format!(
                "the startup files in {} have more than {most} MiB: keep only commands for the network in them",
                directory.display()
            );
            return Err(Failure::usage(anyhow!(text)));
        }
        all.push(Beside { name: name.to_string_lossy().into_owned(), text });
    }
    Ok(all)
}

/// Writes a new file. Keeps an existing one, which may have been edited. Other users cannot write
/// it, whatever the umask: a topology file's commands run as root.
fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    use std::io::ErrorKind;
    let mut options = File::options();
    options.write(true).create_new(true).mode(0o644);
    let file = Place::open(path).and_then(|place| options.open(place.path()));
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::usage(anyhow!(
            "{} is there already: remove it, or name another file",
            path.display()
        )),
        _ => Failure::failed(
            anyhow::Error::new(error).context(format!("cannot write {}", path.display())),
        ),
    })
}

impl From<ImportFormat> for Format {
    fn from(format: ImportFormat) -> Self {
        match format {
            ImportFormat::Containerlab => Self::Containerlab,
            ImportFormat::Kathara => Self::Kathara,
            ImportFormat::Miniedit => Self::Miniedit,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn all_startup_files_have_a_limit() {
        let directory = tempfile::tempdir().unwrap();
        let lab = directory.path().join("lab.conf");
        let large = |count: usize| {
            for at in 0..count {
                let file = directory.path().join(format!("r{at}.startup"));
                fs::write(file, vec![b'#'; 1 << 20]).unwrap();
            }
            startups(&lab).map(|all| all.len())
        };
        assert_eq!(large(16).unwrap(), 16);
        let said = large(17).unwrap_err().text();
        assert!(said.contains("have more than 16 MiB"), "{said}");
    }
}
