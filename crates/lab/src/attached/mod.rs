//! Interfaces of this machine that are attached to a lab: checks in advance, and changes to the
//! machine.

mod queues;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ipnet::IpNet;
use model::topology::{Attachment, Means, Node, Topology};
use netlink::{Handle, MAIN_TABLE, Namespace};
use private::{NamespaceLock, TakeError};

use crate::daemons::recorded;
use crate::error::AttachError;
use crate::life::state::{Labs, MARKER, emulator_config};
use crate::pause::pause;
use crate::{Cancel, Error, files};

pub(crate) use queues::{close, open};

/// First netfilter queue of each interface that is attached by queues.
pub(crate) type Queues = BTreeMap<String, u16>;

fn attachments(topology: &Topology) -> impl Iterator<Item = (&Node, &Attachment)> {
    topology.nodes.iter().filter_map(|node| Some((node, node.attachment.as_ref()?)))
}

/// An interface of this machine that is attached to a lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    /// Interface name.
    pub interface: String,
    /// Node that stands for the network beyond the interface.
    pub node: String,
    /// Index of the segment that the interface is an end of; none if it is attached by netfilter
    /// queues.
    pub segment: Option<usize>,
}

/// The interfaces of this machine that a network attaches.
pub fn interfaces(topology: &Topology) -> Vec<Attached> {
    let nodes = topology.nodes.iter().enumerate();
    let attached = nodes.filter_map(|(at, node)| {
        let attachment = node.attachment.as_ref()?;
        let mut segments = topology.segments.iter();
        let segment = match attachment.means {
            Means::Frames => segments.position(|one| one.ends.iter().any(|end| end.node == at)),
            Means::Queue { .. } => None,
        };
        let (interface, node) = (attachment.interface.clone(), node.name.clone());
        Some(Attached { interface, node, segment })
    });
    attached.collect()
}

/// Rejects attachments that this machine cannot make. `agreed`: true if the machine's only default
/// route may use an attached interface.
pub(crate) fn check(topology: &Topology, labs: &Labs, agreed: bool) -> Result<(), Error> {
    if attachments(topology).next().is_none() {
        return Ok(());
    }
    let mut handle = Handle::new()?;
    let links = handle.links()?;
    let default = |route: &netlink::Route| route.destination.prefix_len() == 0;
    let routes = handle.routes(Some(MAIN_TABLE), None)?;
    let ways_out: Vec<u32> = routes
        .iter()
        .filter(|route| default(route))
        .flat_map(|route| route.next_hops.iter().map(|hop| hop.interface))
        .collect();
    let mut frames = Vec::new();
    for (node, attachment) in attachments(topology) {
        let interface = attachment.interface.clone();
        let Some(link) = links.iter().find(|link| link.name == interface) else {
            let known = links.iter().map(|link| link.name.clone());
            let known = known.filter(|name| name != "lo").collect();
            return Err(Error::Attach(AttachError::NotThere {
                node: node.name.clone(),
                interface,
                known,
            }));
        };
        if !link.up {
            return Err(Error::Attach(AttachError::AttachedDown(interface)));
        }
        let is_taken = match NamespaceLock::take(&emulator_daemon::lock_name(link.index)) {
            Ok(_) => false,
            Err(TakeError::Taken(_)) => true,
            Err(error) => return Err(Error::Lock(error)),
        };
        // A lab whose emulator has exited counts too: its rules are still installed.
        let lab = labs.that_attach(&interface);
        if is_taken || lab.is_some() {
            return Err(Error::Attach(AttachError::InAnotherLab { lab, interface }));
        }
        match &attachment.means {
            Means::Frames => frames.push((link.index, interface)),
            Means::Queue { prefixes, .. } => check_forwarding(prefixes)?,
        }
    }
    let is_attached = |way: &u32| frames.iter().any(|(index, _)| index == way);
    if !agreed
        && ways_out.iter().all(is_attached)
        && let Some((_, interface)) = frames.iter().find(|(index, _)| ways_out.contains(index))
    {
        return Err(Error::Attach(AttachError::OnlyWayOut(interface.clone())));
    }
    queues::check(topology)
}

/// The path at which a lab keeps the namespace of its attached interfaces.
pub(crate) fn machine(directory: &Path) -> PathBuf {
    directory.join("machine")
}

/// Keeps the current namespace for [`release`] if any of its interfaces is attached.
pub(crate) fn keep_machine(topology: &Topology, directory: &Path) -> Result<(), Error> {
    match attachments(topology).next() {
        Some(_) => Ok(Namespace::keep_current(machine(directory))?),
        None => Ok(()),
    }
}

/// Lock on attaching interfaces of this namespace. Only one command holds it at a time, so that two
/// commands never choose the same queue or interface.
pub(crate) struct AttachLock(#[expect(dead_code, reason = "it is held")] Option<NamespaceLock>);

/// Timeout of the lock, longer than a lab with attached interfaces takes to come up.
const ATTACH_LOCK_TIMEOUT: Duration = Duration::from_secs(150);

/// Waits for the lock if any interface is to be attached.
pub(crate) fn lock_attaching(topology: &Topology, cancel: &Cancel) -> Result<AttachLock, Error> {
    if attachments(topology).next().is_none() {
        return Ok(AttachLock(None));
    }
    let since = Instant::now();
    loop {
        cancel.check()?;
        match NamespaceLock::take("attaching") {
            Ok(lock) => return Ok(AttachLock(Some(lock))),
            Err(TakeError::Taken(process)) if since.elapsed() > ATTACH_LOCK_TIMEOUT => {
                return Err(Error::Attach(AttachError::NoTurn {
                    seconds: ATTACH_LOCK_TIMEOUT.as_secs(),
                    process,
                }));
            }
            Err(TakeError::Taken(_)) => pause(Duration::from_millis(10)),
            Err(error) => return Err(Error::Lock(error)),
        }
    }
}

/// Checks that this machine forwards packets that leave the network.
fn check_forwarding(prefixes: &[IpNet]) -> Result<(), Error> {
    let is = |setting: &str, value: &str| netlink::sysctl::read(setting).is_ok_and(|s| s == value);
    for (family, setting) in [("IPv4", "ipv4/ip_forward"), ("IPv6", "ipv6/conf/all/forwarding")] {
        let needed = prefixes.iter().any(|prefix| prefix.addr().is_ipv6() == (family == "IPv6"));
        if needed && is(setting, "0") {
            return Err(Error::Attach(AttachError::NoForwarding {
                family,
                setting: setting.replace('/', "."),
            }));
        }
    }
    if is("ipv4/conf/all/rp_filter", "1") {
        return Err(Error::Attach(AttachError::StrictReversePath));
    }
    Ok(())
}

impl Labs {
    /// The lab that has attached an interface of this namespace, if one is found.
    fn that_attach(&self, interface: &str) -> Option<String> {
        let names = self.names().unwrap_or_default();
        let inode = |namespace: Result<Namespace, netlink::Error>| namespace.ok()?.inode().ok();
        let here = inode(Namespace::current());
        let attaches = |name: &String| {
            let text = files::read_text(&self.directory(name).join("lab.yaml")).unwrap_or_default();
            let is_here = inode(Namespace::open(machine(&self.directory(name)))) == here;
            is_here
                && topology_file::parse(name, &text).is_ok_and(|topology| {
                    attachments(&topology).any(|(_, a)| a.interface == interface)
                })
        };
        names.into_iter().find(attaches)
    }
}

/// Free queues of this machine, for each interface that needs some.
pub(crate) fn queues(topology: &Topology, labs: &Labs) -> Result<Queues, Error> {
    queues::choose(topology, labs.root())
}

/// The queues that a lab has recorded. Without the record its rules cannot be distinguished from
/// those of other labs: that is an error, unless there cannot be any rules.
fn known_queues(directory: &Path, machine: &Namespace) -> Result<Queues, Error> {
    let path = emulator_config(directory);
    let read = files::read(&path).and_then(|text| Ok(serde_json::from_slice(&text)?));
    match read.map(|config: emulator_daemon::Config| config.queues) {
        Ok(queues) => Ok(queues),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // The record is written atomically before any rule is added; a directory with a marker
            // never had one.
            let root = directory.parent().and_then(Path::parent).unwrap_or(directory);
            let are_none = || machine.run(|| queues::unknown(root).is_empty());
            if directory.join(MARKER).exists() || are_none()? {
                return Ok(Queues::new());
            }
            Err(Error::Attach(AttachError::UnknownRules { path, source: error }))
        }
        Err(source) => Err(Error::Attach(AttachError::UnknownRules { path, source })),
    }
}

/// Reverts the changes that a lab has made to this machine.
pub(crate) fn release(directory: &Path) -> Result<(), Error> {
    let machine = machine(directory);
    if !machine.exists() {
        return Ok(());
    }
    let namespace = match Namespace::open(&machine) {
        Ok(namespace) => Some(namespace),
        Err(netlink::Error::NotANamespace { .. }) => elsewhere(directory)?,
        Err(error) => return Err(error.into()),
    };
    if let Some(namespace) = namespace {
        let queues = known_queues(directory, &namespace)?;
        namespace.run(|| close(&queues))??;
    }
    Ok(Namespace::remove_path(machine)?)
}

/// Returns the namespace of a lab's attached interfaces if it is mounted in another mount namespace;
/// `None` if it was not kept yet, so that nothing has been changed in it.
fn elsewhere(directory: &Path) -> Result<Option<Namespace>, Error> {
    let Some(cookie) = recorded::machine(directory) else { return Ok(None) };
    let here = Namespace::current()?;
    match here.cookie()? == cookie {
        true => Ok(Some(here)),
        false => Err(Error::Attach(AttachError::Elsewhere)),
    }
}
