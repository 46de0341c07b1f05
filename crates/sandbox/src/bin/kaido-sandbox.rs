//! Standalone binary of the sandbox process. `kaido` has the same entry point as a hidden command.

fn main() -> std::process::ExitCode {
    sandbox::process::run_child()
}
