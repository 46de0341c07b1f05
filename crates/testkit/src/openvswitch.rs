//! Open vSwitch with the userspace datapath and AF_XDP ports, its own or DPDK's, from Debian's
//! packages.

use std::path::Path;
use std::time::Duration;

use netlink::Namespace;
use nix::sys::signal::Signal;
use openvswitch::{Installation, Instance, is_up};
use tempfile::TempDir;

use crate::kaido::Said;
use crate::packages::{Launch, Packages};
use crate::service::Service;
use crate::testpmd::PLUGINS;

/// Memory of DPDK in MiB, without huge pages.
const DPDK_MEMORY: &str = "512";

/// Timeout of a start, with a virtual machine that boots without KVM, and of a port until it is up.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Open vSwitch: the daemons of the switch and of its database, with a private directory. Both end
/// on drop.
#[derive(Debug)]
pub struct Switch {
    instance: Instance,
    namespace: Namespace,
    // Ends before the database, from which it disconnects.
    switch: Service,
    _database: Service,
    directory: TempDir,
}

impl Switch {
    /// Starts a switch without bridges in a namespace. One thread, on the first CPU, polls
    /// the ports. `launch` applies to the switch, not to its database.
    ///
    /// # Panics
    ///
    /// If the packages are missing, or the switch does not start within 10 seconds.
    pub fn start(namespace: &Namespace, launch: &Launch) -> Self {
        let installation = Installation::at(Packages::open("openvswitch").path(""));
        Self::with(installation.expect("the packages have the daemon"), namespace, launch, &[])
    }

    /// Starts a switch whose ports are DPDK's, without huge pages, as [`start`](Self::start) does.
    ///
    /// # Panics
    ///
    /// If the packages are missing, or the switch does not start within 10 seconds.
    pub fn start_with_dpdk(namespace: &Namespace, launch: &Launch) -> Self {
        let packages = Packages::open("openvswitch-dpdk");
        let installation = Installation::with_dpdk_at(packages.path(""));
        let plugins =
            PLUGINS.map(|plugin| format!(" -d {}", packages.libraries().join(plugin).display()));
        // DPDK without huge pages has this mode of memory; the switch would choose another one.
        let options = format!("--no-huge --legacy-mem --no-pci --no-telemetry -m {DPDK_MEMORY}");
        let settings = [
            "other_config:dpdk-init=true".to_owned(),
            format!("other_config:dpdk-extra={options}{}", plugins.concat()),
        ];
        let installation = installation.expect("the packages have the daemon");
        Self::with(installation, namespace, launch, &settings)
    }

    /// `settings` are columns of the table Open_vSwitch that the switch reads when it starts.
    fn with(
        installation: Installation,
        namespace: &Namespace,
        launch: &Launch,
        settings: &[String],
    ) -> Self {
        // A Unix socket's path is limited to 108 bytes, so keep the directory's path short.
        let directory = tempfile::Builder::new().prefix("kd").tempdir_in("/tmp");
        let directory = directory.expect("/tmp takes a directory");
        let instance = Instance::new(installation, directory.path());
        let database = start_database(&instance, namespace, directory.path());
        let set = ["--no-wait", "set", "Open_vSwitch", ".", "other_config:pmd-cpu-mask=0x1"];
        Said::run(instance.vsctl().args(set).args(settings)).ok();
        let switch = start_switch(&instance, namespace, directory.path(), launch);
        let namespace = namespace.clone();
        let mut switch = Self { instance, namespace, switch, _database: database, directory };
        switch.await_start();
        switch
    }

    /// Adds a bridge of the userspace datapath. It switches by MAC address until
    /// [`ofctl`](Self::ofctl) changes its flows.
    #[track_caller]
    pub fn add_bridge(&mut self, bridge: &str) {
        self.change(&Instance::add_bridge(bridge));
    }

    /// Adds an interface to a bridge as an AF_XDP port in native mode, and waits until it is up.
    /// `settings` are columns of the table Interface, as in `options:n_rxq=2`.
    #[track_caller]
    pub fn add_port(&mut self, bridge: &str, interface: &str, settings: &[&str]) {
        self.change(&Instance::add_port(bridge, interface, settings));
        self.await_port(interface);
    }

    /// Adds an interface to a bridge as a DPDK port with an AF_XDP socket, and waits until it is up.
    #[track_caller]
    pub fn add_dpdk_port(&mut self, bridge: &str, interface: &str) {
        let device = format!("options:dpdk-devargs=net_af_xdp_{interface},iface={interface}");
        let words = ["add-port", bridge, interface, "--", "set", "interface", interface];
        let words = [&words[..], &["type=dpdk", &device]].concat();
        self.change(&words.into_iter().map(str::to_owned).collect::<Vec<_>>());
        self.await_port(interface);
    }

    /// Waits until a port is up.
    #[track_caller]
    pub fn await_port(&mut self, interface: &str) {
        let Self { instance, switch, .. } = self;
        let show = || Said::run(&mut instance.show_port(interface));
        let state = || is_up(&show().stdout).then_some(());
        let missing = || format!("the port {interface} is not up:\n{}", show().output());
        switch.await_that(TIMEOUT, |_| state(), missing);
    }

    /// Runs `ovs-vsctl`, which changes the configuration and waits until the switch has applied it.
    pub fn vsctl(&self, arguments: &[&str]) -> Said {
        Said::run(self.instance.vsctl().args(arguments))
    }

    /// Runs `ovs-ofctl`, which reads and changes the flows of a bridge.
    pub fn ofctl(&self, arguments: &[&str]) -> Said {
        Said::run(self.instance.ofctl().args(arguments))
    }

    /// Runs `ovs-appctl`, which asks the running switch.
    pub fn appctl(&self, arguments: &[&str]) -> Said {
        Said::run(self.instance.appctl().args(arguments))
    }

    /// Returns the log of the switch and its wrapper.
    pub fn log(&self) -> String {
        self.switch.log()
    }

    /// Returns the process ID of `ovs-vswitchd`, which differs from that of a wrapper with a child.
    #[track_caller]
    pub fn pid(&self) -> i32 {
        let text = std::fs::read_to_string(self.instance.pid_file());
        let pid = text.ok().and_then(|text| text.trim().parse().ok());
        pid.unwrap_or_else(|| panic!("no process ID\n{}", self.switch.end_of_log()))
    }

    /// Asserts that the switch, or its wrapper, has not ended.
    #[track_caller]
    pub fn assert_running(&mut self) {
        assert!(self.switch.is_running(), "it has ended\n{}", self.switch.end_of_log());
    }

    /// Ends the switch with a signal and starts it again, perhaps in another way. It has the
    /// bridges and ports of its database; the ports may not be up yet.
    ///
    /// # Panics
    ///
    /// If the switch does not start within 10 seconds.
    pub fn restart(&mut self, signal: Signal, launch: &Launch) {
        self.switch.end(signal);
        // The new process writes them, and `await_start` must not find those of the old one.
        for file in [self.instance.pid_file(), self.instance.control()] {
            let _ = std::fs::remove_file(file);
        }
        let directory = self.directory.path();
        self.switch = start_switch(&self.instance, &self.namespace, directory, launch);
        self.await_start();
    }

    /// Waits until the switch answers.
    fn await_start(&mut self) {
        let Self { instance, switch, .. } = self;
        let ask = || Said::run(instance.appctl().arg("version"));
        let answers = || (ask().code == Some(0)).then_some(());
        switch.await_that(
            TIMEOUT,
            |_| answers(),
            || format!("the switch does not respond:\n{}", ask().output()),
        );
    }

    #[track_caller]
    fn change(&self, arguments: &[String]) {
        let said = Said::run(self.instance.vsctl().args(arguments));
        // A port that cannot be is only a warning.
        let is_applied = said.code == Some(0) && said.stderr.is_empty();
        let words = arguments.join(" ");
        let end = || format!("{}\n{}", said.output(), self.switch.end_of_log());
        assert!(is_applied, "ovs-vsctl {words}: {}", end());
    }
}

/// Creates a database and starts its daemon.
fn start_database(instance: &Instance, namespace: &Namespace, directory: &Path) -> Service {
    Said::run(&mut instance.create_database()).ok();
    let log = directory.join("database.log");
    let mut service = Service::start("ovsdb-server", namespace, &mut instance.database(), log);
    let init = || Said::run(&mut instance.init());
    let ready = || (init().code == Some(0)).then_some(());
    service.await_that(TIMEOUT, |_| ready(), || format!("no database:\n{}", init().output()));
    service
}

/// Starts the daemon of the switch.
fn start_switch(
    instance: &Instance,
    namespace: &Namespace,
    directory: &Path,
    launch: &Launch,
) -> Service {
    let mut command = instance.switch(&launch.wrapper);
    command.envs(launch.environment.iter().cloned());
    // DPDK's directory, in place of /var/run.
    command.env("RUNTIME_DIRECTORY", directory);
    Service::start("ovs-vswitchd", namespace, &mut command, directory.join("switch.log"))
}
