//! Explanations of an application's path.

use std::time::Duration;

use model::Color;

use crate::decider::view::View;
use crate::decider::{Decider, Decision, State};
use crate::graph::{ArcId, Path, PortId};
use crate::layers::Layers;
use crate::search;
use crate::segments::{self, Lists};

/// The assessment of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It covers the demand.
    Covers,
    /// Narrowest port has too little free bandwidth.
    TooLittle,
    /// No segment list can express it.
    NotEncodable(segments::Error),
}

/// A path that was assessed.
#[derive(Debug, Clone, PartialEq)]
pub struct Alternative {
    /// The path.
    pub path: Path,
    /// The sum of the IGP costs.
    pub cost: u64,
    /// The narrowest port and its free bandwidth for this application, in bits per second; None if
    /// no port of the path is limited.
    pub limit: Option<(PortId, u64)>,
    /// True if it is the application's path.
    pub chosen: bool,
    /// The assessment.
    pub verdict: Verdict,
}

/// The full explanation of an application's placement.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// The state of the application.
    pub state: State,
    /// Path.
    pub path: Option<Path>,
    /// Segment lists; empty if the IGP follows the path without them.
    pub lists: Lists,
    /// The assessed paths, fewest hops first.
    pub alternatives: Vec<Alternative>,
    /// The last decision that changed something.
    pub decision: Option<Decision>,
    /// The time at which the headend confirmed it, on the decider's clock.
    pub installed: Option<Duration>,
}

impl Decider {
    /// Explains an application's path, and the shortcomings of the other paths.
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
        // Always include the current path, however long it is.
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
