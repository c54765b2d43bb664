//! The table of completed tasks that agents hand to each other.

use super::escape::{in_line, is_nothing, not_a_word, plain};
use lockgate_engine::run::handover::CompletedTask;

const HEADER: &str = "| Task | Name | Commit | Files |\n|------|------|--------|-------|\n";

/// Renders the table, one line per task, each with its line break.
pub(super) fn render(tasks: &[CompletedTask]) -> String {
    let mut table = HEADER.to_owned();
    for CompletedTask { number, name, commit, files } in tasks {
        let number = in_line(number, &[]);
        let number = if without_word(&number) == number { number } else { not_a_word(&number) };
        let files = match files.as_slice() {
            [] => "-".to_owned(),
            files => files.iter().map(|file| render_file(file)).collect::<Vec<_>>().join(", "),
        };
        let commit = commit.as_deref().map_or_else(|| "-".to_owned(), render_commit);
        let cells = [number, in_line(name, &[]), commit, files].map(|cell| cell.replace('|', "\\|"));
        table.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    table
}

fn render_commit(commit: &str) -> String {
    let spaces: Vec<char> = commit.chars().filter(|character| character.is_whitespace()).collect();
    let escaped = in_line(commit, &spaces);
    if is_nothing(&escaped) || escaped.starts_with('`') { not_a_word(&escaped) } else { escaped }
}

fn render_file(file: &str) -> String {
    let escaped = in_line(file, &[',', '`']);
    if is_nothing(&escaped) { not_a_word(&escaped) } else { escaped }
}

/// Reads the table from lines that may contain other text too.
pub(super) fn parse(lines: &[&str]) -> Vec<CompletedTask> {
    let mut columns = [0, 1, 2, 3].map(Some);
    let mut tasks = Vec::new();
    let mut rows = lines.iter().map(|line| line.trim()).filter(|line| line.starts_with('|')).map(cells).peekable();
    let mut has_header = false;
    if let Some(found) = rows.peek().and_then(|row| header(row)) {
        columns = found;
        has_header = true;
        rows.next();
        rows.next_if(|row| is_rule(row));
    }
    for row in rows {
        // A header has exactly one rule, right below it. Anything later that looks like a rule is a task.
        if !has_header && is_rule(&row) {
            continue;
        }
        let cell = |column: usize| columns[column].and_then(|index| row.get(index)).map_or("", |cell| cell.as_str());
        tasks.push(CompletedTask {
            number: plain(without_word(cell(0))),
            name: plain(cell(1)),
            commit: parse_commit(cell(2)),
            files: parse_files(cell(3)),
        });
    }
    tasks
}

/// Splits a row into cells, in which only `|` is unescaped.
pub(super) fn cells(row: &str) -> Vec<String> {
    let row = row.strip_prefix('|').unwrap_or(row);
    let mut cells = vec![String::new()];
    let mut characters = row.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' if characters.next_if_eq(&'|').is_some() => push(&mut cells, '|'),
            '|' => cells.push(String::new()),
            _ => push(&mut cells, character),
        }
    }
    if cells.len() > 1 && cells.last().is_some_and(|cell| cell.trim().is_empty()) {
        cells.pop();
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

fn push(cells: &mut [String], character: char) {
    if let Some(cell) = cells.last_mut() {
        cell.push(character);
    }
}

/// Whether a row is the rule (`---`) below a header.
pub(super) fn is_rule(row: &[String]) -> bool {
    row.iter().all(|cell| !cell.is_empty() && cell.chars().all(|character| matches!(character, '-' | ':')))
}

/// Maps each field to its column if the row is a header.
fn header(row: &[String]) -> Option<[Option<usize>; 4]> {
    let words: Vec<String> = row.iter().map(|cell| cell.replace('*', "").trim().to_lowercase()).collect();
    let find = |names: &[&str]| words.iter().position(|word| names.contains(&word.as_str()));
    let columns = [
        find(&["task", "#", "no", "no.", "number", "id"]),
        find(&["name", "task name", "title", "description"]),
        find(&["commit", "commits", "hash", "commit hash", "sha"]),
        find(&["files", "key files", "file", "files modified", "files changed"]),
    ];
    columns.iter().any(Option::is_some).then_some(columns)
}

fn without_word(number: &str) -> &str {
    let word = number.get(..4).filter(|word| word.eq_ignore_ascii_case("task"));
    let rest = word.and_then(|_| number[4..].strip_prefix(' ')).map(str::trim_start);
    rest.filter(|rest| !rest.is_empty()).unwrap_or(number)
}

fn parse_commit(cell: &str) -> Option<String> {
    let bare = cell.strip_prefix('`').and_then(|rest| rest.split_once('`')).map_or(cell, |(bare, _)| bare.trim());
    if is_nothing(bare) {
        return None;
    }
    // People add a remark after the hash.
    let first = bare.split_whitespace().next().unwrap_or(bare).trim_end_matches([',', ';']);
    let is_hash = (7..=64).contains(&first.len()) && first.chars().all(|digit| digit.is_ascii_hexdigit());
    Some(plain(if is_hash && bare.contains(char::is_whitespace) { first } else { bare }))
}

fn parse_files(cell: &str) -> Vec<String> {
    if is_nothing(cell) {
        return Vec::new();
    }
    if cell.contains('`') {
        // After splitting at backticks, every second piece is quoted.
        let pieces: Vec<&str> = cell.split('`').collect();
        let inside = pieces.iter().skip(1).step_by(2).map(|file| file.trim());
        return inside.filter(|file| !file.is_empty()).map(plain).collect();
    }
    cell.split(',').map(str::trim).filter(|file| !is_nothing(file)).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(number: &str, name: &str, commit: Option<&str>, files: &[&str]) -> CompletedTask {
        let files = files.iter().map(|file| (*file).to_owned()).collect();
        CompletedTask { number: number.into(), name: name.into(), commit: commit.map(str::to_owned), files }
    }

    #[test]
    fn the_table_matches_the_reference_format() {
        let tasks = [task("1", "Build", Some("abc1234"), &["a.rs", "b c.rs"]), task("2", "x | y", None, &[])];
        let table = render(&tasks);
        assert_eq!(
            table,
            "| Task | Name | Commit | Files |\n|------|------|--------|-------|\n| 1 | Build | abc1234 | a.rs, b c.rs |\n| 2 | x \\| y | - | - |\n"
        );
        assert_eq!(parse(&table.lines().collect::<Vec<_>>()), tasks);
    }

    #[test]
    fn typical_agent_tables_are_parsed() {
        let read = |table: &str| parse(&table.lines().collect::<Vec<_>>());
        assert_eq!(read("| Name | Task |\n|:--|--:|\n| Build | Task 1 |"), [task("1", "Build", None, &[])]);
        assert_eq!(read("| 1 | Build | `abc1234` | `a.rs` `b.rs` |"), [task("1", "Build", Some("abc1234"), &["a.rs", "b.rs"])]);
        assert_eq!(read("|---|---|\n| 1 | Build"), [task("1", "Build", None, &[])]);
        assert_eq!(read("| Task | Commit |\n| 1 | abc1234 (amended) |"), [task("1", "", Some("abc1234"), &[])]);
        assert_eq!(read("| # | Name | Commit | Files |\n| 3 | x | None | n/a |"), [task("3", "x", None, &[])]);
        assert_eq!(read("no table"), []);
    }
}
