//! Wires between network cards, which tests take in place of veth pairs: in a guest, to test drivers.

use std::os::fd::{AsFd as _, AsRawFd as _};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use netlink::{Handle, Link, Namespace};

use crate::until;

/// Time until the cards of an earlier test's namespaces are back.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The wire that is taken next. A test takes fewer than there are.
static NEXT: Mutex<usize> = Mutex::new(0);

/// Wires as the MAC addresses of their ends: `KAIDO_WIRES`, as `MAC=MAC,…`.
fn wires() -> Vec<(String, String)> {
    let all = std::env::var("KAIDO_WIRES").unwrap_or_default();
    let wire = |text: &str| {
        let (one, other) = text.split_once('=').expect("a wire has two ends");
        (one.to_owned(), other.to_owned())
    };
    all.split(',').filter(|text| !text.is_empty()).map(wire).collect()
}

/// Returns true if tests take cards.
pub fn has_cards() -> bool {
    !wires().is_empty()
}

/// Moves the ends of a wire into two namespaces, with these names and this MTU. Returns false if this
/// machine has no wires. The cards return to this namespace when theirs end.
pub fn join_by_cards(ends: [(&Namespace, &str); 2], mtu: u32) -> bool {
    let wires = wires();
    if wires.is_empty() {
        return false;
    }
    let mut next = NEXT.lock().expect("no test panics here");
    let (one, other) = &wires[*next % wires.len()];
    *next += 1;
    for ((namespace, name), mac) in ends.into_iter().zip([one, other]) {
        move_card(mac, namespace, name, mtu);
    }
    true
}

/// Moves a card with this address into a namespace, when it is in this one.
pub fn move_card(mac: &str, namespace: &Namespace, name: &str, mtu: u32) {
    let card = until(
        TIMEOUT,
        || links().into_iter().find(|link| link.mac.is_some_and(|of| of.to_string() == *mac)),
        || format!("no card has the address {mac}: {:?}", links()),
    );
    let of = format!("/proc/{}/fd/{}", std::process::id(), namespace.as_fd().as_raw_fd());
    let (mtu, own) = (mtu.to_string(), format!("card{}", card.index));
    for words in [
        &["link", "set", "dev", &card.name, "down"][..],
        &["link", "set", "dev", &card.name, "name", &own, "mtu", &mtu],
        &["link", "set", "dev", &own, "netns", &of, "name", name],
    ] {
        let status = Command::new("ip").args(words).status().expect("there is `ip`");
        assert!(status.success(), "ip {}", words.join(" "));
    }
}

fn links() -> Vec<Link> {
    let mut handle = Handle::new().expect("a netlink socket");
    handle.links().expect("the kernel lists its links")
}
