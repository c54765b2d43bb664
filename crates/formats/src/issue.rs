//! A local issue: a Markdown file whose frontmatter has a title, labels and assignees.

use crate::frontmatter;
use lockgate_engine::spec::document::{self, Value};
use lockgate_engine::spec::problem::Problem;

const EXAMPLE: &str = "title: Refresh tokens";
const KEYS: [&str; 5] = ["number", "title", "labels", "assignees", "state"];

/// The content of a local issue file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IssueFile {
    pub number: Option<u64>,
    /// The title in the frontmatter, or the first heading.
    pub title: Option<String>,
    pub labels: Vec<String>,
    pub assignees: Vec<String>,
    pub body: String,
}

/// Reads an issue. A file without frontmatter has only a body.
pub fn read(source: &str) -> Result<IssueFile, Problem> {
    let Some(parts) = frontmatter::split(source) else {
        return Ok(IssueFile { title: heading(source), body: source.trim().to_owned(), ..IssueFile::default() });
    };
    let root = document::read(parts.yaml)?;
    let mut issue = IssueFile { body: parts.body.trim().to_owned(), ..IssueFile::default() };
    if !root.is_nothing() {
        for entry in root.fields("the issue", EXAMPLE, &KEYS)? {
            let value = &entry.value;
            match entry.key.as_str() {
                "number" => issue.number = Some(value.count("`number`", 1..=u32::MAX)?.into()),
                "title" => issue.title = Some(text(value, "`title`")?),
                "labels" => issue.labels = texts(value, "labels")?,
                "assignees" => issue.assignees = texts(value, "assignees")?,
                _ => drop(text(value, "`state`")?),
            }
        }
    }
    issue.title = issue.title.or_else(|| heading(&issue.body));
    Ok(issue)
}

fn heading(body: &str) -> Option<String> {
    let first = body.lines().find(|line| !line.trim().is_empty())?;
    first.strip_prefix("# ").map(|title| title.trim().to_owned())
}

fn text(value: &Value<'_>, what: &str) -> Result<String, Problem> {
    let text = value.text().map(str::to_owned);
    text.ok_or_else(|| value.problem(format!("{what} must be text"), Some(format!("write `{EXAMPLE}`"))))
}

fn texts(value: &Value<'_>, key: &str) -> Result<Vec<String>, Problem> {
    let problem = || value.problem(format!("`{key}` must be a list of texts"), Some(format!("write `{key}: [a, b]`")));
    let items = value.items().ok_or_else(problem)?;
    items.iter().map(|item| text(item, &format!("an entry of `{key}`"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frontmatter_and_body_are_read() {
        let source = "---\nnumber: 42\ntitle: Refresh tokens\nlabels: [state:enrich, type:feature]\nassignees: [ada]\n---\n\nRotate them.\n";
        let issue = read(source).unwrap();
        assert_eq!((issue.number, issue.title.as_deref()), (Some(42), Some("Refresh tokens")));
        assert_eq!((issue.labels.len(), issue.assignees.as_slice()), (2, ["ada".to_owned()].as_slice()));
        assert_eq!(issue.body, "Rotate them.");
    }

    #[test]
    fn the_first_heading_is_the_title_of_a_plain_file() {
        let issue = read("# Refresh tokens\n\nRotate them.\n").unwrap();
        assert_eq!((issue.title.as_deref(), issue.number), (Some("Refresh tokens"), None));
    }

    #[test]
    fn a_wrong_key_and_a_wrong_type_have_their_positions() {
        let problem = read("---\ntitle: a\nlables: [x]\n---\n").unwrap_err();
        assert_eq!((problem.line, problem.column), (3, 1));
        let problem = read("---\ntitle: a\nlabels: x\n---\n").unwrap_err();
        assert!(problem.line == 3 && problem.message.contains("`labels` must be a list"), "{problem:?}");
    }
}
