//! `lockgate schema`: print the format of workflow files, for editors.

use super::help::examples;
use crate::exit::Exit;
use crate::print;

/// Print the JSON Schema of workflow files
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate schema",
    "lockgate schema > workflow.schema.json",
]))]
pub(super) struct Arguments {}

pub(super) fn run(_: &Arguments) -> Exit {
    print::json(&lockgate_engine::spec::schema::schema());
    Exit::Done
}
