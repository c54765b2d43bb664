//! `errors/README.md`: all codes with their titles.

use lockgate::code::Code;
use lockgate::error_pages;
use lockgate_engine::spec::code::ProblemCode;

const BEGINNING: &str = "\
# Errors

<!-- Made by `cargo xtask docs` from the lists of codes and the pages; what is changed here by hand is lost. -->

Every error, and every problem of a workflow file, has a code: `error[unknown-key]: …`. A code is a few words, stands for one thing, and stays: messages may be
worded better in a later release, codes are not changed or given another meaning. With `--json` it stands in `error.code`, and in `problems[].code` of `validate`.

`lockgate explain CODE` prints the page of a code; `lockgate explain` lists all.

";

/// The page.
pub(super) fn page() -> String {
    let mut text = BEGINNING.to_owned();
    text += "## Problems of workflow files\n\n| code | meaning |\n| --- | --- |\n";
    for code in ProblemCode::ALL {
        text.push_str(&format!("| {} |\n", row(code.text())));
    }
    text += "\n## Errors of commands\n\n| code | meaning | exit code |\n| --- | --- | --- |\n";
    for code in Code::ALL {
        text.push_str(&format!("| {} | {} |\n", row(code.text()), crate::exit::Exit::of_error(*code).code()));
    }
    text
}

fn row(code: &str) -> String {
    let title = error_pages::all().find(|page| page.code == code).map(error_pages::Page::title).unwrap_or_default();
    format!("[`{code}`]({code}.md) | {title}")
}
