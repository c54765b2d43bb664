//! The program `lockgate`.

/// Commits are made on one thread and let go of on another, where the system's allocator makes threads wait for each other.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    lockgate_cli::main()
}
