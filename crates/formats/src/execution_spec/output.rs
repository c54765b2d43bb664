//! The outputs of a workstream: paths, paths with a remark, or free text.

use super::{Fields, map, text};
use lockgate_engine::spec::code::ProblemCode;
use lockgate_engine::spec::reader::{Checker, Content, Node, shown};
use lockgate_engine::spec::workflow::Output;

/// Keys for the outputs, in order of preference.
pub(super) const OUTPUT_KEYS: [&str; 3] = ["outputs", "artifacts", "deliverables"];

/// What separates a path from a remark after it.
const REMARKS: [&str; 7] = [" (", " — ", " – ", " -- ", " - ", " #", ": "];

/// All outputs, however the list is structured.
pub(super) fn outputs(checker: &mut Checker<'_, '_>, workstream: Fields<'_, '_>) -> Vec<Output> {
    let mut found = Vec::new();
    if let Some(node) = workstream.first(&OUTPUT_KEYS) {
        gather(checker, node, &mut found);
    }
    found
}

fn gather(checker: &mut Checker<'_, '_>, node: &Node<'_>, found: &mut Vec<Output>) {
    match &*node.content {
        Content::Scalar(_) => found.extend(text(node).and_then(|said| output(checker, node, said))),
        Content::List(items) => items.iter().for_each(|item| gather(checker, item, found)),
        Content::Map(entries) => match map(node).and_then(|fields| fields.first(&["path", "file"])) {
            Some(path) => gather(checker, path, found),
            // `- path/of/file.ts: what changes` is a map with one entry. Groups have names that are not paths.
            None => {
                for entry in entries {
                    if path_of(&entry.key).is_some_and(|path| path.contains(['/', '.'])) {
                        found.extend(output(checker, node, &entry.key));
                    } else {
                        gather(checker, &entry.value, found);
                    }
                }
            }
        },
    }
}

fn output(checker: &mut Checker<'_, '_>, node: &Node<'_>, said: &str) -> Option<Output> {
    let path = path_of(said);
    let reason = match path {
        Some(path) if path.starts_with(['/', '~']) => Some("is an absolute path"),
        Some(path) if path.split('/').any(|part| part == "..") => Some("contains `..`"),
        Some(_) | None => None,
    };
    if let Some(reason) = reason {
        let message = format!("the output `{}` {reason}", shown(said));
        checker
            .error(ProblemCode::PathTraversal, &node.span, message)
            .help("outputs must be inside the project root: write a relative path without `..`");
        return None;
    }
    Some(Output { said: said.to_owned(), path: path.map(pattern) })
}

/// The path in an output; `None` if it is free text.
fn path_of(said: &str) -> Option<&str> {
    let end = REMARKS.iter().filter_map(|sign| said.find(sign)).min().unwrap_or(said.len());
    let path = said[..end].trim().trim_matches('`');
    let path = path.strip_prefix("./").unwrap_or(path);
    let is_path = path.contains(['/', '.']) && !path.contains(char::is_whitespace) && !path.contains("://");
    (is_path && path.chars().any(char::is_alphanumeric)).then_some(path)
}

/// The path with `*` for every placeholder: `<TIMESTAMP>`, `{TS1}`, `YYYYMMDDHHMMSS`.
fn pattern(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        let close = match first {
            '<' => rest.find('>'),
            '{' => rest.find('}'),
            _ => None,
        };
        let stands_for_a_time =
            rest.starts_with("YYYYMMDD").then(|| rest.find(|letter| !"YMDHS".contains(letter)).unwrap_or(rest.len()));
        let filled_in = close.map(|close| close + 1).filter(|end| !rest[..*end].contains('/')).or(stands_for_a_time);
        match filled_in {
            Some(end) => {
                pattern.push('*');
                rest = &rest[end..];
            }
            None => {
                pattern.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_free_text() {
        for (said, path) in [
            ("src/main.rs", Some("src/main.rs")),
            ("./src/main.rs", Some("src/main.rs")),
            ("types/database.types.ts (regenerated)", Some("types/database.types.ts")),
            ("app/(dashboard)/[id]/page.tsx — new", Some("app/(dashboard)/[id]/page.tsx")),
            ("README.md", Some("README.md")),
            ("src/a.rs: a new function", Some("src/a.rs")),
            ("Rollback matrix skeleton", None),
            ("Direct-coupling route/test updates for live-view", None),
            ("https://example.org/x", None),
            ("...", None),
        ] {
            assert_eq!(path_of(said), path, "{said}");
        }
    }

    #[test]
    fn placeholders_match_anything() {
        assert_eq!(pattern("db/YYYYMMDDHHMMSS_a.sql"), "db/*_a.sql");
        assert_eq!(pattern("db/<TIMESTAMP>_a.sql"), "db/*_a.sql");
        assert_eq!(pattern("db/{TS1}_a.sql"), "db/*_a.sql");
        assert_eq!(pattern("a/[id]/(b)/{c/d}.ts"), "a/[id]/(b)/{c/d}.ts");
    }
}
