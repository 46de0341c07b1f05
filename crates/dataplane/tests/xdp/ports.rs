//! Programs on ports across changes and daemons.

use std::path::Path;

use dataplane::Dataplane;
use dataplane::forwarding::{Forwarding, Links, Tenants, resolve};
use dataplane::xdp::Xdp;
use model::dataplane::File;
use netlink::Handle;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use crate::bed::*;

/// Runs `test` with a directory for pins, in a mount namespace of its own.
fn with_pins(test: impl FnOnce(&Path) + Send + 'static) {
    in_node(move || {
        unshare(CloneFlags::CLONE_NEWNS).unwrap();
        let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        mount(None::<&str>, "/", None::<&str>, private, None::<&str>).unwrap();
        let directory = std::env::temp_dir();
        let (tmpfs, none) = (Some("tmpfs"), None::<&str>);
        mount(tmpfs, &directory, tmpfs, MsFlags::empty(), none).unwrap();
        test(&directory.join("pins"));
    });
}

fn state(text: &str) -> (Forwarding, File) {
    let file = dataplane_file::parse("file", text).unwrap_or_else(|problems| panic!("{problems}"));
    let links = Links::new(Handle::new().unwrap().links().unwrap(), true);
    (resolve(&file, &links, &mut Tenants::default()).unwrap(), file)
}

fn change(plane: &mut Xdp, text: &str) -> Result<(), dataplane::Error> {
    let (state, file) = state(text);
    plane.change_to(state, &file)
}

#[test]
fn root_tables_grow_while_a_port_is_gone() {
    with_pins(|pins| {
        let mut plane = Xdp::load(pins).unwrap();
        change(&mut plane, "ports: {l: {}, r: {}}\n").unwrap();
        ip("link del dev l");
        change(&mut plane, "limits: {sids: 8192}\nports: {r: {}}\n").unwrap();
        let attached = plane.attached().unwrap();
        assert_eq!(attached, [(index("r"), "r".to_owned())].into());
        plane.detach().unwrap();
        assert_eq!(plane.attached().unwrap(), [].into());
    });
}

/// Earlier versions named pins after ports alone.
#[test]
fn root_pins_of_earlier_versions_are_taken_over() {
    with_pins(|pins| {
        change(&mut Xdp::load(pins).unwrap(), "ports: {l: {}, r: {}}\n").unwrap();
        let pin = |name: &str| pins.join(format!("{}:{name}", index(name)));
        std::fs::rename(pin("l"), pins.join("l")).unwrap();
        let mut plane = Xdp::load(pins).unwrap();
        let attached = ["l", "r"].map(|name| (index(name), name.to_owned())).into();
        assert_eq!(plane.attached().unwrap(), attached);
        change(&mut plane, "ports: {l: {}, r: {}}\n").unwrap();
        assert_eq!(plane.attached().unwrap(), attached);
        assert!(pin("l").exists() && !pins.join("l").exists());
        plane.detach().unwrap();
        plane.shut_down().unwrap();
        assert!(!pins.exists());
    });
}
