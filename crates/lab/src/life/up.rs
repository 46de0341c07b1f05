//! Bringing a lab up.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use model::topology::{NodeKind, RouterKind, Topology};
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use private::Lock;

use crate::attached;
use crate::daemons::processes::processes;
use crate::daemons::switch;
use crate::daemons::tenants::{self, has_client};
use crate::daemons::xdp;
use crate::error::MachineError;
use crate::life::build::Build;
use crate::life::options::{Options, Progress};
use crate::life::state::{self, Lab, Labs, MARKER, SOCKET, State, UNNAMED};
use crate::node::frr::Frr;
use crate::node::functions;
use crate::node::netem;
use crate::{Cancel, Error};

impl Labs {
    /// Brings up the lab that `text`, the content of `file`, describes. Returns once routing has
    /// converged and the controller, if there is one, knows its nodes and has decided on paths. On
    /// failure or cancellation everything is removed.
    pub fn up(
        &self,
        topology: Topology,
        text: &str,
        file: &Path,
        options: &Options,
        cancel: &Cancel,
        progress: Progress<'_>,
    ) -> Result<Lab, Error> {
        let name = options.name.as_deref().unwrap_or(&topology.name).to_owned();
        if !model::is_lab_name(&name) {
            return Err(Error::BadName(name));
        }
        let directory = self.directory(&name);
        check_path(&directory.join(SOCKET))?;
        if topology.has_emulated() {
            check_path(&state::emulator_socket(&directory))?;
        }
        let with_xdp = topology.nodes.iter().filter(|node| node.runs_xdp());
        for node in with_xdp {
            check_path(&xdp::socket(&directory, &node.name))?;
        }
        for node in topology.nodes.iter().filter(|node| has_client(node)) {
            check_path(&tenants::socket(&directory, &node.name))?;
        }
        let frr = check_machine(&topology, options.program.as_deref())?;
        let openvswitch = switch::find(&topology)?;
        let _lock = attached::lock_attaching(&topology, cancel)?;
        attached::check(&topology, self, options.attach_only_way_out)?;
        let queues = attached::queues(&topology, self)?;
        let (directory, lock, owner) = self.claim(&name, text, file, options.owned)?;
        let lab = Lab { name, directory, topology, owner };
        let build = Build { frr, openvswitch, queues, file, options, cancel };
        match build.run(&lab, progress) {
            Ok(()) => {
                drop(lock);
                Ok(lab)
            }
            Err(error) => {
                // Report the first error; `gc` retries the removal if it fails.
                let _ = self.remove(&lab.directory);
                // Ctrl-C also reaches daemons that are just starting: do not report that they did
                // not start.
                cancel.check()?;
                Err(error)
            }
        }
    }

    /// Creates the lab's directory. It is complete and locked from the moment at which it has its
    /// final name. The second lock is the owner's.
    fn claim(
        &self,
        name: &str,
        text: &str,
        file: &Path,
        owned: bool,
    ) -> Result<(PathBuf, Lock, Option<Lock>), Error> {
        let directory = self.directory(name);
        self.refuse_inside()?;
        let new_name = format!("{UNNAMED}{}", std::process::id());
        let new = self.directory(&new_name);
        if directory.exists() {
            return Err(self.exists(name));
        }
        let mut last = None;
        // Another command may be removing the empty parent directories at this moment.
        for _ in 0..10 {
            let made = self.make_directories(&new);
            let named = made.and_then(|()| self.lock(&new_name)).and_then(|lock| {
                let owner = if owned { Some(state::own(&new)?) } else { None };
                self.name_directory(&new, &directory, name, text, file)?;
                Ok((lock, owner))
            });
            match named {
                Ok((lock, owner)) => return Ok((directory, lock, owner)),
                Err(Error::File { source, .. } | Error::RunDirectory { source, .. })
                    if source.kind() == ErrorKind::NotFound =>
                {
                    last = Some(source);
                }
                Err(error) => {
                    self.remove_files(&new);
                    return Err(error);
                }
            }
        }
        let source = last.unwrap_or_else(|| ErrorKind::NotFound.into());
        Err(Error::RunDirectory { path: self.root().into(), source })
    }

    /// Creates the directory of all labs, and a new directory in it. The former is private to root,
    /// so that other users cannot replace, lock or read files of a lab.
    fn make_directories(&self, new: &Path) -> Result<(), Error> {
        let labs = self.root().join("labs");
        private::check(&labs)
            .and_then(|()| private::make(&labs))
            .map_err(|source| Error::RunDirectory { path: self.root().into(), source })?;
        private::make(&new.join("netns")).map_err(Error::file("create", new))
    }

    /// Fills the new directory and renames it to its final name atomically.
    fn name_directory(
        &self,
        new: &Path,
        directory: &Path,
        name: &str,
        text: &str,
        file: &Path,
    ) -> Result<(), Error> {
        let (marker, yaml) = (new.join(MARKER), new.join("lab.yaml"));
        private::create(&marker, b"").map_err(Error::file("write", marker))?;
        private::create(&yaml, text.as_bytes()).map_err(Error::file("write", yaml))?;
        State::new(file).write(new)?;
        match renameat2(AT_FDCWD, new, AT_FDCWD, directory, RenameFlags::RENAME_NOREPLACE) {
            Err(nix::errno::Errno::EEXIST) => Err(self.exists(name)),
            done => done.map_err(|errno| Error::file("create", directory)(errno.into())),
        }
    }

    /// Removes the directory of a lab that never had its final name: it is this process's own.
    fn remove_files(&self, new: &Path) {
        // Report the error that led here.
        let _ = fs::remove_dir_all(new);
        self.remove_empty_directories();
    }

    /// Rejects bringing up a lab from a node of another one: commands elsewhere could not open its
    /// namespaces.
    fn refuse_inside(&self) -> Result<(), Error> {
        let own = std::process::id() as i32;
        match self.names()?.into_iter().find(|name| processes(&self.directory(name)).contains(&own))
        {
            Some(name) => Err(Error::Inside(name)),
            None => Ok(()),
        }
    }

    fn exists(&self, name: &str) -> Error {
        Error::Exists { name: name.into(), phase: self.phase(name).word() }
    }
}

/// Checks that a socket can have this path, and that a configuration can contain it.
fn check_path(socket: &Path) -> Result<(), Error> {
    // `sun_path` of `sockaddr_un` has 108 bytes, including the terminating NUL.
    const MAX_PATH: usize = 107;
    if socket.to_str().is_none() {
        return Err(Error::NotUtf8(socket.into()));
    }
    if socket.as_os_str().len() > MAX_PATH {
        return Err(Error::PathTooLong { path: socket.into(), most: MAX_PATH });
    }
    Ok(())
}

/// Checks the machine's prerequisites for this topology. Returns FRR if a router runs it.
fn check_machine(topology: &Topology, program: Option<&Path>) -> Result<Option<Frr>, Error> {
    if !nix::unistd::geteuid().is_root() {
        return Err(Error::Machine(MachineError::NotRoot));
    }
    if !Path::new("/proc/sys/net/ipv6").is_dir() {
        return Err(Error::Machine(MachineError::NoIpv6("the kernel has none")));
    }
    let disabled = fs::read_to_string("/sys/module/ipv6/parameters/disable");
    if disabled.is_ok_and(|value| value.trim() == "1") {
        return Err(Error::Machine(MachineError::NoIpv6(
            "ipv6.disable=1 on the kernel's command line",
        )));
    }
    functions::check_machine(topology)?;
    netem::check(topology)?;
    let needs_frr =
        topology.nodes.iter().any(|node| node.kind == NodeKind::Router(RouterKind::Frr));
    let find = || Frr::find(topology, program.ok_or(Error::NoProgram)?);
    needs_frr.then(find).transpose()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_controllers_socket_has_a_path_that_sockets_can_have() {
        let of_length = |length: usize| check_path(Path::new(&"x".repeat(length)));
        assert!(of_length(107).is_ok());
        let error = of_length(108).unwrap_err();
        assert!(error.is_usage());
        assert!(error.to_string().contains("108 bytes long"), "{error}");
        let odd = Path::new(OsStr::from_bytes(b"/run/\xff/labs"));
        assert!(matches!(check_path(odd), Err(Error::NotUtf8(_))));
    }
}
