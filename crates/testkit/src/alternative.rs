//! Alternative names of an interface (`ip link property`), which make its messages long.

use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::Range;
use std::process::{Command, Stdio};

/// Gives an interface of the calling thread's namespace alternative names of the maximum length, with
/// these numbers. The kernel permits 496 of them, which make messages of 66 KiB.
pub fn alternative_names(interface: &str, numbers: Range<u32>) {
    let mut batch = String::new();
    for number in numbers {
        writeln!(batch, "link property add dev {interface} altname {number:0>127}")
            .expect("memory");
    }
    let mut ip = Command::new("ip");
    let mut ip = ip.args(["-batch", "-"]).stdin(Stdio::piped()).spawn().expect("ip is installed");
    ip.stdin.take().expect("a pipe").write_all(batch.as_bytes()).expect("it reads");
    assert!(ip.wait().expect("it is a child").success());
}
