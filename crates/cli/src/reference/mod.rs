//! The pages of the reference that are made from the code, and whether those in `docs/` are current.
//!
//! They exist in tests only: `cargo xtask docs` runs these with `SNAPSHOTS=overwrite`, which writes the pages.
//!
//! | module | page | made from |
//! | --- | --- | --- |
//! | [`commands`] | `reference/cli.md` | the definition of the command line |
//! | [`format`] | `reference/format.md` | the schema of workflow files |
//! | [`shapes`] | `reference/json.md` | `json.schema.json`, which the tests hold all output against |
//! | [`errors`] | `errors/README.md` | the lists of codes |
//! | [`table`] | | the keys of a schema, as a table |

mod commands;
mod errors;
mod format;
mod shapes;
mod table;

use std::path::{Path, PathBuf};

fn place(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

/// Writes a page where that is asked for; else fails when the page is not what the code says.
fn must_be_current(name: &str, text: &str) {
    if std::env::var_os("SNAPSHOTS").is_some_and(|what| what == "overwrite") {
        return std::fs::write(place(name), text).unwrap();
    }
    let written = std::fs::read_to_string(place(name)).unwrap_or_default();
    if let Some((line, (found, made))) = (1..).zip(written.lines().zip(text.lines())).find(|(_, (found, made))| found != made) {
        panic!("docs/{name}:{line} is stale; `cargo xtask docs` writes it anew\n  found {found}\n  made  {made}");
    }
    assert_eq!(written.len(), text.len(), "docs/{name} is stale; `cargo xtask docs` writes it anew");
}

#[test]
fn the_reference_of_the_commands_is_current() {
    must_be_current("reference/cli.md", &commands::page());
}

#[test]
fn the_reference_of_the_format_is_current() {
    must_be_current("reference/format.md", &format::page());
}

#[test]
fn the_list_of_errors_is_current() {
    must_be_current("errors/README.md", &errors::page());
}

#[test]
fn the_reference_of_the_json_shapes_is_current() {
    must_be_current("reference/json.md", &shapes::page());
}
