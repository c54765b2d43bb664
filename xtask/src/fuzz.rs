//! Coverage-guided fuzzing: builds `lockgate-fuzz` with libFuzzer and runs each target.
//!
//! Stable Rust is enough: LLVM's own compiler pass counts edges, and a C++ compiler builds libFuzzer.

use crate::cargo;
use crate::suite::{Report, Tally};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The flags of the compiler pass that records which edges an input covers.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

/// The limits for one input: time in seconds, and memory in megabytes.
const LIMITS: [&str; 2] = ["-timeout=20", "-rss_limit_mb=2048"];

/// How long a failing input is minimized.
const MINIMISE: Duration = Duration::from_secs(30);

/// Builds the fuzzer, and returns its program.
pub(crate) fn build() -> Result<PathBuf, String> {
    let host = host()?;
    let arguments = ["build", "--profile", "fuzz", "--package", "lockgate-fuzz", "--features", "guided", "--bin", "guided"];
    // An explicit target keeps these flags away from build scripts and macros.
    let arguments = [arguments.as_slice(), &["--target", &host]].concat();
    let products = cargo::build_with(&arguments, &[("RUSTFLAGS", COVERAGE)])?;
    let program = products.into_iter().find(|product| product.target == "guided").map(|product| product.program);
    program.ok_or_else(|| "cargo built no program `guided`".to_owned())
}

fn host() -> Result<String, String> {
    let output = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).arg("-vV").output();
    let output = output.map_err(|error| format!("cannot start rustc: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "`rustc -vV` names no host".to_owned())
}

/// The names of the targets, which are the directories of the corpus.
pub(crate) fn targets() -> Result<Vec<String>, String> {
    let corpus = corpus();
    let entries = std::fs::read_dir(&corpus).map_err(|error| format!("cannot list {}: {error}", corpus.display()))?;
    let mut names: Vec<String> = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}

fn corpus() -> PathBuf {
    crate::root().join("fuzz/corpus")
}

/// Fuzzes one target for this long. A failing input is minimized and added to the corpus.
pub(crate) fn search(program: &Path, target: &str, time: Duration) -> Report {
    let title = format!("fuzz target {target}, {} s", time.as_secs());
    println!("\n== {title}");
    let started = Instant::now();
    let searched = search_in(program, target, time);
    let (failed, lines) = match searched {
        Ok(line) => (0, vec![line]),
        Err(lines) => (1, lines),
    };
    lines.iter().for_each(|line| println!("{line}"));
    let tally = Tally { passed: 1 - failed, failed, ignored: 0 };
    Report { title, tally, lines, took: started.elapsed() }
}

fn search_in(program: &Path, target: &str, time: Duration) -> Result<String, Vec<String>> {
    let failed = |error: std::io::Error| vec![format!("cannot search: {error}")];
    // New inputs are kept next to the program, so that the next search starts where this one ended.
    let learnt = program.with_file_name("fuzz-learnt").join(target);
    let kept = corpus().join(target);
    let work = tempfile::tempdir().map_err(failed)?;
    let seeds = work.path().join("seeds");
    for directory in [&learnt, &seeds] {
        std::fs::create_dir_all(directory).map_err(failed)?;
    }
    let broken = work.path().join("broken");
    let mut command = prepared(program, target);
    command.env("LOCKGATE_FUZZ_SEEDS", &seeds).args(LIMITS).args(["-print_final_stats=1", "-verbosity=0", "-len_control=20"]);
    command.arg(format!("-max_total_time={}", time.as_secs())).arg(format!("-exact_artifact_path={}", broken.display()));
    command.args([&learnt, &kept, &seeds]);
    let output = command.output().map_err(failed)?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        let number = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("?").trim().to_owned();
        let inputs = std::fs::read_dir(&learnt).map_err(failed)?.count();
        return Ok(format!("ok: {} inputs tried, {inputs} inputs kept", number("stat::number_of_executed_units:")));
    }
    let tail: Vec<String> = text.lines().filter(|line| !line.starts_with("stat::")).map(str::to_owned).collect();
    let mut lines: Vec<String> = tail[tail.len().saturating_sub(25)..].to_vec();
    match std::fs::read(&broken) {
        Err(_) => lines.push("the search failed without leaving an input".to_owned()),
        Ok(bytes) => {
            let small = minimised(program, target, &broken, bytes);
            let path = kept.join(format!("found-{:016x}", fingerprint(&small)));
            std::fs::write(&path, small).map_err(failed)?;
            lines.push(format!("a failing input was saved as {}", path.display()));
            lines.push("`cargo xtask test --only fuzz` fails with it until the bug is fixed; keep the file".to_owned());
        }
    }
    Err(lines)
}

/// The smallest input that fails in the same way.
fn minimised(program: &Path, target: &str, broken: &Path, bytes: Vec<u8>) -> Vec<u8> {
    let small = broken.with_file_name("small");
    let mut command = prepared(program, target);
    command.args(LIMITS).arg("-minimize_crash=1").arg(format!("-max_total_time={}", MINIMISE.as_secs()));
    command.arg(format!("-exact_artifact_path={}", small.display())).arg(broken);
    // It always fails, because that is what it searches for.
    let _ = command.stderr(Stdio::null()).status();
    std::fs::read(&small).ok().filter(|small| small.len() < bytes.len()).unwrap_or(bytes)
}

fn prepared(program: &Path, target: &str) -> Command {
    let mut command = Command::new(program);
    command.env("LOCKGATE_FUZZ_TARGET", target).env("RUST_BACKTRACE", "0").stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// A name for an input: an FNV-1a hash, which needs no dependency.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_a_corpus_directory() {
        let code = std::fs::read_to_string(crate::root().join("fuzz/src/lib.rs")).expect("the list of targets");
        let mut named: Vec<&str> = code.split("Target { name: \"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        named.sort_unstable();
        assert_eq!(named, targets().expect("the directories"));
    }
}
