//! Descriptions of changes to files after they were shown.

use super::{Project, no_secret, owned};
use lockgate_engine::digest::Digest;
use lockgate_runner::files::{ContainsSecret, ObserveLimits, Observed, diff, observe, reobserve};
use std::os::unix::fs::PermissionsExt;

/// The description after `paths` were shown, `change` happened, and they were observed again.
fn said_with(project: &Project, paths: &[&str], contains: ContainsSecret<'_>, change: impl FnOnce(&Project)) -> Vec<String> {
    let before = observe(&project.run_dirs, &owned(paths), &ObserveLimits::default(), contains);
    change(project);
    let after = reobserve(&project.run_dirs, &before.files, &ObserveLimits::default(), contains);
    between(&before, &after)
}

fn said(project: &Project, paths: &[&str], change: impl FnOnce(&Project)) -> Vec<String> {
    said_with(project, paths, &no_secret, change)
}

fn between(before: &Observed, after: &Observed) -> Vec<String> {
    let value = |digest: &Digest| {
        before.values.iter().chain(&after.values).find(|(kept, _)| kept == digest).map(|(_, bytes)| bytes.clone())
    };
    diff(&before.files, &after.files, &value)
}

#[test]
fn unchanged_files_give_no_diff() {
    let project = Project::new();
    project.write("a.txt", "a");
    project.write("src/b.txt", "b");
    project.pipe("pipe");
    assert_eq!(said(&project, &["a.txt", "src", "nothing", "pipe", "../out"], |_| ()), Vec::<String>::new());
}

#[test]
fn a_changed_text_gives_a_unified_diff() {
    let project = Project::new();
    project.write("a.txt", "one\ntwo\nthree\n");
    let said = said(&project, &["a.txt"], |project| project.write("a.txt", "one\n2\nthree\n"));
    let expected =
        "a.txt changed (12 B, was 14 B)\n--- a.txt (as shown)\n+++ a.txt (now)\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three";
    assert_eq!(said, [expected]);
}

#[test]
fn a_long_diff_is_truncated_and_counts_the_omitted_lines() {
    let project = Project::new();
    project.write("a.txt", "old\n".repeat(1000));
    project.write("line.txt", "x".repeat(10_000));
    let said = said(&project, &["a.txt", "line.txt"], |project| {
        project.write("a.txt", "new\n".repeat(1000));
        project.write("line.txt", "y".repeat(10_000));
    });
    assert_eq!(said[0].lines().count(), 202, "heading, 200 lines, and a note");
    assert_eq!(said[0].lines().last(), Some("… 1803 more lines"));
    assert!(said[1].contains("more characters)"));
    assert!(said[1].len() < 2_000, "{}", said[1].len());
}

#[test]
fn many_diffs_together_are_truncated() {
    let project = Project::new();
    let names: Vec<String> = (0..30).map(|number| format!("{number}.txt")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.iter().for_each(|name| project.write(name, "old\n".repeat(100)));
    let said = said(&project, &names, |project| names.iter().for_each(|name| project.write(name, "new\n".repeat(100))));
    assert_eq!(said.len(), 30, "each file is named");
    assert!(said.iter().map(|text| text.lines().count()).sum::<usize>() <= 2_030);
    assert_eq!(said[29], "29.txt changed (400 B, was 400 B) (more is not shown)");
}

#[test]
fn binary_and_large_files_are_described_in_one_line() {
    let project = Project::new();
    project.write("a.bin", b"\0a");
    project.write("b.bin", b"\xff\xfe");
    project.write("large.txt", "x".repeat(2_000_000));
    let said = said(&project, &["a.bin", "b.bin", "large.txt"], |project| {
        project.write("a.bin", b"\0bc");
        project.write("b.bin", "text");
        project.write("large.txt", "y".repeat(2_000_000));
    });
    let expected = [
        "a.bin changed (binary, 3 B, was 2 B)",
        "b.bin changed (binary, 4 B, was 2 B)",
        "large.txt changed (2 MB, was 2 MB; the difference is not shown: its content is not kept, larger than 1 MB)",
    ];
    assert_eq!(said, expected);
}

#[test]
fn diffs_contain_no_secrets() {
    let project = Project::new();
    project.write("a.txt", "nothing to hide\n");
    let contains = |bytes: &[u8]| bytes.windows(7).any(|window| window == b"hunter2");
    let said = said_with(&project, &["a.txt"], &contains, |project| project.write("a.txt", "hunter2\n"));
    assert_eq!(said, ["a.txt changed (8 B, was 16 B; the difference is not shown: its content is not kept, contains a secret)"]);
}

#[test]
fn created_deleted_and_retyped_files_are_described() {
    let project = Project::new();
    project.write("gone.txt", "gone");
    project.write("out/gone.txt", "gone too");
    project.write("kind", "file");
    project.write("src/inner", "");
    project.write("pipe", "file");
    let paths = ["new.txt", "later.txt", "gone.txt", "kind", "src", "pipe"];
    let said = said(&project, &paths, |project| {
        project.write("new.txt", "new");
        project.write("out/later.txt", "later");
        std::fs::remove_file(project.path("out/gone.txt")).unwrap();
        std::fs::remove_file(project.path("kind")).unwrap();
        project.write("kind/inner", "");
        std::fs::remove_dir_all(project.path("src")).unwrap();
        std::fs::remove_file(project.path("pipe")).unwrap();
        project.pipe("pipe");
    });
    let expected = [
        "new.txt appeared: a file of 3 B",
        "out/gone.txt vanished: it was a file of 8 B",
        "kind changed: it was a file of 4 B, and is now a directory with 1 file",
        "src vanished: it was a directory with 1 file",
        "pipe changed: it was a file of 4 B, and is now unreadable (it is a named pipe, not a file)",
        "out/later.txt appeared: a file of 5 B",
    ];
    assert_eq!(said, expected);
}

#[test]
fn a_changed_directory_names_the_changed_files() {
    let project = Project::new();
    for (path, text) in [("src/same.txt", "same"), ("src/size.txt", "1"), ("src/text.txt", "1"), ("src/old.txt", "1")] {
        project.write(path, text);
    }
    project.link("same.txt", "src/link");
    let said = said(&project, &["src"], |project| {
        project.write("src/size.txt", "12");
        project.write("src/text.txt", "2");
        std::fs::remove_file(project.path("src/old.txt")).unwrap();
        project.write("src/deep/new.txt", "new");
        std::fs::remove_file(project.path("src/link")).unwrap();
        project.link("size.txt", "src/link");
    });
    let expected = "src/ changed: 6 things in it\n  added   deep (a directory)\n  added   deep/new.txt (3 B)\n  \
                    changed link (a link to size.txt, was a link to same.txt)\n  removed old.txt (1 B)\n  \
                    changed size.txt (2 B, was 1 B)\n  changed text.txt (1 B, other content)";
    assert_eq!(said, [expected]);
}

#[test]
fn a_directory_without_a_stored_listing_is_described_in_one_line() {
    let project = Project::new();
    project.write("src/hunter2", "1");
    let contains = |bytes: &[u8]| bytes.windows(7).any(|window| window == b"hunter2");
    let said = said_with(&project, &["src"], &contains, |project| project.write("src/hunter2", "2"));
    assert_eq!(said, ["src/ changed (it is not known which files: its content is not kept, contains a secret)"]);
}

#[test]
fn a_changed_mode_is_shown_with_old_and_new_value() {
    let project = Project::new();
    project.write("tool.sh", "x");
    project.write("src/tool.sh", "x");
    let set = |path: &str, mode| std::fs::set_permissions(project.path(path), std::fs::Permissions::from_mode(mode)).unwrap();
    set("tool.sh", 0o644);
    set("src/tool.sh", 0o644);
    let said = said(&project, &["tool.sh", "src"], |_| {
        set("tool.sh", 0o755);
        set("src/tool.sh", 0o4755);
    });
    let in_folder = "src/ changed: 1 thing in it\n  changed tool.sh (mode changed from 0644 to 4755)";
    assert_eq!(said, ["tool.sh: mode changed from 0644 to 0755", in_folder]);
}

#[test]
fn a_file_replaced_by_a_symlink_to_equal_content_is_a_change() {
    let project = Project::new();
    project.write("a.txt", "same");
    project.write("b.txt", "same");
    let reported = said(&project, &["a.txt"], |project| {
        std::fs::remove_file(project.path("a.txt")).unwrap();
        project.link("b.txt", "a.txt");
    });
    assert_eq!(reported, ["a.txt is now a symbolic link to b.txt; it was not one before"]);
    project.write("c.txt", "same");
    let reported = said(&project, &["a.txt"], |project| {
        std::fs::remove_file(project.path("a.txt")).unwrap();
        project.link("./c.txt", "a.txt");
    });
    assert_eq!(reported, ["a.txt is now a symbolic link to ./c.txt; it led to b.txt"]);
}

#[test]
fn a_parent_directory_replaced_by_a_symlink_is_a_change() {
    let project = Project::new();
    project.write("new/a.txt", "same");
    project.write("old/a.txt", "same");
    project.link("old", "step");
    project.link("step", "current");
    let reported = said(&project, &["current/a.txt"], |project| {
        std::fs::remove_file(project.path("step")).unwrap();
        project.link("new", "step");
    });
    assert_eq!(reported, ["step is now a symbolic link to new; it led to old"]);
}
