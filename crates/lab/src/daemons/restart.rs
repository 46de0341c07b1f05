//! Restarts the daemons of a running lab.

use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use private::Lock;

use crate::daemons::control_plane::{controller_config, start_controller, start_node};
use crate::daemons::emulated;
use crate::daemons::processes::end;
use crate::daemons::programs;
use crate::daemons::spawn::{CONFIG, is_deaf, running, wait_for_socket, with_argument};
use crate::daemons::supervised;
use crate::daemons::switch;
use crate::daemons::tenants;
use crate::daemons::xdp;
use crate::error::LookupError;
use crate::files::remove_whatever;
use crate::life::state::{self, Lab, is_lab, lock, node_directory};
use crate::pause::pause;
use crate::{Cancel, Error};

impl Lab {
    /// Restarts the lab's controller after it has exited.
    pub fn start_controller(&self, program: &Path) -> Result<(), Error> {
        if !self.topology.controller {
            return Err(Error::Lookup(LookupError::NoController(self.name.clone())));
        }
        let _lock = self.lock_to_start()?;
        let socket = self.controller_socket();
        if !self.makes_way(&controller_config(&self.directory), &socket)? {
            return Err(Error::Running("controller".into()));
        }
        let mut controller = start_controller(&self.directory, program)?;
        wait_for_socket(&socket, &mut controller, &Cancel::default())
    }

    /// Restarts the lab's emulator after it has exited or become unreachable. Its links are
    /// restored from the file and the file's events.
    pub fn start_emulator(&self, program: &Path) -> Result<(), Error> {
        if !self.topology.has_emulated() {
            return Err(Error::Lookup(LookupError::NoEmulator(self.name.clone())));
        }
        let lock = self.lock_to_start()?;
        let config = state::emulator_config(&self.directory);
        if !self.makes_way(&config, &state::emulator_socket(&self.directory))? {
            return Err(Error::Running("emulator".into()));
        }
        self.supervise(program)?;
        emulated::run(&self.directory, program, &Cancel::default())?;
        // Steps of the timeline that are due in the meantime may need the lock.
        drop(lock);
        supervised::wait_until_mended(&self.directory)
    }

    /// Restarts the lab's supervisor after it has exited; it resumes the timeline.
    pub fn start_supervisor(&self, program: &Path) -> Result<(), Error> {
        if !supervised::is_needed(&self.topology) {
            return Err(Error::Lookup(LookupError::NoSupervisor(self.name.clone())));
        }
        let _lock = self.lock_to_start()?;
        if !self.supervise(program)? {
            return Err(Error::Running("supervisor".into()));
        }
        Ok(())
    }

    /// Starts the supervisor unless it is running. Returns true if it was started.
    fn supervise(&self, program: &Path) -> Result<bool, Error> {
        if !self
            .makes_way(&supervised::config(&self.directory), &supervised::socket(&self.directory))?
        {
            return Ok(false);
        }
        supervised::run(&self.directory, program, &Cancel::default())?;
        Ok(true)
    }

    /// Restarts those of a node's daemons that have exited.
    pub fn start_node(&self, node: &str, program: &Path) -> Result<(), Error> {
        let found = self.node(node)?;
        if found.is_switch() {
            return self.start_switch(node, program);
        }
        let (runs_xdp, is_judged) = (found.runs_xdp(), found.has_programs());
        if !self.topology.controller && !runs_xdp && !is_judged {
            return Err(Error::Lookup(LookupError::NoDaemon(node.into())));
        }
        let _lock = self.lock_to_start()?;
        let (flag, state) = xdp::known_by(&self.directory, node);
        let dataplane = runs_xdp && !self.runs(flag, &state);
        let config = node_directory(&self.directory, node).join("node.json");
        let agent = self.topology.controller && !self.runs(CONFIG, &config);
        let programs = is_judged && !self.runs(CONFIG, &tenants::config(&self.directory, node));
        if !dataplane && !agent && !programs {
            return Err(Error::Running(node.into()));
        }
        if dataplane {
            xdp::start_again(&self.directory, node, program)?;
        }
        if programs {
            programs::start_again(&self.directory, found, program)?;
        }
        if agent {
            start_node(&self.directory, node, program)?;
        }
        Ok(())
    }

    /// Restarts those daemons of a switch that have exited.
    fn start_switch(&self, node: &str, program: &Path) -> Result<(), Error> {
        let _lock = self.lock_to_start()?;
        let has = |path: &Path| !with_argument(&self.directory, path.as_os_str()).is_empty();
        let config = tenants::config(&self.directory, node);
        if has(&config) && has(&switch::database(&self.directory, node)) {
            return Err(Error::Running(node.into()));
        }
        let Some(at) = self.topology.node_index(node) else { return Ok(()) };
        switch::start_again(&self.directory, &self.topology, at, program)
    }

    /// Takes the lab's lock. Another command that is starting a daemon soon releases it.
    pub(crate) fn lock_to_start(&self) -> Result<Lock, Error> {
        const TIMEOUT: Duration = Duration::from_secs(15);
        let since = Instant::now();
        loop {
            match lock(&self.directory) {
                Some(lock) => return Ok(lock),
                // The holder may have been `down`, which has removed the lab.
                None if !is_lab(&self.directory) => {
                    return Err(Error::NoLab { name: self.name.clone(), known: Vec::new() });
                }
                None if since.elapsed() > TIMEOUT => return Err(Error::Busy(self.name.clone())),
                None => pause(Duration::from_millis(10)),
            }
        }
    }

    /// Returns true if a daemon with this configuration can be started: none is running, or the
    /// running one is unreachable because its socket is gone. The latter is killed.
    fn makes_way(&self, config: &Path, socket: &Path) -> Result<bool, Error> {
        if !self.runs(CONFIG, config) {
            return Ok(true);
        }
        if !is_deaf(socket) {
            return Ok(false);
        }
        end(|| running(&self.directory, CONFIG, config))?;
        // The socket's path is unused now.
        match remove_whatever(socket) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Error::file("remove", socket)(error));
            }
            _ => {}
        }
        Ok(!self.runs(CONFIG, config))
    }

    /// Returns true if a daemon with this argument is running. It may hold a lock on the file for
    /// its lifetime, and is one of the lab's processes before it takes that lock. Look for the
    /// process first, so that a daemon which has just started does not find the lock taken by this
    /// check.
    fn runs(&self, flag: &str, path: &Path) -> bool {
        // A process that was just killed has an empty cmdline but may hold its lock briefly.
        const DYING: Duration = Duration::from_millis(500);
        let since = Instant::now();
        loop {
            if !running(&self.directory, flag, path).is_empty() {
                return true;
            }
            if !path.is_file() || lock(path).is_some() {
                return false;
            }
            if since.elapsed() > DYING {
                return true;
            }
            pause(Duration::from_millis(10));
        }
    }
}
