//! AF_XDP clients of a lab whose packets tenants' programs judge: their files and their end.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::topology::Node;
use model::{Isolation, Tenant};

use crate::Error;
use crate::daemons::processes::end_within;
use crate::daemons::spawn::{CONFIG, running};
use crate::error::LookupError;
use crate::life::state::{Lab, node_directory, nodes_directory};

/// Name of a client in the directory of its node's clients.
pub(crate) const CLIENT: &str = "default";

/// Time in which a client ends in order. Its wrapper kills it after 10 s, and then removes control
/// groups and sockets.
const END_TIMEOUT: Duration = Duration::from_secs(12);

/// The tenants file of a node. Its path is in the arguments of the client's wrapper.
pub(crate) fn config(directory: &Path, node: &str) -> PathBuf {
    node_directory(directory, node).join("tenants.yaml")
}

/// The longest path of a client's sockets.
pub(crate) fn socket(directory: &Path, node: &str) -> PathBuf {
    client(directory, node).join("p4runtime.sock")
}

/// The directory of a node's client, with its sockets.
fn client(directory: &Path, node: &str) -> PathBuf {
    node_directory(directory, node).join("xsk").join(CLIENT)
}

/// Writes the tenants file of a node. `file`: path of the topology file, which programs are relative
/// to.
pub(crate) fn write(
    directory: &Path,
    file: &Path,
    node: &Node,
    tenants: &[Tenant],
) -> Result<(), Error> {
    let files = node_directory(directory, &node.name);
    private::make(&files).map_err(Error::file("create", &files))?;
    let config = config(directory, &node.name);
    let text = tenants_file::text(&beside(file, tenants)?);
    private::create(&config, text.as_bytes()).map_err(Error::file("write", &config))
}

/// Tenants with absolute paths of their files.
fn beside(file: &Path, tenants: &[Tenant]) -> Result<Vec<Tenant>, Error> {
    let absolute = |path: &PathBuf| {
        let path = file.parent().unwrap_or(file).join(path);
        let why = || io::Error::new(ErrorKind::InvalidInput, "its path is not UTF-8");
        if path.to_str().is_some() { Ok(path) } else { Err(Error::file("use", &path)(why())) }
    };
    let tenant = |tenant: &Tenant| {
        Ok(Tenant {
            program: absolute(&tenant.program)?,
            entries: tenant.entries.as_ref().map(absolute).transpose()?,
            vm_info: tenant.vm_info.as_ref().map(absolute).transpose()?,
            isolation: match &tenant.isolation {
                Isolation::Vm { kernel } => {
                    Isolation::Vm { kernel: kernel.as_ref().map(absolute).transpose()? }
                }
                other => other.clone(),
            },
            ..tenant.clone()
        })
    };
    tenants.iter().map(tenant).collect()
}

/// Ends the clients of a lab in order. Those that do not end are left to the caller.
pub(crate) fn end_all(directory: &Path) {
    let Ok(nodes) = fs::read_dir(nodes_directory(directory)) else { return };
    let configs: Vec<PathBuf> = nodes
        .flatten()
        .filter_map(|node| Some(config(directory, node.file_name().to_str()?)))
        .filter(|config| config.exists())
        .collect();
    if configs.is_empty() {
        return;
    }
    let find = || configs.iter().flat_map(|config| running(directory, CONFIG, config)).collect();
    // The caller ends all processes.
    let _ = end_within(find, END_TIMEOUT);
}

/// True if a node has a client: a switch, or interfaces whose packets are judged.
pub(crate) fn has_client(node: &Node) -> bool {
    node.is_switch() || node.has_programs()
}

impl Lab {
    /// The directories of the lab's AF_XDP clients, with their nodes' names.
    pub fn clients(&self) -> Vec<(&str, PathBuf)> {
        let nodes = self.topology.nodes.iter().filter(|node| has_client(node));
        nodes.map(|node| (&*node.name, client(&self.directory, &node.name))).collect()
    }

    /// The directory of the AF_XDP client of a node. It is an error if the node has none.
    pub fn client(&self, node: &str) -> Result<PathBuf, Error> {
        if !has_client(self.node(node)?) {
            let known = self.clients().into_iter().map(|(name, _)| name.to_owned()).collect();
            return Err(Error::Lookup(LookupError::NoTenants { node: node.into(), known }));
        }
        Ok(client(&self.directory, node))
    }
}
