//! A tenant's process by itself: `kaido` has the same as a hidden command.

fn main() -> std::process::ExitCode {
    sandbox::process::run_child()
}
