//! Applications that traverse service functions in order, and use other instances if one fails.

use std::path::PathBuf;

use serde_json::{Value, json};
use testkit::{Kaido, Machine, until};

use crate::network::{Network, TIMEOUT, kaido};

/// The firewall sets a DSCP on packets that it passes, and the IDS drops packets without it.
const FW: &str = "{mark: 0x11, rules: \"table inet fw { counter seen {};
          chain f { type filter hook forward priority filter; meta mark 0x11 goto own; };
          chain own { ip length > 1000 drop; ip6 length > 1000 drop; counter name seen;
            ip dscp set af11; ip6 dscp set af11; }; }\"";
const IDS: &str = "{mark: 0x22, bits: 8, rules: \"table inet ids { counter seen {};
          chain f { type filter hook forward priority filter; meta mark 0x22 goto own; };
          chain own { ip dscp != af11 drop; ip6 dscp != af11 drop; counter name seen; }; }\"}";

/// ```text
///        r2[fw] - r3[ids]
///       /               \
/// h1 - r1               r4 - h2
///       \               /
///        r5[fw] - r6[ids]      with twice the cost
/// ```
/// The firewall of r2 is up as long as the file `works` exists.
fn two_chains(works: &str) -> String {
    format!(
        "
name: chains
nodes:
  h1: {{}}
  h2: {{}}
  r1: {{router: linux}}
  r2:
    router: linux
    functions:
      fw: {FW}, health: {{run: [test, -e, \"{works}\"]}}}}
  r3: {{router: linux, functions: {{ids: {IDS}}}}}
  r4: {{router: linux}}
  r5: {{router: linux, functions: {{fw: {FW}}}}}}}
  r6: {{router: linux, functions: {{ids: {IDS}}}}}
links:
  - h1-r1
  - h2-r4
  - r1-r2: {{rate: 100mbit}}
  - r2-r3: {{rate: 100mbit}}
  - r3-r4: {{rate: 100mbit}}
  - r1-r5: {{rate: 100mbit, cost: 20}}
  - r5-r6: {{rate: 100mbit, cost: 20}}
  - r6-r4: {{rate: 100mbit, cost: 20}}
applications:
  web: {{from: h1, to: h2, demand: 5mbit, functions: [fw, ids]}}
"
    )
}

const UPPER: [&str; 6] = ["h1", "r1", "r2", "r3", "r4", "h2"];
const LOWER: [&str; 6] = ["h1", "r1", "r5", "r6", "r4", "h2"];

struct Chains<'k> {
    network: Network<'k>,
    works: PathBuf,
}

impl<'k> Chains<'k> {
    fn up(kaido: &'k Kaido) -> Self {
        let works = kaido.directory().join("works");
        std::fs::write(&works, "").unwrap();
        let network = Network::up(kaido, &two_chains(works.to_str().unwrap()));
        Self { network, works }
    }

    /// Number of packets that a router's function has passed.
    fn seen(&self, router: &str, table: &str) -> u64 {
        let list = format!("nft -j list counter inet {table} seen");
        let found: Value = serde_json::from_str(&self.network.exec(router, &list)).unwrap();
        let found = found["nftables"].as_array().unwrap();
        found.iter().find_map(|one| one["counter"]["packets"].as_u64()).unwrap()
    }

    /// Number of packets that the firewalls and the IDS instances of both branches have passed.
    fn all_seen(&self) -> [u64; 4] {
        [("r2", "fw"), ("r3", "ids"), ("r5", "fw"), ("r6", "ids")].map(|(r, t)| self.seen(r, t))
    }

    /// True if h2 answers all of h1's pings.
    fn ping(&self, size: &str) -> bool {
        let addresses = [self.network.ipv4("h2").to_string(), self.network.ipv6("h2").to_string()];
        let answered = addresses.map(|address| {
            let ping = ["ping", "-q", "-c", "5", "-i", "0.02", "-W", "2", "-s", size, &address];
            self.network.run("h1", &ping).code == Some(0)
        });
        assert_eq!(answered[0], answered[1], "one family gets through");
        answered[0]
    }

    /// Waits until packets take this path, with both functions on it; then sends packets to verify
    /// it.
    #[track_caller]
    fn expect(&self, path: &[&str]) -> Value {
        let (after, app) = self.network.until_path("web", TIMEOUT, path);
        println!("{path:?} after {after:?}");
        assert_eq!((&app["state"], &app["functions_at"]), (&json!("admitted"), &json!([2, 3])));
        assert_eq!(app["ipv4_segments"].as_array().unwrap().len(), 3, "{app}");
        let on_upper = path == UPPER;
        // Five for each family.
        let wanted = if on_upper { [10, 10, 0, 0] } else { [0, 0, 10, 10] };
        let pings = || {
            let before = self.all_seen();
            let answered = self.ping("56");
            let after = self.all_seen();
            (answered, [0, 1, 2, 3].map(|i| after[i] - before[i]))
        };
        // The headend applies the path after the controller has admitted it.
        until(
            TIMEOUT,
            || (pings() == (true, wanted)).then_some(()),
            || format!("{:?}", self.all_seen()),
        );
        let (answered, new) = pings();
        assert!(answered);
        assert_eq!(new, wanted, "firewall and IDS, above and below");
        assert!(!self.ping("1200"), "past the firewall");
        app
    }
}

#[test]
fn root_packets_pass_the_functions_in_order_and_find_others_when_one_goes() {
    let kaido = kaido();
    let chains = Chains::up(&kaido);
    let app = chains.expect(&UPPER);
    let shown = kaido.ok(&["app", "ls"]);
    assert!(shown.contains("admitted: h1 r1 r2[fw] r3[ids] r4 h2"), "{shown}");
    let segments = app["ipv4_segments"].as_array().unwrap().clone();
    // The functions' SIDs end with their marks.
    let ends = |at: usize, mark: &str| segments[at].as_str().unwrap().ends_with(mark);
    assert!(ends(0, "f000::11") && ends(1, "f000::22"), "{segments:?}");

    // The function's health check fails; then a link of the other branch fails.
    std::fs::remove_file(&chains.works).unwrap();
    chains.expect(&LOWER);
    let node = kaido.json(&["network"]).as_array().unwrap().clone();
    let node = node.iter().find(|node| node["name"] == "r2").unwrap().clone();
    assert_eq!(node["functions"][0]["up"], false, "{node}");
    std::fs::write(&chains.works, "").unwrap();
    let network = &chains.network;
    network.until_app("web", TIMEOUT, |_| {
        let nodes = network.nodes();
        nodes.iter().any(|node| node["name"] == "r2" && node["functions"][0]["up"] == true)
    });
    network.link("r5-r6", &["down"]);
    chains.expect(&UPPER);
    network.link("r5-r6", &["up"]);
    // A whole node fails, with its function.
    network.kill("r3");
    chains.expect(&LOWER);
}

#[test]
fn root_packets_go_by_their_functions_or_nowhere() {
    let kaido = kaido();
    // This health check never succeeds; the other firewall does not exist.
    let text = two_chains("/nowhere").replace("functions: {fw: ", "functions: {other: ");
    let network = Network::up(&kaido, &text);
    let (_, app) = network.until_app("web", TIMEOUT, |app| app["state"] == "unreachable");
    assert_eq!(app["functions"], json!(["fw", "ids"]));
    let shown = kaido.ok(&["app", "ls"]);
    assert!(shown.contains("unreachable: no path passes fw, ids; dropped"), "{shown}");
    let shown = kaido.ok(&["network"]);
    let row =
        |node: &str| shown.lines().find(|line| line.starts_with("fw ") && line.contains(node));
    assert!(row("r2").is_some_and(|row| row.ends_with("down")), "{shown}");
    let address = network.ipv4("h2").to_string();
    let closed = || {
        let route = network.run("h1", &["ip", "route", "get", &address]);
        (route.code != Some(0)).then_some(())
    };
    until(TIMEOUT, closed, || network.exec("h1", "ip rule"));
    assert_ne!(network.run("h1", &["ping", "-c", "1", "-W", "1", &address]).code, Some(0));
    // Without functions the application uses the IGP's own path.
    kaido.ok(&["app", "rm", "web"]);
    let open =
        || (network.run("h1", &["ip", "route", "get", &address]).code == Some(0)).then_some(());
    until(TIMEOUT, open, || network.exec("h1", "ip rule"));
    network.ping("h1", &[&address]);
    let add = ["app", "add", "web", "--from", "h1", "--to", "h2", "--demand", "1mbit"];
    let said = kaido.run(&[&add[..], &["--functions", "ids,fww"]].concat());
    assert_ne!(said.code, Some(0));
    assert!(said.stderr.contains("no function `fww` (known: fw, ids, other"), "{said}");
}

/// A router with a function and its rules.
fn one_function(rules: &str) -> String {
    format!(
        "name: one\nnodes:\n  r1: {{router: linux, functions: {{fw: {{{rules}}}}}}}\n  r2: {{router: \
         linux}}\nlinks: [r1-r2]\n"
    )
}

#[test]
fn root_rules_are_loaded_from_a_file_or_refused_and_nothing_is_left() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    let up = |rules: &str| {
        let file = kaido.file("lab.yaml", &one_function(rules));
        kaido.run(&["lab", "up", &file])
    };
    up("rules: \"table ip fw { chains f; }\"").failed(2, &["nft on r1 rejects", "of fw", "chains"]);
    before.assert_restored(&kaido);
    up("file: fw.nft").failed(2, &["lab.yaml:", "cannot read", "fw.nft"]);
    before.assert_restored(&kaido);
    kaido.file("fw.nft", "table ip fw { chain f { drop; }; }\n");
    let lab = kaido.lab_up(&one_function("file: fw.nft"));
    assert!(lab.exec("r1", "nft list ruleset").contains("chain f"));
    let routed = || lab.exec("r1", "ip -6 route").contains("unreachable fd00:0:1:f000::/112");
    until(TIMEOUT, || routed().then_some(()), || lab.exec("r1", "ip -6 route"));
    lab.down();
    before.assert_restored(&kaido);
}

#[test]
fn root_the_published_listing_works() {
    let kaido = kaido();
    let network = Network::up(&kaido, include_str!("../../../../labs/functions.yaml"));
    let path = ["h1", "r1", "fw01", "r2", "h2"];
    for app in ["login", "probe"] {
        let (_, found) = network.until_path(app, TIMEOUT, &path);
        assert_eq!(found["functions_at"], json!([2]), "{found}");
    }
    let address = network.ipv4("h2").to_string();
    let installed = || {
        let steered = network.steering("h1").iter().filter(|route| route.contains("encap")).count();
        (steered >= 2).then_some(())
    };
    until(TIMEOUT, installed, || format!("{:?}", network.steering("h1")));
    // There is no listener: h2 rejects connections that pass; dropped ones time out.
    let connect = |port: &str| {
        let script = format!("exec 3<>/dev/tcp/{address}/{port}");
        let said = network.run("h1", &["timeout", "2", "bash", "-c", &script]);
        said.code.unwrap()
    };
    assert_eq!([connect("8080"), connect("443")], [1, 1], "refused");
    assert_eq!([connect("22"), connect("23")], [124, 124], "dropped");
    // A burst of five: the limit initially passes a few.
    let ping = ["ping", "-q", "-c", "40", "-i", "0.02", "-W", "1", &address];
    let said = network.run("h1", &ping).stdout;
    let received = said.split(", ").find_map(|part| part.strip_suffix(" received"));
    let received: u32 = received.unwrap().parse().unwrap();
    assert!((1..=10).contains(&received), "{said}");
    // IPv6 meets the same limit, and an argument without a chain meets the policy.
    let address6 = network.ipv6("h2").to_string();
    let said =
        network.run("h1", &["ping", "-q", "-c", "40", "-i", "0.02", "-W", "1", &address6]).stdout;
    let received = said.split(", ").find_map(|part| part.strip_suffix(" received"));
    let received: u32 = received.unwrap().parse().unwrap();
    assert!((1..=10).contains(&received), "{said}");
    let counted = |mark: &str| {
        let shown = kaido.json(&["dataplane", "show", "--node", "fw01"]);
        let sids = shown["sids"].as_array().unwrap().clone();
        let sid = sids.iter().find(|sid| sid["name"].as_str().unwrap().contains(mark)).unwrap();
        sid["packets"].as_u64().unwrap()
    };
    assert!(counted("f000::/112") >= 6 && counted("f001::/112") >= 40);
    // Without its chain a function is withdrawn, and none of its packets bypass it.
    network.exec("fw01", "nft flush ruleset");
    network.until_app("login", TIMEOUT, |app| app["state"] == "unreachable");
    let closed = || {
        let steered = network.steering("h1");
        let to_login = steered.iter().any(|route| route.contains("f000::"));
        (!to_login).then_some(())
    };
    until(TIMEOUT, closed, || format!("{:?}", network.steering("h1")));
    let script = format!("exec 3<>/dev/tcp/{address}/22");
    let said = network.run("h1", &["timeout", "2", "bash", "-c", &script]);
    assert!(!said.stderr.contains("refused"), "an answer of h2: {said}");
}
