//! Service functions of a lab's routers: their rules, which are there before packets are.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use model::topology::{Function, Node, Topology};
use netlink::Namespace;

use crate::Error;

/// Refuses where rules are to be loaded and nobody could.
pub(crate) fn check_machine(topology: &Topology) -> Result<(), Error> {
    let mut functions = topology.nodes.iter().flat_map(|node| &node.functions);
    if functions.any(|function| function.rules.is_some() || function.file.is_some()) {
        let nft = Command::new("nft").arg("--version").stdout(Stdio::null()).status();
        nft.map_err(Error::NoNft)?;
    }
    Ok(())
}

/// Loads the rules of a node's functions. `beside`: the file of the lab, beside which other ones are
/// looked for.
pub(crate) fn load_rules(node: &Node, namespace: &Namespace, beside: &Path) -> Result<(), Error> {
    if node.functions.is_empty() {
        return Ok(());
    }
    // Else the kernel takes inner packets that look like answers to a socket of its own for that.
    namespace.run(|| netlink::sysctl::write("ipv4/ip_early_demux", "0"))??;
    for function in &node.functions {
        let Some(text) = rules(function, beside)? else { continue };
        let said = namespace.run(|| nft(&text))?.map_err(Error::NoNft)?;
        if let Some(said) = said {
            let (node, function) = (node.name.clone(), function.name.clone());
            return Err(Error::Rules { node, function, said });
        }
    }
    Ok(())
}

/// The rules of a function: its own or those of its file, if it has some.
fn rules(function: &Function, beside: &Path) -> Result<Option<String>, Error> {
    let Some(file) = function.file.as_ref().filter(|_| function.rules.is_none()) else {
        return Ok(function.rules.clone());
    };
    let path = beside.parent().unwrap_or(beside).join(file);
    let read = || match fs::metadata(&path)?.is_file() {
        true => fs::read_to_string(&path),
        // What is none may have no end.
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")),
    };
    read().map(Some).map_err(Error::file("read", &path))
}

/// The first file of rules that cannot be read: as its function names it, and why. `beside`: the lab's file.
pub fn unreadable_rules<'t>(topology: &'t Topology, beside: &Path) -> Option<(&'t str, Error)> {
    let mut functions = topology.nodes.iter().flat_map(|node| &node.functions);
    functions.find_map(|function| {
        let error = rules(function, beside).err()?;
        Some((function.file.as_deref().unwrap_or_default(), error))
    })
}

/// What nft has against the rules.
fn nft(text: &str) -> std::io::Result<Option<String>> {
    let mut command = Command::new("nft");
    command.args(["-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut nft = command.spawn()?;
    if let Some(mut stdin) = nft.stdin.take() {
        // One that ends early says why.
        let _ = stdin.write_all(text.as_bytes());
    }
    let done = nft.wait_with_output()?;
    let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    Ok((!done.status.success()).then_some(said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_cannot_be_read_are_found_before_anything_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let beside = folder.path().join("lab.yaml");
        fs::write(folder.path().join("good.nft"), "").unwrap();
        let said = |function: &str| {
            let router = format!("{{router: linux, functions: {{fw: {{{function}}}}}}}");
            let text = format!("name: a\nnodes: {{h1: {{}}, r1: {router}}}\nlinks: [h1-r1]\n");
            let topology = model::topology::parse("a", &text).unwrap();
            let found = unreadable_rules(&topology, &beside);
            found.map(|(file, error)| {
                let why = std::error::Error::source(&error).map(ToString::to_string);
                (file.to_owned(), why.unwrap_or_default())
            })
        };
        for good in ["", "rules: 'table ip fw {}'", "file: good.nft"] {
            assert_eq!(said(good), None, "{good}");
        }
        for (file, why) in
            [("gone.nft", "No such file"), (".", "regular file"), ("/dev/zero", "regular file")]
        {
            let (named, error) = said(&format!("file: {file}")).unwrap();
            assert!(named == file && error.contains(why), "{error}");
        }
    }
}
