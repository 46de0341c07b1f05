//! Machine state that a lab could leave behind.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::kaido::Kaido;
use crate::wait::{pause, until};

/// Timeout of the kernel's cleanup: namespaces are destroyed in the background.
const TIMEOUT: Duration = Duration::from_secs(15);

/// State of the machine at one time, as far as a lab of this test could affect it.
#[derive(Debug, PartialEq, Eq)]
pub struct Machine {
    run_directory: PathBuf,
    named_namespaces: BTreeSet<String>,
    mounts: Vec<String>,
    links: BTreeSet<String>,
    processes: BTreeSet<i32>,
    files: BTreeSet<PathBuf>,
}

impl Machine {
    /// Reads the present state.
    pub fn now(kaido: &Kaido) -> Self {
        let run_directory = kaido.run_directory();
        let below = |path: &Path| path.starts_with(&run_directory);
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("/proc is there");
        let mounts = mounts
            .lines()
            .filter(|line| line.split(' ').any(|word| below(Path::new(word))))
            .map(str::to_owned)
            .collect();
        Self {
            named_namespaces: named_namespaces(),
            mounts,
            links: names("/sys/class/net"),
            processes: processes(&run_directory),
            files: files(&run_directory),
            run_directory,
        }
    }

    /// Asserts that the machine returns to this state.
    #[track_caller]
    pub fn assert_restored(&self, kaido: &Kaido) {
        let restored = || (*self == Self::now(kaido)).then_some(());
        let difference = || format!("was {self:#?}\nis {:#?}", Self::now(kaido));
        until(TIMEOUT, restored, difference);
        // A process that is still running could create objects again.
        pause(Duration::from_millis(10));
        assert_eq!(*self, Self::now(kaido));
    }
}

/// Returns all names except those of a benchmark's script, which may run concurrently with the
/// tests.
fn named_namespaces() -> BTreeSet<String> {
    let mut names = names("/run/netns");
    names.retain(|name| !name.starts_with("kaido-bench-"));
    names
}

fn names(directory: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Returns all processes started by the test's command, directly or indirectly. They inherit the
/// directory's name in their environment.
fn processes(run_directory: &Path) -> BTreeSet<i32> {
    let wanted = run_directory.as_os_str().as_bytes();
    let contains = |bytes: &[u8]| bytes.windows(wanted.len()).any(|window| window == wanted);
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            ["environ", "cmdline"].iter().any(|file| {
                fs::read(format!("/proc/{pid}/{file}")).is_ok_and(|bytes| contains(&bytes))
            })
        })
        .collect()
}

fn files(directory: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        if directory.exists() {
            found.insert(directory.clone());
        }
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                directories.push(entry.path());
            } else {
                found.insert(entry.path());
            }
        }
    }
    found
}
