//! The controller's files and sockets, and peers with a different protocol version.

use std::io::Read;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::json;
use testkit::{Kaido, Said, pause, until};

use crate::fake_controller::FakeController;
use crate::monitor::Monitor;
use crate::network::{Network, TIMEOUT, kaido};
use crate::topologies::{BRANCHES, LONG};

/// Writes a controller's configuration with its socket and its store.
fn config(kaido: &Kaido, name: &str, socket: &str) -> String {
    let store = kaido.directory().join(format!("{name}.store"));
    let config = json!({ "socket": socket, "store": store });
    kaido.file(&format!("{name}.json"), &config.to_string())
}

#[test]
fn root_a_damaged_store_is_set_aside_and_rebuilt_from_the_nodes() {
    let kaido = kaido();
    let network = Network::up(&kaido, BRANCHES);
    kaido.ok(&["app", "add", "big", "--from", "h3", "--to", "h2", "--demand", "30mbit"]);
    network.until_app("big", TIMEOUT, |_| network.steering("h3").len() >= 4);
    let look = || {
        let apps = kaido.json(&["app", "ls"]);
        let keys = ["name", "color", "path", "state", "demand_bps", "ipv4_segments"];
        let apps = apps.as_array().unwrap().clone();
        let apps: Vec<_> = apps.iter().map(|app| keys.map(|key| app[key].clone())).collect();
        (apps, network.steering("h3"))
    };
    let before = look();
    let monitor = Monitor::start(&network, "h3");

    network.kill("controller");
    let store = network.path("controller.store");
    let mut bytes = std::fs::read(&store).unwrap();
    bytes.iter_mut().step_by(61).for_each(|byte| *byte ^= 0x5a);
    std::fs::write(&store, &bytes).unwrap();
    network.start_daemon("controller");
    network.wait_until_complete();
    let both = || (look().0.len() == 2).then_some(());
    until(TIMEOUT, both, || format!("{:?}", look()));
    network.wait_until_complete();
    pause(Duration::from_secs(1));

    assert_eq!(look(), before);
    assert_eq!(monitor.finish(), [""; 0]);
    let files = std::fs::read_dir(network.path("")).unwrap().flatten();
    let aside: Vec<_> = files
        .map(|file| file.path())
        .filter(|path| path.to_str().unwrap().contains("controller.store.damaged-"))
        .collect();
    let [aside] = &aside[..] else { panic!("{aside:?}") };
    assert_eq!(std::fs::read(aside).unwrap(), bytes);
    let log = network.log("controller");
    assert!(log.contains("the store was damaged: it is set aside as"), "{log}");

    // The new store contains the data recovered from the nodes.
    network.kill("controller");
    network.start_daemon("controller");
    network.wait_until_complete();
    until(TIMEOUT, || (look() == before).then_some(()), || format!("{:?}", look()));
}

/// Another user could replace the store, whose applications are steered, or put a link in its place.
#[test]
fn root_a_controller_uses_no_directory_of_others() {
    let kaido = kaido();
    let open = kaido.directory().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
    let [inside, outside] = [&open, kaido.directory()].map(|at| at.join("controller"));
    for (socket, store) in [(&inside, &outside), (&outside, &inside)] {
        let config = json!({ "socket": socket.with_extension("sock"), "store": store });
        let config = kaido.file("controller.json", &config.to_string());
        let said = kaido.run(&["controller", "--config", &config]);
        said.failed(1, &["must be in a directory that only its user can change"]);
    }
    assert!(!inside.exists() && !outside.exists());
}

/// Any user who can read a configuration can lock it.
#[test]
fn root_a_lock_of_another_user_keeps_no_controller_from_starting() {
    let kaido = kaido();
    let socket = kaido.directory().join("controller.sock");
    let file = config(&kaido, "public", socket.to_str().unwrap());
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let lock = private::Lock::existing(file.as_ref()).unwrap().expect("it is free");
    let mut controller = kaido.start(&["controller", "--config", &file]);
    until(TIMEOUT, || socket.exists().then_some(()), || "it does not start".to_owned());
    controller.kill().unwrap();
    controller.wait().unwrap();
    drop(lock);
}

#[test]
fn root_a_second_controller_is_refused_and_the_first_unharmed() {
    let kaido = kaido();
    let network = Network::up(&kaido, BRANCHES);
    let first = network.daemon("controller");
    let lab = network.path("controller.json");
    let said = kaido.run(&["controller", "--config", lab.to_str().unwrap()]);
    said.failed(1, &["a daemon with the configuration", "is running"]);
    let copy = kaido.file("copy.json", &std::fs::read_to_string(&lab).unwrap());
    let said = kaido.run(&["controller", "--config", &copy]);
    said.failed(1, &["another process listens on"]);
    let socket = network.path("controller.sock");
    let second = config(&kaido, "second", socket.to_str().unwrap());
    let said = kaido.run(&["controller", "--config", &second]);
    said.failed(1, &["another process listens on", socket.to_str().unwrap()]);
    assert!(!kaido.directory().join("second.store").exists(), "it leaves nothing behind");
    assert_eq!(network.daemon("controller"), first);
    assert_eq!(network.alive().len(), 8);
}

#[test]
fn root_a_dead_socket_is_replaced_and_any_other_file_is_not() {
    let kaido = kaido();
    let socket = kaido.directory().join("c.sock");
    drop(serve::listen(&socket).unwrap());
    let path = socket.to_str().unwrap();
    let file = config(&kaido, "one", path);
    let mut running = kaido.start(&["controller", "--config", &file]);
    let answers = || kaido.run(&["app", "ls", "--controller", path]).code.filter(|code| *code == 0);
    until(TIMEOUT, answers, || "the controller does not respond".into());
    let pid = nix::unistd::Pid::from_raw(running.id() as i32);
    nix::sys::signal::kill(pid, Signal::SIGTERM).unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(0));
    assert!(!socket.exists(), "its socket goes with it");

    std::fs::write(&socket, "precious").unwrap();
    let said = kaido.run(&["controller", "--config", &file]);
    said.failed(1, &[path, "exists and is not a socket"]);
    assert_eq!(std::fs::read(&socket).unwrap(), b"precious");
    let nowhere = config(&kaido, "two", "/nonexistent/c.sock");
    kaido.run(&["controller", "--config", &nowhere]).failed(1, &["/nonexistent/c.sock"]);
    let unwritable = json!({ "socket": path, "store": "/nonexistent/store" }).to_string();
    std::fs::remove_file(&socket).unwrap();
    let unwritable = kaido.file("three.json", &unwritable);
    kaido.run(&["controller", "--config", &unwritable]).failed(1, &["/nonexistent/store"]);
    assert!(!socket.exists());
}

#[test]
fn root_a_controller_that_is_asked_to_end_does_so_at_once() {
    let kaido = kaido();
    let network = Network::up(&kaido, BRANCHES);
    let mut watch = kaido.start(&["app", "watch"]);
    pause(Duration::from_millis(300));
    let started = Instant::now();
    network.signal("controller", Signal::SIGTERM);
    let gone = || network.daemon("controller").is_none().then_some(());
    until(TIMEOUT, gone, || "the controller still runs".into());
    println!("the controller ended after {:?}", started.elapsed());
    watch.wait().unwrap();
    network.start_daemon("controller");
    network.wait_until_complete();
}

#[test]
fn root_ready_means_that_the_controller_knows_its_nodes() {
    let kaido = kaido();
    let file = kaido.file("lab.yaml", BRANCHES);
    let up = kaido.start(&["lab", "up", &file]);
    let state = kaido.run_directory().join("labs/branches/state.json");
    let ready = || std::fs::read_to_string(&state).ok().filter(|text| text.contains("\"ready\""));
    until(TIMEOUT, ready, || "the lab is not ready".into());
    let nodes = kaido.json(&["network"]);
    let alive = nodes.as_array().unwrap().iter().filter(|node| node["alive"] == true).count();
    assert_eq!((alive, &kaido.json(&["app", "ls"])[0]["state"]), (8, &json!("admitted")));
    Said::from_output("up".into(), up.wait_with_output().unwrap()).ok();
}

#[test]
fn root_one_of_many_concurrent_starts_starts_the_daemon() {
    let kaido = kaido();
    let network = Network::up(&kaido, BRANCHES);
    for daemon in ["r3", "controller"] {
        network.kill(daemon);
        let starts: Vec<_> = (0..4).map(|_| kaido.start(&["lab", "start", daemon])).collect();
        let said = starts
            .into_iter()
            .map(|start| Said::from_output("start".into(), start.wait_with_output().unwrap()));
        let (started, refused): (Vec<Said>, Vec<Said>) = said.partition(|s| s.code == Some(0));
        assert_eq!(started.len(), 1, "{started:#?}");
        for said in refused {
            said.failed(2, &[daemon, "is running already"]);
        }
        network.wait_until_complete();
    }
}

#[test]
fn root_a_watch_ends_with_its_reader() {
    let kaido = kaido();
    let _network = Network::up(&kaido, BRANCHES);
    // The first one prints much, the second one nothing.
    for watch in [&["network", "--watch"][..], &["app", "watch"]] {
        let mut watching = kaido.start(watch);
        let mut output = watching.stdout.take().unwrap();
        if watch[0] == "network" {
            output.read_exact(&mut [0; 100]).unwrap();
        }
        pause(Duration::from_millis(300));
        assert!(watching.try_wait().unwrap().is_none());
        drop(output);
        let ended = || watching.try_wait().unwrap();
        let status = until(TIMEOUT, ended, || format!("{watch:?} goes on"));
        let said = Said::from_output("watch".into(), watching.wait_with_output().unwrap());
        assert_eq!((status.code(), said.stderr.as_str()), (Some(0), ""));
    }
}

#[test]
fn root_a_node_of_another_version_is_refused() {
    let kaido = kaido();
    let network = Network::up(&kaido, BRANCHES);
    let hello = api::v1::Hello { api_version: 999, node: "r9".into(), ..Default::default() };
    let hello = api::v1::from_node::Message::Hello(hello);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let status = runtime.block_on(async {
        let mut client = api::connect(&network.path("controller.sock")).await.unwrap();
        let messages = [api::v1::FromNode { message: Some(hello) }];
        client.session(tokio_stream::iter(messages)).await.unwrap_err()
    });
    assert_eq!(status.code(), tonic::Code::FailedPrecondition);
    let version = api::VERSION.to_string();
    for word in ["node r9", "version 999", version.as_str()] {
        assert!(status.message().contains(word), "{status}");
    }
    assert!(!network.alive().contains(&"r9".to_owned()));
}

#[test]
fn root_a_node_that_is_refused_ends_and_says_why() {
    let kaido = kaido();
    let network = Network::up(&kaido, BRANCHES);
    let refusal = "node r3 speaks version 1 of the interface, this controller 999";
    let socket = kaido.directory().join("other.sock");
    let _controller = FakeController::start(&socket, refusal);
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o700)).unwrap();
    let text = std::fs::read_to_string(network.path("nodes/r3/node.json")).unwrap();
    let mut config: serde_json::Value = serde_json::from_str(&text).unwrap();
    config["controller"] = json!(socket);
    let file = kaido.file("node.json", &config.to_string());
    // A network namespace can have only one node.
    network
        .run("r3", &[env!("CARGO_BIN_EXE_kaido"), "node", "--config", &file])
        .failed(1, &["already runs in this network namespace"]);
    network.kill("r3");
    let said = network.run("r3", &[env!("CARGO_BIN_EXE_kaido"), "node", "--config", &file]);
    said.failed(1, &["the controller refuses this node", refusal]);
}

#[test]
fn root_hundreds_of_applications_at_one_host_are_steered_and_the_rest_says_why_not() {
    let kaido = kaido();
    let network = Network::up(&kaido, BRANCHES);
    kaido.ok(&["app", "rm", "bulk"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let add = |names: &str, count: u16, to: &str| {
        runtime.block_on(async {
            let mut client = api::connect(&network.path("controller.sock")).await.unwrap();
            for at in 0..count {
                let port = u32::from(10_000 + at);
                let application = api::v1::Application {
                    functions: Vec::new(),
                    name: format!("{names}{at}"),
                    from: "h3".into(),
                    to: to.into(),
                    r#match: Some(api::v1::Match {
                        protocol: Some(api::v1::Protocol::Udp.into()),
                        ports: Some(api::v1::PortRange { first: port, last: port }),
                        ..Default::default()
                    }),
                    demand_bps: 200_000,
                    class: api::v1::Class::Bandwidth.into(),
                };
                let request = api::v1::AddApplicationRequest {
                    application: Some(application),
                    dry_run: false,
                };
                client.add_application(request).await.unwrap();
            }
        });
    };
    let apps = || kaido.json(&["app", "ls"]).as_array().unwrap().clone();

    // The short branch has capacity for half of them.
    add("a", 200, "h2");
    let steered = || {
        let apps = apps();
        let long = apps.iter().filter(|app| app["path"] == json!(LONG)).count();
        let rules = network.steering("h3").len();
        // A rule and a route each for IPv4 and IPv6.
        (rules == 4 * long && long >= 90).then_some(long)
    };
    let long = until(TIMEOUT, steered, || format!("{} rules", network.steering("h3").len()));
    println!("{long} of 200 applications are steered");
    assert!(apps().iter().all(|app| app["error"].is_null() && app["state"] == "admitted"));
    // The last one is counted as well as steered.
    let last = network.send("h3", IpAddr::from(network.ipv4("h2")), 10_199, 2.0);
    network.until_app("a199", TIMEOUT, |app| app["rate_bps"].as_u64() > Some(1_000_000));
    last.finish();

    // A router has many addresses, each of which is a flow: the node's limit is exceeded.
    add("b", 110, "r5");
    let refused = || {
        let apps = apps();
        let refused = apps.iter().find(|app| !app["error"].is_null())?;
        Some(refused["name"].as_str().unwrap().to_owned())
    };
    let name = until(TIMEOUT, refused, || "nothing was refused".into());
    let app = network.show(&name);
    assert!(app["error"].as_str().unwrap().contains("a node counts at most 1023 flows"), "{app}");
    let text = kaido.ok(&["app", "show", &name]);
    assert!(text.contains("a node counts at most"), "{text}");
    // After others are removed, the rejected one is retried.
    for at in 0..109 {
        let other = format!("b{at}");
        if other != name {
            kaido.ok(&["app", "rm", &other]);
        }
    }
    network.until_app(&name, TIMEOUT, |app| app["error"].is_null());
}
