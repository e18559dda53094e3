//! The `remit` command.

/// Much is read, folded and thrown away here, in pieces of every size.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    tools::main()
}
