//! Loads a router's configuration.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use model::topology::Topology;

use super::daemon::Daemon;
use super::{Router, TIMEOUT, too_late};
use crate::daemons::bounded::run;
use crate::error::StartError;
use crate::node::frr_config::{OWN_LINES, config};
use crate::pause::pause;
use crate::{Cancel, Error};

/// Loads frr.conf into all daemons. vtysh reports a rejected line on standard output.
pub(super) fn load(
    router: &mut Router,
    topology: &Topology,
    at: usize,
    cancel: &Cancel,
) -> Result<(), Error> {
    let node = topology.nodes[at].name.clone();
    let (ended, said) = run(Command::new("vtysh").arg("-b").stdin(Stdio::null()), TIMEOUT, cancel)?;
    let Some(status) = ended else {
        // It waits for a daemon that has exited, or whose log may say why it does not respond.
        router.check()?;
        let last = |daemon: &Daemon| format!("{}: {}", daemon.name, daemon.last_lines(1));
        let lasts = router.daemons.iter().map(last);
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
    // vtysh fails too if a daemon exits while it loads.
    check_exiting(router)?;
    let config = config(topology, at);
    let own = config.lines().position(|line| line == OWN_LINES);
    // Lines that the lab generates are rejected for reasons of the machine, such as a full disk.
    if own.is_some_and(|own| !refused.is_empty() && refused.iter().all(|&line| line > own)) {
        return Err(Error::Start(StartError::FrrConfig { node, said }));
    }
    let what = "did not load the configuration".into();
    Err(Error::Start(StartError::Frr { node, daemon: "vtysh".into(), what, log: said }))
}

/// Returns an error if one of the daemons has exited, or is exiting: the kernel closes the sockets
/// of a process before its parent can wait for it.
fn check_exiting(router: &mut Router) -> Result<(), Error> {
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(200) {
        router.check()?;
        pause(Duration::from_millis(10));
    }
    Ok(())
}

/// Parses the number of a line such as `line 7: % Unknown command: ip root`.
fn line_number(said: &str) -> Option<usize> {
    said.trim_start().strip_prefix("line ")?.split(':').next()?.trim().parse().ok()
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
