//! Service functions of a lab's routers: their rules, which are there before packets are.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use model::topology::{Node, Topology};
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
        let text = match (&function.rules, &function.file) {
            (Some(rules), _) => rules.clone(),
            (None, Some(file)) => {
                let path = beside.parent().unwrap_or(beside).join(file);
                fs::read_to_string(&path).map_err(Error::file("read", &path))?
            }
            (None, None) => continue,
        };
        let said = namespace.run(|| nft(&text))?.map_err(Error::NoNft)?;
        if let Some(said) = said {
            let (node, function) = (node.name.clone(), function.name.clone());
            return Err(Error::Rules { node, function, said });
        }
    }
    Ok(())
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
