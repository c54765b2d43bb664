//! `cargo xtask soak`: the long versions of the durability tests.
//!
//! A test with a long version reads its length from the environment: `LOCKGATE_KILLS`, `LOCKGATE_PLANS`, and `LOCKGATE_SOAK_MINUTES` as an upper
//! limit. Modules that read one of these variables are selected. Fuzzing (`fuzz.rs`) then runs for as long as one of them. Finally, all mutants
//! run (`mutants.rs`), however long they take.

use crate::cargo::{self, Product};
use crate::{fuzz, mutants, suite, test};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const KILLS: &str = "10000";
const PLANS: &str = "1000000";
const VARIABLES: &[&str] = &["LOCKGATE_KILLS", "LOCKGATE_PLANS", "LOCKGATE_SOAK_MINUTES"];

/// The time to finish running work after the minutes are over.
const GRACE: Duration = Duration::from_secs(10 * 60);

/// Runs the command; returns false if something failed.
pub(crate) fn command(arguments: &[String]) -> Result<bool, String> {
    let minutes: u64 = match arguments {
        [] => 60,
        [flag, number] if flag == "--minutes" => {
            number.parse().ok().filter(|minutes| *minutes > 0).ok_or_else(|| format!("{number:?} is not a number of minutes"))?
        }
        _ => return Err("usage: cargo xtask soak [--minutes N]".to_owned()),
    };
    let long = long_modules(&cargo::package_directories()?)?;
    if long.is_empty() {
        return Err(format!("no test reads {}", VARIABLES.join(", ")));
    }
    let targets = fuzz::targets()?;
    let share = (minutes / (long.len() as u64 + 1)).max(1);
    let suites = cargo::build(&["test", "--workspace", "--release", "--no-run"])?;
    let guided = fuzz::build()?;
    // Each soak uses new seeds; a failure names its seed.
    let first_seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    println!("== the first seed is {first_seed}");
    let mut reports = Vec::new();
    for module in &long {
        let product = suites
            .iter()
            .find(|product| product.test && module.belongs_to(product))
            .ok_or_else(|| format!("no test program contains {}", module.file.display()))?;
        let mut command = test::program(product);
        command.arg(format!("{}::", module.name)).arg("--nocapture");
        command.env("LOCKGATE_KILLS", KILLS).env("LOCKGATE_PLANS", PLANS).env("LOCKGATE_SOAK_MINUTES", share.to_string());
        command.env("LOCKGATE_FIRST_SEED", first_seed.to_string());
        let title = format!("{}, module {}, {share} minutes", product.title(), module.name);
        reports.push(suite::run(&title, command, Duration::from_secs(share * 60) + GRACE));
    }
    let each = Duration::from_secs((share * 60 / targets.len().max(1) as u64).max(1));
    reports.extend(targets.iter().map(|target| fuzz::search(&guided, target, each)));
    let fine = test::conclude(&reports);
    Ok(mutants::command(&[])? && fine)
}

/// A module with tests that have a long version.
struct LongModule {
    name: String,
    file: PathBuf,
    package_directory: PathBuf,
    integration: bool,
}

impl LongModule {
    fn belongs_to(&self, product: &Product) -> bool {
        product.directory == self.package_directory && (product.kind == "test") == self.integration
    }
}

fn long_modules(directories: &[PathBuf]) -> Result<Vec<LongModule>, String> {
    let mut found = Vec::new();
    for directory in directories.iter().filter(|directory| !directory.ends_with("xtask")) {
        for file in crate::docs::files_under(directory, "rs") {
            let text = std::fs::read_to_string(&file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
            if VARIABLES.iter().any(|variable| text.contains(variable)) {
                let integration = file.starts_with(directory.join("tests"));
                found.push(LongModule { name: module_name(&file), file, package_directory: directory.clone(), integration });
            }
        }
    }
    Ok(found)
}

/// The module of a file: `kill` for `tests/it/kill.rs` and for `tests/it/kill/mod.rs`.
fn module_name(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    match file.parent().and_then(Path::file_name) {
        Some(parent) if stem == "mod" => parent.to_string_lossy().into_owned(),
        _ => stem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_named_after_its_file_or_its_directory() {
        assert_eq!(module_name(Path::new("crates/cli/tests/it/kill.rs")), "kill");
        assert_eq!(module_name(Path::new("crates/cli/tests/it/kill/mod.rs")), "kill");
    }
}
