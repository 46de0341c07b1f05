//! Service functions of a lab's routers: their rules, which are loaded before packets arrive.

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
/// of the topology file.
pub fn unreadable_rules<'t>(topology: &'t Topology, beside: &Path) -> Option<(&'t str, Error)> {
    let mut functions = topology.nodes.iter().flat_map(|node| &node.functions);
    functions.find_map(|function| {
        let error = rules(function, beside).err()?;
        Some((function.file.as_deref().unwrap_or_default(), error))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

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
