//! The program `lockgate`.

/// Commits are allocated on one thread and freed on another, where the system allocator has contention.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    lockgate_cli::main()
}
