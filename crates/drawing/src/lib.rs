//! Drawings of topologies: text for terminals, SVG for pages.
#![forbid(unsafe_code)]

mod svg;
mod text;

pub use svg::svg;
pub use text::text;
