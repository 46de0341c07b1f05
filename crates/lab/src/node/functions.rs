//! Service functions of a lab's routers: their rules, which are loaded before packets arrive.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use model::topology::{Function, Node, Topology};
use netlink::Namespace;

use crate::daemons::bounded::{input, run};
use crate::error::{MachineError, StartError};
use crate::{Cancel, Error, files};

/// Timeout for nft. It may have many rules to load, and an included file may have no end.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of all files of rules in bytes. One that has several names counts for each of them.
const LARGEST_TOTAL: usize = if cfg!(test) { 1 << 20 } else { 128 << 20 };

/// Rejects a topology with rules if nft is missing.
pub(crate) fn check_machine(topology: &Topology) -> Result<(), Error> {
    let mut functions = topology.nodes.iter().flat_map(|node| &node.functions);
    if functions.any(|function| function.rules.is_some() || function.file.is_some()) {
        let nft = Command::new("nft").arg("--version").stdout(Stdio::null()).status();
        nft.map_err(/*FIX*/ MachineError::NoNft)?;
    }
    Ok(())
}

/// Loads the rules of a node's functions. `beside`: path of the topology file, which rule files are
/// relative to.
pub(crate) fn load_rules(
    node: &Node,
    namespace: &Namespace,
    beside: &Path,
    cancel: &Cancel,
) -> Result<(), Error> {
    if node.functions.is_empty() {
        return Ok(());
    }
    // With early demux the kernel delivers inner packets that match one of its own sockets.
    namespace.run(|| netlink::sysctl::write("ipv4/ip_early_demux", "0"))??;
    for function in &node.functions {
        let Some(text) = rules(function, beside)? else { continue };
        let failed = |source| Error::Command { command: "nft".into(), source };
        let mut nft = Command::new("nft");
        nft.args(["-f", "-"]).stdin(input(&text).map_err(failed)?);
        let (ended, said) = namespace.run(|| run(&mut nft, TIMEOUT, cancel))??;
        let (node, function) = (node.name.clone(), function.name.clone());
        match ended {
            Some(status) if status.success() => {}
            Some(_) => return Err(Error::Start(StartError::Rules { node, function, said })),
            None => {
                return Err(Error::Start(StartError::EndlessRules {
                    node,
                    function,
                    seconds: TIMEOUT.as_secs(),
                }));
            }
        }
    }
    Ok(())
}

/// The rules of a function: inline or from its file, if it has any.
fn rules(function: &Function, beside: &Path) -> Result<Option<String>, Error> {
    let Some(file) = function.file.as_ref().filter(|_| function.rules.is_none()) else {
        return Ok(function.rules.clone());
    };
    let path = beside.parent().unwrap_or(beside).join(file);
    let text = files::read_text(&path).and_then(|text| match text.contains('\0') {
        // nft stops reading at a NUL byte without an error.
        true => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "it has a NUL byte: it is not text"))
        }
        false => Ok(text),
    });
    text.map(Some).map_err(Error::file("read", &path))
}

/// The first unreadable file of rules, by its name in the topology, with the error. `beside`: path
/// of the topology file. A file is read once, also if many functions have it.
pub fn unreadable_rules<'t>(topology: &'t Topology, beside: &Path) -> Option<(&'t str, Error)> {
    let (mut read, mut total) = (HashSet::new(), 0);
    let mut functions = topology.nodes.iter().flat_map(|node| &node.functions);
    functions.find_map(|function| {
        let file = function.file.as_deref().filter(|_| function.rules.is_none())?;
        if !read.insert(file) {
            return None;
        }
        let error = match rules(function, beside) {
            Err(error) => error,
            Ok(text) => {
                total += text.map_or(0, |text| text.len());
                if total <= LARGEST_TOTAL {
                    return None;
                }
                let why = format!("all files of rules have more than {} MiB", LARGEST_TOTAL >> 20);
                let why = io::Error::new(io::ErrorKind::InvalidInput, why);
                Error::file("read", &beside.parent().unwrap_or(beside).join(file))(why)
            }
        };
        Some((file, error))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Files of rules are read before each lab: many functions share one, which may have many names.
    #[test]
    fn files_of_rules_are_read_once_and_have_a_limit() {
        let directory = tempfile::tempdir().unwrap();
        let beside = directory.path().join("lab.yaml");
        fs::write(directory.path().join("fw.nft"), "#".repeat(200 << 10)).unwrap();
        let said = |names: &[String]| {
            let functions: String = names
                .iter()
                .enumerate()
                .map(|(at, name)| format!("f{at}: {{file: {name}}}, "))
                .collect();
            let router = format!("{{router: linux, functions: {{{functions}}}}}");
            let text = format!("name: a\nnodes: {{h1: {{}}, r1: {router}}}\nlinks: [h1-r1]\n");
            let topology = topology_file::parse("a", &text).unwrap();
            let error = unreadable_rules(&topology, &beside)?.1;
            std::error::Error::source(&error).map(ToString::to_string)
        };
        let once = vec!["fw.nft".to_owned(); 20];
        assert_eq!(said(&once), None);
        let names: Vec<_> = (0..6).map(|dots| format!("{}fw.nft", "./".repeat(dots))).collect();
        assert_eq!(said(&names[..5]), None);
        assert_eq!(said(&names), Some("all files of rules have more than 1 MiB".to_owned()));
    }

    #[test]
    fn rules_that_cannot_be_read_are_found_before_anything_is_made() {
        let directory = tempfile::tempdir().unwrap();
        let beside = directory.path().join("lab.yaml");
        fs::write(directory.path().join("good.nft"), "").unwrap();
        let said = |function: &str| {
            let router = format!("{{router: linux, functions: {{fw: {{{function}}}}}}}");
            let text = format!("name: a\nnodes: {{h1: {{}}, r1: {router}}}\nlinks: [h1-r1]\n");
            let topology = topology_file::parse("a", &text).unwrap();
            let found = unreadable_rules(&topology, &beside);
            found.map(|(file, error)| {
                let why = std::error::Error::source(&error).map(ToString::to_string);
                (file.to_owned(), why.unwrap_or_default())
            })
        };
        for good in ["", "rules: 'table ip fw {}'", "file: good.nft"] {
            assert_eq!(said(good), None, "{good}");
        }
        let [pipe, large, nul] =
            ["pipe.nft", "large.nft", "nul.nft"].map(|name| directory.path().join(name));
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        fs::File::create(large).unwrap().set_len(20 << 30).unwrap();
        fs::write(nul, "table ip a {}\0 table ip b {}").unwrap();
        for (file, why) in [
            ("gone.nft", "No such file"),
            (".", "regular file"),
            ("/dev/zero", "regular file"),
            ("pipe.nft", "regular file"),
            ("large.nft", "larger than 64 MiB"),
            ("nul.nft", "NUL byte"),
        ] {
            let (named, error) = said(&format!("file: {file}")).unwrap();
            assert!(named == file && error.contains(why), "{error}");
        }
    }
}
