//! The pages and pictures of `docs/` that follow from the code. `cargo xtask docs` writes them, by way of the example target `reference`.
//!
//! | module | page | generated from |
//! | --- | --- | --- |
//! | `commands` | `reference/cli.md` | the definition of the command line |
//! | `format` | `reference/format.md` | the schema of workflow files |
//! | `json_output` | `reference/json.md` | `json.schema.json`, which the tests check all output against, and `json.examples.json` |
//! | `errors` | `errors/README.md` | the lists of codes |
//! | `screens` | pictures of the terminal in the guide | a run that `scripted_run` plays by hand |
//! | `table` | | the keys of a schema, as a table |

mod commands;
mod errors;
mod format;
mod json_output;
mod screens;
pub(crate) mod scripted_run;
mod table;

pub use screens::{Background, Screen, screens};

/// The definition of the command line, for manual pages.
pub fn definition() -> clap::Command {
    crate::cli::definition()
}

/// The generated pages, each with its path in `docs/`.
///
/// The arguments are the contents of `docs/reference/json.schema.json` and `docs/reference/json.examples.json`.
pub fn pages(json_schema: &serde_json::Value, json_examples: &serde_json::Value) -> Vec<(&'static str, String)> {
    vec![
        ("reference/cli.md", commands::page()),
        ("reference/format.md", format::page()),
        ("errors/README.md", errors::page()),
        ("reference/json.md", json_output::page(json_schema, json_examples)),
    ]
}
