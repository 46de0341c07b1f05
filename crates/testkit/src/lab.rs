//! A running lab of a test.

use std::process::Child;

use serde_json::Value;

use crate::kaido::{Kaido, Said};

/// A lab that is taken down at the end of its scope, also when the test panics.
#[derive(Debug)]
pub struct Lab<'k> {
    kaido: &'k Kaido,
    name: String,
}

impl<'k> Lab<'k> {
    pub(crate) fn new(kaido: &'k Kaido, name: &str) -> Self {
        Self { kaido, name: name.into() }
    }

    /// The lab's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs a command on a node.
    pub fn run(&self, node: &str, command: &[&str]) -> Said {
        let exec = ["lab", "exec", "--lab", &self.name, node, "--"];
        self.kaido.run(&[&exec, command].concat())
    }

    /// Starts a command on a node with its output kept, to be read, waited for or killed.
    pub fn start(&self, node: &str, command: &[&str]) -> Child {
        let exec = ["lab", "exec", "--lab", &self.name, node, "--"];
        self.kaido.start(&[&exec, command].concat())
    }

    /// Runs a command line, split at its blanks, on a node; it must succeed.
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

    /// `kaido lab link LINK CHANGE…`, which must succeed.
    #[track_caller]
    pub fn link(&self, link: &str, change: &[&str]) -> Value {
        let command = ["lab", "link", "--lab", &self.name, link];
        self.kaido.json(&[&command, change].concat())
    }

    /// A node's routes of both families, one line each, in an order of their own.
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

    /// Takes the lab down; it must succeed.
    #[track_caller]
    pub fn down(self) {
        self.kaido.ok(&["lab", "down", &self.name]);
    }
}

impl Drop for Lab<'_> {
    fn drop(&mut self) {
        // The test may have taken it down itself; and it may be unwinding.
        let _ = self.kaido.command(&["lab", "down", &self.name]).output();
    }
}

/// A route as `ip` prints it, without the number of the next hops' object: that one is FRR's own
/// and new every time. The order of next hops means nothing.
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
