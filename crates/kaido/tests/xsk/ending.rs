//! The end of a client, and of the command.

use nix::sys::signal::Signal;

use super::{Running, assert_empty, kaido, run};

#[test]
fn the_exit_code_of_the_client_is_returned() {
    let kaido = kaido();
    for code in [0, 7, 255] {
        let said = run(&kaido, &[], &["sh", "-c", &format!("echo hello; exit {code}")]);
        assert_eq!((said.code, said.stdout.as_str()), (Some(code), "hello\n"), "{said}");
        assert_empty(&kaido);
    }
}

#[test]
fn a_signal_that_kills_the_client_is_in_the_exit_code() {
    let kaido = kaido();
    for (signal, code) in [("KILL", 137), ("TERM", 143)] {
        let said = run(&kaido, &[], &["sh", "-c", &format!("kill -{signal} $$")]);
        assert_eq!(said.code, Some(code), "{said}");
        assert_empty(&kaido);
    }
}

#[test]
fn a_client_that_does_not_exist_is_a_mistake() {
    let kaido = kaido();
    run(&kaido, &[], &["./none"]).failed(2, &["`./none` cannot be started: No such file"]);
    assert_empty(&kaido);
    run(&kaido, &[], &[]).failed(2, &["required"]);
}

#[test]
fn sigterm_ends_the_client() {
    let kaido = kaido();
    let mut running = Running::start(&kaido, "default", &[]);
    assert!(!running.is_client_gone());
    running.signal(Signal::SIGTERM);
    assert_eq!(running.code(), Some(143));
    assert!(running.is_client_gone());
    assert_empty(&kaido);
}

/// The next client replaces the directory of one that was killed.
#[test]
fn a_stale_directory_is_skipped_and_replaced() {
    let kaido = kaido();
    let mut running = Running::start(&kaido, "a", &[]);
    running.signal(Signal::SIGKILL);
    assert_eq!(running.code(), None);
    assert!(kaido.run_directory().join("xsk/a/control.sock").exists());
    assert_eq!(kaido.json(&["xsk", "ls"]), serde_json::json!([]));
    kaido.run(&["xsk", "stats"]).failed(2, &["no running client"]);
    let said = run(&kaido, &["--name", "a"], &["true"]);
    assert_eq!(said.code, Some(0), "{said}");
    assert_empty(&kaido);
}
