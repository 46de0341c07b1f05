//! The networks of these tests.

/// The two branches of `labs/paper-path.yaml` with static routes and lower rates:
///
/// ```text
///               60 Mbit/s
///   h1 -- r1 ------- r2 ------- r4
///       / |                     | 60 Mbit/s
///   h3 -  '------- r3 -------- r5 -- h2
///              20 Mbit/s
/// ```
pub(crate) const BRANCHES: &str = "
name: branches
nodes:
  h1: {}
  h2: {}
  h3: {}
  r1: {router: linux}
  r2: {router: linux}
  r3: {router: linux}
  r4: {router: linux}
  r5: {router: linux}
links:
  - h1-r1
  - h3-r1
  - r5-h2
  - r1-r2: {rate: 60mbit}
  - r2-r4: {rate: 60mbit}
  - r4-r5: {rate: 60mbit}
  - r1-r3: {rate: 20mbit}
  - r3-r5: {rate: 20mbit}
applications:
  bulk: {from: h3, to: h2, demand: 10mbit}
";

/// The same network with SRv6 in XDP on all its routers.
pub(crate) fn with_xdp(text: &str) -> String {
    text.replace("\nnodes:\n", "\ndataplane: xdp\nnodes:\n")
}

/// The shorter branch, which is the IGP's path.
pub(crate) const SHORT: [&str; 5] = ["h3", "r1", "r3", "r5", "h2"];
/// The longer and wider branch.
pub(crate) const LONG: [&str; 6] = ["h3", "r1", "r2", "r4", "r5", "h2"];

/// Two paths of equal length and width:
///
/// ```text
///         r2
///        /  \
///  h1 - r1  r4 - h2
///        \  /
///         r3
/// ```
pub(crate) const SQUARE: &str = "
name: square
nodes:
  h1: {}
  h2: {}
  r1: {router: linux}
  r2: {router: linux}
  r3: {router: linux}
  r4: {router: linux}
links:
  - h1-r1
  - r4-h2
  - r1-r2: {rate: 100mbit}
  - r2-r4: {rate: 100mbit}
  - r1-r3: {rate: 100mbit}
  - r3-r4: {rate: 100mbit}
applications:
  voice: {from: h2, to: h1, class: low-latency}
";
