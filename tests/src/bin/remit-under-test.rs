//! The `remit` command once more, as a program of this package: cargo then builds it together with
//! the tests that run it, from the same sources and in the same go.

fn main() -> std::process::ExitCode {
    tools::main()
}
