//! `lockgate schema`: the format of workflow files, for editors.

use crate::exit::Exit;
use crate::print;

/// Prints the JSON Schema of workflow files, for editors
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {}

pub(super) fn run(_: &Arguments) -> Exit {
    print::json(&lockgate_engine::spec::schema::schema());
    Exit::Done
}
