//! A running lab of a test.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Child;

use serde_json::Value;

use crate::kaido::{Kaido, Said};

/// A lab that is brought down at the end of its scope, even if the test panics.
#[derive(Debug)]
pub struct Lab<'k> {
    kaido: &'k Kaido,
    name: String,
}

impl Kaido {
    /// Brings up a lab from the text of a topology.
    pub fn lab_up(&self, yaml: &str) -> Lab<'_> {
        let file = self.file("lab.yaml", yaml);
        self.lab_up_file(&file, &[])
    }

    /// Brings up a lab from a topology file, with additional arguments.
    pub fn lab_up_file(&self, file: &str, arguments: &[&str]) -> Lab<'_> {
        let up = self.json(&[&["lab", "up", file], arguments].concat());
        let name = up["lab"].as_str().expect("`up` names its lab");
        Lab::new(self, name)
    }
}

/// Returns the PID of a process of this name in a network namespace.
pub fn process_in(namespace: &Path, name: &str) -> Option<i32> {
    let identity = |path: &Path| fs::metadata(path).ok().map(|m| (m.dev(), m.ino()));
    let wanted = identity(namespace)?;
    let pids = fs::read_dir("/proc").ok()?.flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(|pid: &i32| {
        let comm = fs::read_to_string(format!("/proc/{pid}/comm"));
        comm.is_ok_and(|comm| comm.trim() == name)
            && identity(Path::new(&format!("/proc/{pid}/ns/net"))) == Some(wanted)
    })
}

/// Returns the PIDs of processes with a path in one of their arguments.
pub fn processes_with(path: &Path) -> Vec<i32> {
    let path = path.to_str().expect("it is UTF-8");
    let has = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| String::from_utf8_lossy(word).contains(path))
    };
    let all = fs::read_dir("/proc").expect("there are processes").flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(has).collect()
}

impl<'k> Lab<'k> {
    pub(crate) fn new(kaido: &'k Kaido, name: &str) -> Self {
        Self { kaido, name: name.into() }
    }

    /// Returns the name of the lab.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs a command on a node.
    pub fn run(&self, node: &str, command: &[&str]) -> Said {
        let exec = ["lab", "exec", "--lab", &self.name, node, "--"];
        self.kaido.run(&[&exec, command].concat())
    }

    /// Starts a command on a node with piped output, to be read, waited for or killed.
    pub fn start(&self, node: &str, command: &[&str]) -> Child {
        let exec = ["lab", "exec", "--lab", &self.name, node, "--"];
        self.kaido.start(&[&exec, command].concat())
    }

    /// Runs a command line, split at whitespace, on a node. It must succeed.
    #[track_caller]
    pub fn exec(&self, node: &str, command: &str) -> String {
        let words: Vec<&str> = command.split_whitespace().collect();
        self.run(node, &words).ok()
    }

    /// Asserts that each destination answers the first echo request.
    #[track_caller]
    pub fn ping(&self, from: &str, to: &[&str]) {
        for address in to {
            let said = self.run(from, &["ping", "-n", "-c", "1", "-W", "3", address]);
            assert_eq!(said.code, Some(0), "{from} pings {address}: {said}");
        }
    }

    /// Runs `kaido lab link LINK CHANGE…`, which must succeed.
    #[track_caller]
    pub fn link(&self, link: &str, change: &[&str]) -> Value {
        let command = ["lab", "link", "--lab", &self.name, link];
        self.kaido.json(&[&command, change].concat())
    }

    /// Returns a node's routes of both families, one per line, sorted.
    #[track_caller]
    pub fn routes(&self, node: &str) -> Vec<String> {
        let mut routes: Vec<String> = ["-4", "-6"]
            .iter()
            .flat_map(|family| {
                let text = self.exec(node, &format!("ip -o {family} route show table all"));
                text.lines().map(plain).collect::<Vec<_>>()
            })
            .collect();
        routes.sort();
        routes
    }

    /// Brings the lab down, which must succeed.
    #[track_caller]
    pub fn down(self) {
        self.kaido.ok(&["lab", "down", &self.name]);
    }
}

impl Drop for Lab<'_> {
    fn drop(&mut self) {
        // The test may already have brought the lab down, and the thread may be unwinding.
        let _ = self.kaido.command(&["lab", "down", &self.name]).output();
    }
}

/// Normalizes a route as printed by `ip`: removes the id of the next hop object, which FRR assigns
/// differently each time, and sorts the next hops.
fn plain(line: &str) -> String {
    let mut parts: Vec<String> = line
        .split('\\')
        .map(|part| {
            let words: Vec<&str> = part.split_whitespace().collect();
            let kept = words
                .iter()
                .enumerate()
                .filter(|(at, word)| **word != "nhid" && (*at == 0 || words[at - 1] != "nhid"));
            kept.map(|(_, word)| *word).collect::<Vec<_>>().join(" ")
        })
        .collect();
    parts[1..].sort();
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn next_hops_have_no_order_and_no_number() {
        let one = "10.0.0.0/8 nhid 7 proto ospf \\\tnexthop via a dev x \\\tnexthop via b dev y ";
        let two = "10.0.0.0/8 nhid 9 proto ospf \\\tnexthop via b dev y \\\tnexthop via a dev x ";
        assert_eq!(plain(one), plain(two));
        assert_ne!(plain(one), plain(&two.replace("via a", "via c")));
    }
}
