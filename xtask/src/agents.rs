//! `cargo xtask agents`: tests the presets with the real agent programs against a stub model server on loopback.

mod install;

use crate::cargo::{self, Product};
use crate::suite::{self, Report, Tally};
use crate::{packages, test};
use std::process::Command;
use std::time::Duration;

/// The test target that drives the programs. `cargo test` skips it, because it needs a download.
pub(crate) const TARGET: &str = "agents";

/// The environment variable with the directory of the installed programs.
const DIRECTORY: &str = "LOCKGATE_AGENT_PROGRAMS";

/// The time limit for all programs of one run, on two slow cores.
const BUDGET: Duration = Duration::from_secs(6 * 60);
const BUDGET_OF_ALL: Duration = Duration::from_secs(20 * 60);

pub(crate) struct Program {
    /// The module of its tests, and the directory that it is installed in.
    pub(crate) name: &'static str,
    pub(crate) package: &'static str,
    pub(crate) version: &'static str,
    /// A script of the package that must run once after installation, relative to the package.
    pub(crate) setup: Option<&'static str>,
    /// Whether it runs only with `--all`, because it is proprietary or not tested with every change.
    pub(crate) extra: bool,
}

const PROGRAMS: &[Program] = &[
    Program { name: "codex", package: "@openai/codex", version: "0.166.0", setup: None, extra: false },
    Program { name: "opencode", package: "opencode-ai", version: "1.18.33", setup: Some("postinstall.mjs"), extra: false },
    Program { name: "gemini", package: "@google/gemini-cli", version: "0.61.0", setup: None, extra: false },
    Program { name: "qwen", package: "@qwen-code/qwen-code", version: "0.24.4", setup: None, extra: true },
    Program { name: "claude", package: "@anthropic-ai/claude-code", version: "2.1.325", setup: Some("install.cjs"), extra: true },
    Program {
        name: "claude_older",
        package: "@anthropic-ai/claude-code",
        version: "2.1.197",
        setup: Some("install.cjs"),
        extra: true,
    },
    Program { name: "copilot", package: "@github/copilot", version: "1.0.102", setup: None, extra: true },
];

/// Runs the command; returns false if something failed.
pub(crate) fn command(arguments: &[String]) -> Result<bool, String> {
    let (mut all, mut named) = (false, Vec::new());
    for argument in arguments {
        match PROGRAMS.iter().find(|program| program.name == argument) {
            Some(program) => named.push(program),
            None if argument == "--all" => all = true,
            None => return Err(usage()),
        }
    }
    let programs: Vec<&Program> = match named.is_empty() {
        true => PROGRAMS.iter().filter(|program| all || !program.extra).collect(),
        false => named,
    };
    let names: Vec<String> = programs.iter().map(|program| format!("{} {}", program.name, program.version)).collect();
    let title = format!("real agents: {}", names.join(", "));
    // A program that cannot be installed counts as a failure, because nothing was tested.
    let ready = packages::ensure_for_agents().and_then(|()| {
        let directory = install::ensure(&programs)?;
        println!("== building");
        Ok((directory, build()?))
    });
    let (directory, product) = match ready {
        Ok(ready) => ready,
        Err(message) => {
            let tally = Tally { failed: 1, ..Tally::default() };
            return Ok(test::conclude(&[Report { title, tally, lines: vec![message], took: Duration::ZERO }]));
        }
    };
    let mut command = isolated(&product);
    command.env(DIRECTORY, &directory).args(["--test-threads", "2"]);
    command.args(programs.iter().map(|program| format!("{}::", program.name)));
    let budget = if programs.iter().any(|program| program.extra) { BUDGET_OF_ALL } else { BUDGET };
    let report = suite::run(&title, command, budget);
    Ok(test::conclude(&[nothing_ran(report)]))
}

fn usage() -> String {
    let names: Vec<&str> = PROGRAMS.iter().map(|program| program.name).collect();
    format!("usage: cargo xtask agents [--all | PROGRAM…]; the programs are {}", names.join(", "))
}

/// Builds the tests with the same features as the other tests, so that nothing is compiled twice.
pub(crate) fn build() -> Result<Product, String> {
    let products = cargo::build(&["test", "--no-run", "--workspace", "--test", TARGET])?;
    products.into_iter().find(|product| product.test && product.target == TARGET).ok_or(format!("cargo built no test `{TARGET}`"))
}

/// Runs the tests in a network namespace with loopback only, if the system permits it.
fn isolated(product: &Product) -> Command {
    let plain = test::program(product);
    let up = "ip link set lo up && exec \"$@\"";
    let permitted = Command::new("unshare").args(["-n", "sh", "-c", up, "sh", "true"]).output();
    if !permitted.is_ok_and(|output| output.status.success()) {
        println!(
            "`unshare -n` is not permitted here, so the programs can reach the network; they still call only the stub model"
        );
        return plain;
    }
    let mut command = Command::new("unshare");
    command.args(["-n", "sh", "-c", up, "sh"]).arg(plain.get_program());
    command.current_dir(&product.directory).env("CARGO_MANIFEST_DIR", &product.directory);
    command
}

/// Reports a failure if the filter matched no test.
fn nothing_ran(mut report: Report) -> Report {
    if report.tally.passed + report.tally.failed == 0 {
        report.tally.failed = 1;
        report.lines.push("no test ran".to_owned());
    }
    report
}
