//! Sandbox process of this crate's tests; `kaido-sandbox` is the product's.

fn main() -> std::process::ExitCode {
    sandbox::process::run_child()
}
