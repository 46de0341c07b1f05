//! Process of a tenant's P4 program. `kaido` starts it with two descriptors. It is a program of its
//! own, so that little code is mapped beside that of a tenant.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    sandbox::process::run_child()
}
