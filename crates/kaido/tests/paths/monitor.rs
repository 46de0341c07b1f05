//! `ip monitor` on a node: all changes of its routes and rules.

use std::io::{BufRead, BufReader};
use std::process::Child;
use std::sync::{Arc, Mutex};

use testkit::{Lab, until};

use crate::network::TIMEOUT;

/// Documentation addresses (RFC 5737) of routes that show that the monitor is listening.
const MARKERS: [&str; 2] = ["192.0.2.1", "192.0.2.2"];

/// A monitor that is listening.
pub(crate) struct Monitor<'l, 'k> {
    lab: &'l Lab<'k>,
    node: String,
    process: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl<'l, 'k> Monitor<'l, 'k> {
    /// Starts a monitor on `node`, and waits until it is listening.
    pub(crate) fn start(lab: &'l Lab<'k>, node: &str) -> Self {
        let mut process = lab.start(node, &["ip", "monitor", "route", "rule"]);
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (output, filled) = (process.stdout.take().unwrap(), Arc::clone(&lines));
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                filled.lock().unwrap().push(line);
            }
        });
        let monitor = Self { lab, node: node.into(), process, lines };
        monitor.mark(MARKERS[0]);
        monitor
    }

    /// Changes a marker route until the monitor reports it.
    fn mark(&self, marker: &str) {
        let seen = || {
            self.lab
                .run(&self.node, &["ip", "route", "replace", "blackhole", marker, "table", "99"]);
            self.lab.run(&self.node, &["ip", "route", "del", "blackhole", marker, "table", "99"]);
            self.lines.lock().unwrap().iter().any(|line| line.contains(marker)).then_some(())
        };
        until(TIMEOUT, seen, || format!("the monitor on {} sees nothing", self.node));
    }

    /// Stops the monitor, and returns all changes except those of marker routes.
    pub(crate) fn finish(mut self) -> Vec<String> {
        self.mark(MARKERS[1]);
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        let mut lines = std::mem::take(&mut *self.lines.lock().unwrap());
        lines.retain(|line| !MARKERS.iter().any(|marker| line.contains(marker)));
        lines
    }
}
