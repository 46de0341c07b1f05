//! FRR's daemons on a lab's routers, from the distribution's package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use model::topology::{Routing, Topology};
use nix::sys::prctl::set_no_new_privs;
use nix::unistd::User;
use private::Owner;

use crate::bounded::run;
use crate::enter::{FRR_RUN, enter};
use crate::error::{MachineError, StartError};
use crate::files::{self, tail};
use crate::frr_config::{OWN_LINES, config};
use crate::state::node_folder;
use crate::{Cancel, Error};

/// Folders that may contain FRR's daemons: the package's, then those of other distributions.
const FOLDERS: [&str; 3] = ["/usr/lib/frr", "/usr/libexec/frr", "/usr/sbin"];

/// Timeout for a daemon to start, and for vtysh to load a configuration.
const LIMIT: Duration = Duration::from_secs(20);

/// The daemons of a router. zebra is first, since the others connect to it.
fn daemons(topology: &Topology, at: usize) -> Vec<&'static str> {
    let node = &topology.nodes[at];
    let [ipv4, ipv6] = [node.ipv4_routing, node.ipv6_routing];
    let runs = |protocol| ipv4 == protocol || ipv6 == protocol;
    let timers = &topology.timers;
    let bfd = (runs(Routing::Ospf) && timers.ospf.bfd)
        || (runs(Routing::Isis) && timers.isis.bfd)
        || (runs(Routing::Bgp) && timers.bgp.bfd);
    [
        ("zebra", true),
        ("staticd", true),
        // Before the daemons that use it to monitor their neighbours.
        ("bfdd", bfd),
        ("ospfd", ipv4 == Routing::Ospf),
        ("ospf6d", ipv6 == Routing::Ospf),
        ("isisd", runs(Routing::Isis)),
        ("ripd", ipv4 == Routing::Rip),
        ("ripngd", ipv6 == Routing::Rip),
        ("bgpd", runs(Routing::Bgp)),
    ]
    .into_iter()
    .filter_map(|(daemon, runs)| runs.then_some(daemon))
    .collect()
}

/// The FRR installation.
#[derive(Debug, Clone)]
pub(crate) struct Frr {
    programs: PathBuf,
    /// User of its daemons. It may have been compromised through a malicious packet.
    user: Owner,
}

impl Frr {
    /// Finds FRR and the daemons that a topology needs. Creates the folder that the system creates
    /// at boot, if it is missing.
    pub(crate) fn find(topology: &Topology) -> Result<Self, Error> {
        let programs = FOLDERS
            .iter()
            .map(PathBuf::from)
            .find(|folder| folder.join("zebra").exists())
            .ok_or_else(|| {
                Error::Machine(MachineError::NoFrr(Path::new(FOLDERS[0]).join("zebra")))
            })?;
        let routers = (0..topology.nodes.len()).filter(|&at| topology.nodes[at].runs_frr());
        for daemon in routers.flat_map(|at| daemons(topology, at)) {
            if !programs.join(daemon).exists() {
                return Err(Error::Machine(MachineError::NoFrr(programs.join(daemon))));
            }
        }
        let user = User::from_name("frr").ok().flatten();
        let user =
            user.ok_or_else(|| Error::Machine(MachineError::NoFrr("the user frr".into())))?;
        let user = Owner { user: user.uid.as_raw(), group: user.gid.as_raw() };
        if !Path::new(FRR_RUN).is_dir() {
            private::make(Path::new(FRR_RUN)).map_err(Error::file("make", FRR_RUN))?;
            user.give_folder(Path::new(FRR_RUN)).map_err(Error::file("give away", FRR_RUN))?;
        }
        Ok(Self { programs, user })
    }

    /// Starts a router's daemons and loads its configuration.
    pub(crate) fn start(
        &self,
        folder: &Path,
        topology: &Topology,
        at: usize,
        cancel: &Cancel,
    ) -> Result<(), Error> {
        let node = &topology.nodes[at].name;
        self.write_files(folder, topology, at)?;
        // The forking thread has entered the namespace already: if this process is killed, its
        // children are found in the node's namespace at any moment.
        std::thread::scope(|scope| {
            let work = || {
                enter(folder, node, true)?;
                // zebra keeps CAP_SYS_ADMIN: in a mount namespace of its own it could show set-user-ID
                // programs another /etc.
                set_no_new_privs().map_err(|errno| Error::Command {
                    command: "FRR without new privileges".into(),
                    source: errno.into(),
                })?;
                for daemon in daemons(topology, at) {
                    self.start_daemon(folder, node, daemon, cancel)?;
                }
                load(folder, topology, at, cancel)
            };
            scope.spawn(work).join().expect("starting FRR does not panic")
        })
    }

    /// Creates a router's folders. FRR's user owns only the sockets' folder: vtysh reads the
    /// configuration as root, and a daemon opens its log before it drops root's privileges.
    fn write_files(&self, folder: &Path, topology: &Topology, at: usize) -> Result<(), Error> {
        let files = node_folder(folder, &topology.nodes[at].name);
        for name in ["etc", "log", "run"] {
            let path = files.join(name);
            private::make(&path).map_err(Error::file("make", &path))?;
        }
        let written = [
            ("etc/frr.conf", config(topology, at)),
            ("etc/vtysh.conf", "service integrated-vtysh-config\n".into()),
        ];
        for (name, text) in written {
            let path = files.join(name);
            private::create(&path, text.as_bytes()).map_err(Error::file("write", &path))?;
        }
        let run = files.join("run");
        self.user.give_folder(&run).map_err(Error::file("give away", &run))
    }

    fn start_daemon(
        &self,
        folder: &Path,
        node: &str,
        daemon: &str,
        cancel: &Cancel,
    ) -> Result<(), Error> {
        let program = self.programs.join(daemon);
        let log = format!("file:{}", log(folder, node, daemon).display());
        // -P 0: no telnet port; vtysh uses the socket. vtysh loads the configuration.
        let mut command = Command::new(&program);
        command.args(["-d", "-P", "0", "-f", "/dev/null", "--log", &log]).stdin(Stdio::null());
        let (ended, said) = run(&mut command, LIMIT, cancel)?;
        if ended.is_some_and(|status| status.success()) {
            return Ok(());
        }
        let how = ended.map_or_else(too_late, |status| status.to_string());
        Err(Error::Start(StartError::Frr {
            node: node.into(),
            daemon: daemon.into(),
            what: format!("did not start ({how})"),
            log: [said, last_lines(folder, node, daemon, 5)].join("\n").trim().into(),
        }))
    }
}

/// Loads frr.conf into all daemons. vtysh reports a rejected line on standard output.
fn load(folder: &Path, topology: &Topology, at: usize, cancel: &Cancel) -> Result<(), Error> {
    let node = topology.nodes[at].name.clone();
    let (ended, said) = run(Command::new("vtysh").arg("-b").stdin(Stdio::null()), LIMIT, cancel)?;
    let Some(status) = ended else {
        // It waits for a daemon that has exited, or whose log may say why it does not answer.
        check(folder, topology, at)?;
        let last = |daemon: &str| format!("{daemon}: {}", last_lines(folder, &node, daemon, 1));
        let lasts = daemons(topology, at).into_iter().map(last);
        let log: Vec<String> =
            std::iter::once(said).filter(|s| !s.is_empty()).chain(lasts).collect();
        let what = format!("did not load the configuration ({})", too_late());
        return Err(Error::Start(StartError::Frr {
            node,
            daemon: "vtysh".into(),
            what,
            log: log.join("\n"),
        }));
    };
    let refused: Vec<usize> = said.lines().filter_map(line_number).collect();
    if status.success() && refused.is_empty() && !said.contains("% ") {
        return Ok(());
    }
    let config = config(topology, at);
    let own = config.lines().position(|line| line == OWN_LINES);
    // Lines that the lab generates are rejected for reasons of the machine, such as a full disk.
    if own.is_some_and(|own| !refused.is_empty() && refused.iter().all(|&line| line > own)) {
        return Err(Error::Start(StartError::FrrConfig { node, said }));
    }
    let what = "did not load the configuration".into();
    Err(Error::Start(StartError::Frr { node, daemon: "vtysh".into(), what, log: said }))
}

/// Parses the number of a line such as `line 7: % Unknown command: ip root`.
fn line_number(said: &str) -> Option<usize> {
    said.trim_start().strip_prefix("line ")?.split(':').next()?.trim().parse().ok()
}

/// Returns an error if one of a router's daemons has exited.
pub(crate) fn check(folder: &Path, topology: &Topology, at: usize) -> Result<(), Error> {
    let node = &topology.nodes[at].name;
    for daemon in daemons(topology, at) {
        let pid = node_folder(folder, node).join("run").join(format!("{daemon}.pid"));
        // FRR's user may have written anything there.
        let pid = files::read_text(&pid).ok().and_then(|text| text.trim().parse::<u32>().ok());
        let command = pid.and_then(|pid| fs::read_to_string(format!("/proc/{pid}/comm")).ok());
        if command.is_none_or(|command| command.trim() != daemon) {
            return Err(Error::Start(StartError::Frr {
                node: node.clone(),
                daemon: daemon.into(),
                what: "has ended".into(),
                log: last_lines(folder, node, daemon, 5),
            }));
        }
    }
    Ok(())
}

fn too_late() -> String {
    format!("not within {} s", LIMIT.as_secs())
}

fn last_lines(folder: &Path, node: &str, daemon: &str, lines: usize) -> String {
    tail(&log(folder, node, daemon), lines)
}

fn log(folder: &Path, node: &str, daemon: &str) -> PathBuf {
    node_folder(folder, node).join("log").join(format!("{daemon}.log"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_lines_have_numbers() {
        assert_eq!(line_number("line 70: % Unknown command[4]: ip root"), Some(70));
        assert_eq!(line_number("line 3: Failure to communicate[13] to zebra, line: log"), Some(3));
        assert_eq!(line_number("Configuration file[/etc/frr/frr.conf] processing failure"), None);
    }
}
