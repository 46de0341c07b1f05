//! Text and output of service functions.

use api::v1;
use output::dataplane::FunctionDrops;

use super::health_text::{MAX_SHOWN, health};
use crate::output::table;

/// Returns the entries of service functions.
pub(super) fn functions(
    found: &v1::GetDataplaneResponse,
) -> impl Iterator<Item = &v1::DataplaneEntry> {
    found.sids.iter().filter(|sid| sid.returned.is_some())
}

pub(super) const INTO: &str = "INTO FUNCTION";
pub(super) const BACK: &str = "RETURNED";
pub(super) const DROPPED: &str = "DROPPED AT";

/// Formats the functions for a terminal that also shows other entries; `None` if there are none.
/// `per` is the suffix of the counter headings.
pub(super) fn text(found: &v1::GetDataplaneResponse, per: &str) -> Option<String> {
    let row = |e: &v1::DataplaneEntry| [vec![e.name.clone()], counts(e)].concat();
    let rows: Vec<_> = functions(found).take(MAX_SHOWN).map(row).collect();
    if rows.is_empty() {
        return None;
    }
    let [into, back, dropped] = [INTO, BACK, DROPPED].map(|heading| format!("{heading}{per}"));
    let shown = table(&["FUNCTION", &into, &back, &dropped, "HEALTH"], rows);
    let more = functions(found).count().saturating_sub(MAX_SHOWN);
    let note = format!("\n\nand {more} more: `kaido function ls` has them all");
    Some(if more > 0 { shown + &note } else { shown })
}

/// Formats the counts of a function, and its health.
pub(super) fn counts(e: &v1::DataplaneEntry) -> Vec<String> {
    let count = |count: Option<u64>| count.map_or("-".into(), |count| count.to_string());
    let dropped = e.dropped.as_ref().map_or("-".into(), drops);
    vec![count(e.packets), count(e.returned), dropped, health(e.health.as_ref())]
}

/// Formats drops by hook: `forward 12, postrouting 3`.
fn drops(found: &v1::FunctionDrops) -> String {
    let v1::FunctionDrops { prerouting, forward, postrouting, no_hook } = *found;
    let all = [
        ("prerouting", prerouting),
        ("forward", forward),
        ("postrouting", postrouting),
        ("no hook", no_hook),
    ];
    let some = all.iter().filter(|(_, count)| *count > 0);
    let text: Vec<_> = some.map(|(hook, count)| format!("{hook} {count}")).collect();
    if text.is_empty() { "none".into() } else { text.join(", ") }
}

pub(super) fn drops_output(found: &v1::FunctionDrops) -> FunctionDrops {
    let v1::FunctionDrops { prerouting, forward, postrouting, no_hook } = *found;
    FunctionDrops { prerouting, forward, postrouting, no_hook }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_said_by_hook() {
        let found = v1::FunctionDrops { forward: 12, no_hook: 1, ..Default::default() };
        assert_eq!(drops(&found), "forward 12, no hook 1");
        assert_eq!(drops(&v1::FunctionDrops::default()), "none");
    }
}
