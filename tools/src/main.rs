//! The `remit` command.

fn main() -> std::process::ExitCode {
    tools::main()
}
