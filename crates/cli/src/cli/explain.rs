//! `lockgate explain`: print the page of an error code.

use super::help::examples;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print::{self, STRONG, styled};
use lockgate::error_pages::{self, Page, find};
use serde::Serialize;

/// Explain an error code
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate explain hold-not-found",
    "lockgate explain",
]))]
pub(super) struct Arguments {
    /// Code, as in the brackets of an error [default: list all codes]
    code: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line {
    code: &'static str,
    title: &'static str,
}

#[derive(Serialize)]
struct Explained {
    #[serde(flatten)]
    line: Line,
    /// The page, as Markdown.
    text: &'static str,
}

impl Line {
    fn of(page: Page) -> Self {
        Self { code: page.code, title: page.title() }
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, CommandError> {
    let Some(given) = &arguments.code else {
        list(arguments.json);
        return Ok(Exit::Done);
    };
    let page = find(given)?;
    if arguments.json {
        print::json(&Explained { line: Line::of(page), text: page.text });
    } else {
        print::data(page.text);
    }
    Ok(Exit::Done)
}

fn list(json: bool) {
    if json {
        let lines: Vec<Line> = error_pages::all().map(Line::of).collect();
        print::json(&lines);
        return;
    }
    let width = error_pages::all().map(|page| page.code.len()).max().unwrap_or(0);
    let line = |page: Page| format!("{}  {}\n", styled(STRONG, format_args!("{:<width$}", page.code)), page.title());
    print::data(&error_pages::all().map(line).collect::<String>());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_found_in_any_spelling() {
        for given in ["unknown-key", "Unknown-Key", "UNKNOWN_KEY", "error[unknown-key]:", "[unknown-key]", " unknown key "] {
            assert_eq!(find(given).unwrap().code, "unknown-key", "{given:?}");
        }
    }

    #[test]
    fn a_misspelt_code_suggests_the_nearest_one() {
        let said = |given: &str| format!("{:?}", find(given).err().unwrap());
        assert!(said("unkown-key").contains("lockgate explain unknown-key"), "{}", said("unkown-key"));
        assert!(said("zzzzzzzz").contains("lists all codes"), "{}", said("zzzzzzzz"));
    }
}
