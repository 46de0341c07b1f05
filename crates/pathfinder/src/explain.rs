//! Why an application is where it is.

use std::time::Duration;

use model::Color;

use crate::decider::view::View;
use crate::decider::{Decider, Decision, State};
use crate::graph::{ArcId, Path, PortId};
use crate::layers::Layers;
use crate::search;
use crate::segments::{self, Lists};

/// What speaks for or against a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It covers the demand.
    Covers,
    /// Its narrowest port has too little left.
    TooLittle,
    /// No segment list describes it.
    NotEncodable(segments::Error),
}

/// A path that was looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct Alternative {
    /// The path.
    pub path: Path,
    /// The sum of the IGP's costs.
    pub cost: u64,
    /// The narrowest port and its free bandwidth for this application, bits per second; absent
    /// when nothing on the path limits.
    pub limit: Option<(PortId, u64)>,
    /// Whether the application is on it.
    pub chosen: bool,
    /// What speaks for or against it.
    pub verdict: Verdict,
}

/// The whole answer to "why is it there?".
#[derive(Debug, Clone)]
pub struct Explanation {
    /// What became of the application.
    pub state: State,
    /// Its path.
    pub path: Option<Path>,
    /// Its segment lists; empty when the IGP goes that way by itself.
    pub lists: Lists,
    /// The other paths, fewest hops first.
    pub alternatives: Vec<Alternative>,
    /// The last decision that changed something.
    pub decision: Option<Decision>,
    /// When the headend confirmed it, on the decider's clock.
    pub installed: Option<Duration>,
}

impl Decider {
    /// Why an application is where it is, and what the other paths lack.
    pub fn explain(&self, color: Color) -> Option<Explanation> {
        let app = self.apps_by_color(color)?;
        let managed = self.managed();
        let view = View::new(self, &managed, app);
        let (from, to) = (app.demand.from, app.demand.to);
        let known = from.index() < self.graph().len() && to.index() < self.graph().len();
        let mut found = Vec::new();
        if known {
            let layers = Layers::new(self.graph(), &app.demand.functions);
            let (start, end) = (layers.start(from), layers.end(to));
            let most = self.config().alternatives;
            found = search::alternatives(layers.graph(), start, end, most);
            for path in &mut found {
                path.arcs = layers.originals(&path.arcs);
            }
        }
        // However long it is, the path that it is on is among them.
        let current = app.path.as_ref().and_then(|path| path.arcs(self.graph()));
        let cost =
            |arcs: &[ArcId]| arcs.iter().map(|&id| u64::from(self.graph().arc(id).cost)).sum();
        let missing = current
            .filter(|arcs| found.iter().all(|found| found.arcs != *arcs))
            .map(|arcs| search::Found { cost: cost(&arcs), arcs });
        let alternatives = found
            .into_iter()
            .chain(missing)
            .map(|found| {
                let path = Path::over(self.graph(), from, &found.arcs);
                let limit = view.limit(&found.arcs, app.path.as_ref());
                let chosen = app.path.as_ref() == Some(&path);
                let verdict = match self.lists(&app.demand, &found.arcs) {
                    Err(error) => Verdict::NotEncodable(error),
                    Ok(_) => match limit {
                        Some((_, free)) if free < self.needed(app) => Verdict::TooLittle,
                        _ => Verdict::Covers,
                    },
                };
                Alternative { path, cost: found.cost, limit, chosen, verdict }
            })
            .collect();
        Some(Explanation {
            state: app.state,
            path: app.path.clone(),
            lists: app.lists.clone(),
            alternatives,
            decision: app.decision.clone(),
            installed: app.installed_at,
        })
    }
}
