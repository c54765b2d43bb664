//! Describes the machine and the date of a measurement.

use std::path::Path;
use std::process::Command;

/// One line: date, processor, cores, kernel, filesystem.
pub(crate) fn describe(directory: &Path) -> String {
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processor.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split(": ").nth(1));
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let directory = directory.display().to_string();
    format!(
        "Measured on {}: {}, {cores} cores, Linux {}, {}.",
        last_line("date", &["-u", "+%Y-%m-%d"]),
        model.unwrap_or("unknown processor").trim(),
        kernel.trim(),
        last_line("df", &["--output=fstype", &directory]),
    )
}

/// The last line of a program's output.
fn last_line(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().last().unwrap_or("unknown").trim().to_owned()
}
