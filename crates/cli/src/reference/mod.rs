//! The pages and pictures of `docs/` that are generated from the code. `cargo xtask docs` writes them through the example target
//! `reference`.
//!
//! | module | page | generated from |
//! | --- | --- | --- |
//! | `commands` | `reference/cli.md` | the definition of the command line |
//! | `format` | `reference/format.md` | the schema of workflow files |
//! | `json_output` | `reference/json.md` | `json.schema.json`, which the tests validate all output against |
//! | `errors` | `errors/README.md` | the lists of codes |
//! | `screens` | pictures of the terminal in the guide | a `scripted_run` |
//! | `table` | | the keys of a schema, as a table |

mod commands;
mod errors;
mod format;
mod json_output;
mod screens;
pub(crate) mod scripted_run;
mod table;

pub use screens::{Background, Screen, screens};

/// The generated pages, each with its path in `docs/`.
///
/// `json_schema` is the content of `docs/reference/json.schema.json`.
pub fn pages(json_schema: &serde_json::Value) -> Vec<(&'static str, String)> {
    vec![
        ("reference/cli.md", commands::page()),
        ("reference/format.md", format::page()),
        ("errors/README.md", errors::page()),
        ("reference/json.md", json_output::page(json_schema)),
    ]
}
