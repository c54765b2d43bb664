//! README and guides are true: their files are valid, and their commands print what the pages show.
//!
//! Each page is a project of its own. Its fenced blocks are handled in order, by their info strings:
//!
//! | info string | meaning |
//! | --- | --- |
//! | `yaml file=NAME` (or `sh`, `md`, `text`, …) | the file is written; workflows and settings must be valid, `sh` files become executable |
//! | `yaml file=NAME invalid` | the same, and `lockgate validate` must refuse it |
//! | `console` | `$ command` lines with their output below; a person runs them with input and output redirected, so nothing is asked |
//! | `console terminal` | the same at a terminal, where the page also shows what the reader types at prompts |
//! | `console ci` | the same without a terminal |
//! | `… fragment` | not used; the paragraph before must say "fragment", "excerpt" or "part of" |
//! | `sh setup` | not run; `lockgate` and `cargo xtask` must know the commands |
//! | `json`, `rust`, `toml`, `ini`, `text` | data; JSON must parse, and `text` must not hide commands |
//!
//! A block in an HTML comment counts too, so a page can prepare its project out of sight. Programs in `bin/` are on the search path.
//!
//! In the output, `[..]` and `…` stand for any text, and a line `...` for any lines. Ids, process ids, times, durations and runs of spaces
//! need not be equal, but an id on the page always means the same id: a later command may use it. The person is called `ada`, and the project
//! is `/home/ada/project`. Tasks that run in parallel may end in any order. A command that fails shows its exit code with
//! `; echo "exit $?"` or with `$ echo $?` as the next command.

mod page;
mod shell;
mod transcript;

use page::{Block, Kind, Page, Place};
use shell::Shell;
use std::path::{Path, PathBuf};
use transcript::Names;

/// Declares one test per page, and the list of pages.
macro_rules! pages {
    ($($test:ident: $path:literal,)*) => {
        const PAGES: &[&str] = &[$($path),*];
        $(#[test]
        fn $test() {
            check($path);
        })*
    };
}

pages! {
    the_readme_is_true: "README.md",
    the_agents_guide_is_true: "docs/guide/agents.md",
    the_background_guide_is_true: "docs/guide/background.md",
    the_checkpoints_guide_is_true: "docs/guide/checkpoints.md",
    the_embedding_guide_is_true: "docs/guide/embedding.md",
    the_first_workflow_guide_is_true: "docs/guide/first-workflow.md",
    the_notifications_guide_is_true: "docs/guide/notifications.md",
    the_pipelines_guide_is_true: "docs/guide/pipelines.md",
    the_plans_guide_is_true: "docs/guide/plans.md",
    the_questions_guide_is_true: "docs/guide/questions.md",
    the_recovery_guide_is_true: "docs/guide/recovery.md",
    the_terminal_guide_is_true: "docs/guide/terminal.md",
    the_testing_guide_is_true: "docs/guide/testing.md",
    the_team_guide_is_true: "docs/guide/team.md",
    the_snapshots_guide_is_true: "docs/guide/snapshots.md",
    the_worktrees_guide_is_true: "docs/guide/worktrees.md",
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn every_guide_is_checked() {
    for entry in std::fs::read_dir(repository().join("docs/guide")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let path = format!("docs/guide/{name}");
        assert!(!name.ends_with(".md") || PAGES.contains(&path.as_str()), "add {path} to the pages in {}", file!());
    }
}

/// Handles all blocks of a page, and fails with all problems, each with its line.
fn check(path: &str) {
    let text = std::fs::read_to_string(repository().join(path)).unwrap();
    let problems = problems(path, &text);
    assert!(problems.is_empty(), "{} of {path}:\n\n{}\n", plural(problems.len()), problems.join("\n\n"));
}

fn plural(count: usize) -> String {
    format!("{count} {}", if count == 1 { "problem" } else { "problems" })
}

fn problems(path: &str, text: &str) -> Vec<String> {
    let page = match Page::parse(text) {
        Ok(page) => page,
        Err((line, problem)) => return vec![format!("{path}:{line}: {problem}")],
    };
    let shell = Shell::new();
    let mut names = Names::default();
    let mut problems = Vec::new();
    for block in &page.blocks {
        for (line, problem) in block_problems(block, &shell, &mut names) {
            problems.push(format!("{path}:{line}: {problem}"));
        }
    }
    problems
}

/// The problems of a block, with their lines.
fn block_problems(block: &Block, shell: &Shell, names: &mut Names) -> Vec<(usize, String)> {
    let at = |problem: Result<(), String>| problem.err().map(|problem| (block.line, problem)).into_iter().collect();
    match &block.kind {
        Kind::File { name, invalid } => at(write_file(block, name, *invalid, shell)),
        Kind::Console(place) => console_problems(block, *place, shell, names),
        Kind::Setup => at(setup_problem(block, shell)),
        Kind::Fragment | Kind::Data => Vec::new(),
    }
}

fn write_file(block: &Block, name: &str, invalid: bool, shell: &Shell) -> Result<(), String> {
    shell.write(name, &block.body(), block.language == "sh");
    let checked = if name == ".lockgate/config.yaml" {
        "lockgate config show > /dev/null".to_owned()
    } else if block.language == "yaml" && block.lines.iter().any(|line| line.starts_with("phases:")) {
        format!("lockgate validate {name}")
    } else {
        return Ok(());
    };
    let done = shell.run(&checked, 0);
    match (done.code == 0, invalid) {
        (true, true) => Err(format!("{name} is marked `invalid`, but `{checked}` accepts it")),
        (false, false) => Err(format!("`{checked}` refuses the file:\n{}", done.text)),
        _ => Ok(()),
    }
}

fn console_problems(block: &Block, place: Place, shell: &Shell, names: &mut Names) -> Vec<(usize, String)> {
    let commands = block.commands();
    let mut problems = Vec::new();
    let mut code = 0;
    for (at, command) in commands.iter().enumerate() {
        let line = names.substitute(&command.text);
        let done = match place {
            Place::Redirected => shell.run(&line, code),
            Place::Terminal => shell.run_at_terminal(&line, code, &command.output),
            Place::Ci => shell.run_without_terminal(&line, code),
        };
        code = done.code;
        let shows_code = |text: &str| text.contains("$?");
        if code != 0 && !shows_code(&line) && !commands.get(at + 1).is_some_and(|next| shows_code(&next.text)) {
            let problem = "show its exit code with `; echo \"exit $?\"`";
            problems.push((command.line, format!("`{line}` exits with {code}; {problem}\n{}", transcript::quoted(&done.text))));
            continue;
        }
        if let Err((offset, problem)) = names.compare(&command.output, &done.text) {
            problems.push((command.output_line + offset, format!("`{line}` {problem}")));
        }
    }
    problems
}

/// Checks the names of commands that cannot run in a test, because they install software or need a network.
fn setup_problem(block: &Block, shell: &Shell) -> Result<(), String> {
    let xtask = std::fs::read_to_string(repository().join("xtask/src/main.rs")).unwrap();
    for line in &block.lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        for pair in words.windows(2).filter(|pair| !pair[1].starts_with('-')) {
            let known = match pair[0] {
                "lockgate" => shell.run(&format!("lockgate {} --help > /dev/null", pair[1]), 0).code == 0,
                "xtask" => xtask.contains(&format!("\"{}\" =>", pair[1])),
                _ => true,
            };
            if !known {
                return Err(format!("there is no command `{} {}`", pair[0], pair[1]));
            }
        }
    }
    Ok(())
}

mod tests {
    use super::problems;

    #[test]
    fn a_page_is_checked_in_order_and_ids_are_followed() {
        let page = "```yaml file=flow.yaml\nname: flow\nphases:\n  - id: a\n    tasks: [{ id: t, run: echo hi }]\n```\n\
                    ```console\n$ lockgate run flow.yaml\nrun d12cbewf: flow\n...\n$ lockgate logs d12cbewf t\nhi\n```\n";
        assert_eq!(problems("page.md", page), Vec::<String>::new());
    }

    #[test]
    fn wrong_output_is_reported_with_its_line() {
        let found = problems("page.md", "text\n\n```console\n$ echo one; echo two\none\nthree\n```\n");
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("page.md:6: `echo one; echo two` prints something else here"), "{found:?}");
    }

    #[test]
    fn a_page_chooses_whether_there_is_a_terminal() {
        let command = "test -t 1 && echo output; (: < /dev/tty) 2> /dev/null && echo tty || echo none";
        let page = |place: &str, answer: &str| format!("```console{place}\n$ {command}\n{answer}\n```\n");
        for (place, answer) in [("", "tty"), (" terminal", "output\ntty"), (" ci", "none")] {
            assert_eq!(problems("page.md", &page(place, answer)), Vec::<String>::new());
        }
    }

    #[test]
    fn an_exit_code_must_be_shown() {
        assert!(problems("page.md", "```console\n$ false\n```\n")[0].contains("exits with 1"));
        assert!(problems("page.md", "```console\n$ false\n$ echo $?\n1\n```\n").is_empty());
    }

    #[test]
    fn an_answer_on_the_page_is_typed_at_the_terminal() {
        let page = "```console terminal\n$ read -rp 'Name: ' name; echo \"hello $name\"\nName: Ada\nhello Ada\n```\n";
        assert_eq!(problems("page.md", page), Vec::<String>::new());
        let without = problems("page.md", &page.replace("Name: Ada\n", ""));
        assert!(without[0].contains("waits for input at \"Name:\""), "{without:?}");
    }

    #[test]
    fn no_block_goes_unnoticed() {
        for (block, problem) in [
            ("```\nx\n```\n", "has no info string"),
            ("```yaml\na: 1\n```\n", "name its file"),
            ("```sh\nlockgate runs\n```\n", "name its file"),
            ("```text\n$ lockgate runs\n```\n", "use `console`"),
            ("```json\n{\n```\n", "does not parse"),
            ("```yaml fragment\na: 1\n```\n", "must say that it is a fragment"),
            ("```sh setup\ncargo xtask fly\n```\n", "no command `xtask fly`"),
            ("```yaml file=f.yaml\nphases: 1\n```\n", "refuses the file"),
            ("```console\nno command\n```\n", "starts with `$ `"),
            ("```json\n{}\n", "is not closed"),
        ] {
            let found = problems("page.md", block);
            assert!(found.len() == 1 && found[0].contains(problem), "{block}: {found:?}");
        }
    }
}
