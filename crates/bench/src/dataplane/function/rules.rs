//! Cost of rules, for the function compared with plain forwarding. They are equal if the path to
//! the function adds no cost per rule.
//!
//! - `rules-base/N`: N base chains at the forward hook with an accepting rule each, as published.
//! - `rules-unreferenced/N`: N regular chains without references, as published. No packet traverses
//!   them.
//! - `rules-reached/N`: one regular chain of N rules without a match, reached by mark and goto, as
//!   operators write them.
//! - `…/slope`: cost per rule.
//!
//! End.DX4 with H.Encaps is not compared: its inner packet does not traverse the forward hook.

use super::nft;
use super::ways::{Nodes, SIZES, Way};
use super::{Scale, cost};
use crate::{Better, Context, Row, median, row};

/// Zero, then the published steps.
pub(super) const COUNTS: [usize; 9] = [0, 1, 2, 4, 8, 16, 32, 64, 128];

const WAYS: [Way; 2] = [Way::Function, Way::Plain];

#[derive(Debug, Clone, Copy)]
enum Place {
    Base,
    Unreferenced,
    Reached,
}

impl Place {
    const ALL: [Self; 3] = [Self::Base, Self::Unreferenced, Self::Reached];

    fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Unreferenced => "unreferenced",
            Self::Reached => "reached",
        }
    }

    /// Returns a ruleset that replaces the previous one.
    fn file(self, count: usize) -> String {
        let chain = |at, hook| format!("chain c{at} {{ {hook} accept; }}\n");
        let hook = "type filter hook forward priority filter;";
        let chains = match self {
            Self::Base => (0..count).map(|at| chain(at, hook)).collect(),
            Self::Unreferenced => (0..count).map(|at| chain(at, "")).collect(),
            // Set the mark for both modes, because a plain packet has none.
            Self::Reached => format!(
                "chain reached {{ {} }}\n\
                 chain marks {{ type filter hook prerouting priority raw; meta mark set 0x1111; }}\n\
                 chain forward {{ {hook} meta mark 0x1111 goto reached; }}\n",
                "udp dport 22 drop; ".repeat(count)
            ),
        };
        format!(
            "table inet rules {{ }}\ndelete table inet rules\ntable inet rules {{\n{chains}}}\n"
        )
    }
}

pub(super) fn bench(
    context: &Context<'_>,
    nodes: &Nodes,
    scale: &Scale,
) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for place in Place::ALL {
        // Indexed by number of rules, then by mode.
        let mut runs: Vec<[Vec<f64>; 2]> = vec![Default::default(); scale.rules.len()];
        for round in 1..=scale.rules_rounds {
            context.cancel.check()?;
            let (name, rounds) = (place.name(), scale.rules_rounds);
            (context.say)(&format!("rules ({name}), round {round} of {rounds}"));
            for (&count, runs) in scale.rules.iter().zip(&mut runs) {
                for (way, runs) in WAYS.into_iter().zip(runs) {
                    let load = || nft::load(&place.file(count));
                    nodes.of(way).bed().in_node(load)??;
                    runs.push(cost(nodes, way, SIZES[0], scale.count)?.net());
                }
            }
        }
        for (count, [function, plain]) in scale.rules.iter().zip(&runs) {
            let name = format!("rules-{}/{count}", place.name());
            rows.push(row(&name, "ns", function, Better::Less, Some(median(plain))));
        }
        if matches!(place, Place::Unreferenced) {
            // Skip the slope: the ratio of two costs near zero is meaningless.
            continue;
        }
        let [function, plain] = [0, 1].map(|way| slopes(scale.rules, &runs, way));
        let name = format!("rules-{}/slope", place.name());
        rows.push(row(&name, "ns", &function, Better::Less, Some(median(&plain))));
    }
    Ok(rows)
}

/// Returns the cost per rule of each round.
fn slopes(counts: &[usize], runs: &[[Vec<f64>; 2]], way: usize) -> Vec<f64> {
    let (none, most) = (&runs[0][way], &runs[runs.len() - 1][way]);
    let rules = (counts[counts.len() - 1] - counts[0]) as f64;
    none.iter().zip(most).map(|(none, most)| (most - none) / rules).collect()
}
