//! The example files in the manual.

use super::parse;

const FUNCTIONS: &str = include_str!("../../../docs/functions.md");

/// Returns the complete files among a page's listings; the others are fragments.
fn files(page: &str) -> impl Iterator<Item = &str> {
    let blocks = page.split("```").skip(1).step_by(2);
    let listings = blocks.filter_map(|block| block.strip_prefix("yaml\n"));
    listings.filter(|text| text.lines().any(|line| line.starts_with("source:")))
}

#[test]
fn files_of_the_page_for_functions_are_right() {
    let sids: Vec<_> = files(FUNCTIONS)
        .map(|text| parse("functions.md", text).unwrap_or_else(|wrong| panic!("{text}{wrong}")))
        .map(|file| file.sids.len())
        .collect();
    assert_eq!(sids, [1, 4]);
}
