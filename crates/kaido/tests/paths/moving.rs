//! Applications that move, and applications that must not.

use std::net::IpAddr;
use std::time::Duration;

use serde_json::json;
use testkit::pause;

use crate::network::{Network, TIMEOUT, kaido};
use crate::topologies::{BRANCHES, LONG, SHORT, with_xdp};

#[test]
fn root_an_application_leaves_a_full_link_and_says_why() {
    leaves_a_full_link(BRANCHES);
}

#[test]
fn root_an_application_leaves_a_full_link_of_routers_with_xdp() {
    leaves_a_full_link(&with_xdp(BRANCHES));
}

fn leaves_a_full_link(text: &str) {
    for ipv6 in [false, true] {
        let kaido = kaido();
        let network = Network::up(&kaido, text);
        let sink =
            if ipv6 { IpAddr::from(network.ipv6("h2")) } else { IpAddr::from(network.ipv4("h2")) };
        assert_eq!(network.show("bulk")["path"], json!(SHORT));
        assert_eq!(network.steering("h3"), [""; 0]);
        network.find_neighbors();
        let bulk = network.send("h3", sink, 5201, 8.0);
        let rate = |app: &serde_json::Value| app["rate_bps"].as_u64().unwrap();
        network.until_app("bulk", TIMEOUT, |app| rate(app) > 6_000_000);

        let load = network.send("h1", sink, 6000, 22.0);
        let (after, app) = network.until_path("bulk", TIMEOUT, &LONG);
        println!("moved {after:?} after the link began to fill");
        assert_eq!((&app["state"], &app["moves"]), (&json!("admitted"), &json!(1)));
        assert_eq!(app["error"], json!(null));
        for list in ["ipv4_segments", "ipv6_segments"] {
            assert!(!app[list].as_array().unwrap().is_empty(), "{app}");
        }

        let why = network.why("bulk");
        assert_eq!(why["application"]["path"], json!(LONG));
        let alternatives = why["alternatives"].as_array().unwrap();
        let rejected = alternatives.iter().find(|other| other["path"] == json!(SHORT)).unwrap();
        assert_eq!((&rejected["chosen"], &rejected["covers"]), (&json!(false), &json!(false)));
        let limit = rejected["limit"]["interface"].as_str().unwrap();
        assert!(["r1:r3", "r3:r5"].contains(&limit), "{rejected}");
        assert_eq!(rejected["limit"]["capacity_bps"], 20_000_000);
        let chosen = alternatives.iter().find(|one| one["chosen"] == true).unwrap();
        assert_eq!((&chosen["path"], &chosen["covers"]), (&json!(LONG), &json!(true)));
        network.until_app("bulk", TIMEOUT, |_| {
            network.why("bulk")["decision"]["installed_at_ns"].as_u64() != Some(0)
        });
        let decision = network.why("bulk")["decision"].clone();
        assert!(decision["cause"].as_str().unwrap().contains("free"), "{decision}");
        let stages = ["sampled_at_ns", "received_at_ns", "decided_at_ns", "sent_at_ns"];
        let stages: Vec<u64> = stages
            .iter()
            .chain(&["installed_at_ns"])
            .map(|stage| decision[stage].as_u64().unwrap())
            .collect();
        assert!(stages[0] > 0 && stages.is_sorted(), "{decision}");

        // The application's packets leave through the new path, all others by the old one.
        let before = (network.sent("r4", "r5"), network.sent("r3", "r5"), bulk.sent());
        pause(Duration::from_secs(1));
        let now = (network.sent("r4", "r5"), network.sent("r3", "r5"), bulk.sent());
        let (moved, sent) = (now.0 - before.0, now.2 - before.2);
        assert!(sent > 100 && moved * 10 >= sent * 8, "{moved} of {sent}: {before:?} {now:?}");
        assert!(now.1 - before.1 > 1000, "{before:?} {now:?}");
        if network.runs_xdp("r4") {
            let in_xdp = network.packets_in_xdp("r4");
            assert!(in_xdp >= moved, "{in_xdp} of {moved} in XDP");
        }
        load.finish();
        let count = bulk.finish();
        assert!(count.received > 0, "{count:?}");
    }
}
