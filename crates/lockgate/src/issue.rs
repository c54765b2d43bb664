//! Reading the issue that a run works on.

use crate::code::Code;
use crate::error::Error;
use lockgate_formats::issue;
use lockgate_runner::start::{GivenIssue, read_text};
use std::path::Path;

/// Reads an issue from a Markdown file with frontmatter: `number`, `title`, `labels`, `assignees`.
pub fn read(path: &Path) -> Result<GivenIssue, Error> {
    let text = read_text(path)?;
    let position = path.display().to_string();
    let read = issue::read(&text).map_err(|problem| {
        let error =
            Error::new(Code::InvalidIssue, format!("{position}:{}:{}: {}", problem.line, problem.column, problem.message));
        match problem.help {
            Some(help) => error.help(help),
            None => error,
        }
    })?;
    let Some(title) = read.title else {
        let error = Error::new(Code::InvalidIssue, format!("{position}: the issue has no title"));
        return Err(error.help("start the file with `---`, `title: …`, `---`, or with a heading `# …`"));
    };
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(GivenIssue {
        name: read.number.map_or(stem, |number| number.to_string()),
        number: read.number,
        title,
        body: read.body,
        labels: read.labels,
        assignees: read.assignees,
        source: position,
    })
}
