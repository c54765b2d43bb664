//! Which files `show_files` refers to, and what is kept of them.

use super::{Project, a_file, owned, why};
use lockgate_engine::digest::Digest;
use lockgate_engine::hold::Seen;
use lockgate_runner::files::{ObserveLimits, observe, preview, reobserve};
use std::path::PathBuf;

#[test]
fn a_file_under_the_root_is_shown_by_its_path_from_the_root() {
    let project = Project::new();
    project.write("src/main.rs", "fn main() {}");
    let observed = project.observe(&["./src//main.rs"]);
    assert_eq!(observed.files[0].path, "src/main.rs");
    assert_eq!(observed.files[0].seen, a_file("fn main() {}"));
    assert_eq!(observed.values, [(Digest::of(b"fn main() {}"), b"fn main() {}".to_vec())]);
}

#[test]
fn a_path_that_exists_in_both_locations_shows_and_binds_both() {
    let project = Project::new();
    project.write("src/main.rs", "the code");
    assert_eq!(project.seen("src/main.rs").seen, a_file("the code"));
    project.write("out/src/main.rs", "put there by a task");
    let before = project.observe(&["src/main.rs"]);
    let shown: Vec<_> = before.files.iter().map(|file| (file.path.as_str(), file.seen.clone())).collect();
    assert_eq!(shown, [("out/src/main.rs", a_file("put there by a task")), ("src/main.rs", a_file("the code"))]);
    assert_eq!(before.values.len(), 2);
    let again = |files: &[_]| reobserve(&project.run_dirs, files, &ObserveLimits::default(), &|_| false);
    assert_eq!(again(&before.files), before);

    project.write("src/main.rs", "other code");
    let changed = again(&before.files).files;
    assert_eq!((changed.len(), &changed[0], &changed[1].seen), (2, &before.files[0], &a_file("other code")));

    for path in ["src/main.rs", "out/src/main.rs"] {
        project.write("src/main.rs", "the code");
        project.write("out/src/main.rs", "put there by a task");
        std::fs::remove_file(project.path(path)).unwrap();
        let vanished = again(&before.files);
        let kinds: Vec<_> = vanished.files.iter().map(|file| (file.path.as_str(), file.seen == Seen::Absent)).collect();
        assert_eq!(kinds, [("out/src/main.rs", path.starts_with("out")), ("src/main.rs", path.starts_with("src"))]);
        assert_eq!(again(&vanished.files), vanished, "observing an unchanged file again gives the same result");
    }
}

#[test]
fn directories_in_both_locations_are_both_shown() {
    let project = Project::new();
    project.write("docs/a.md", "a");
    project.write("out/docs/b.md", "b");
    let observed = project.observe(&["docs"]);
    assert_eq!(observed.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["out/docs", "docs"]);
}

#[test]
fn an_unreadable_file_in_one_location_does_not_hide_the_other() {
    let project = Project::new();
    project.write("src/main.rs", "the code");
    std::fs::create_dir_all(project.path("out/src")).unwrap();
    project.pipe("out/src/main.rs");
    let before = project.observe(&["src/main.rs"]);
    assert_eq!(why(&before.files[0]), "it is a named pipe, not a file");
    assert_eq!((before.files[1].path.as_str(), &before.files[1].seen), ("src/main.rs", &a_file("the code")));
    assert_eq!(reobserve(&project.run_dirs, &before.files, &ObserveLimits::default(), &|_| false), before);
}

#[test]
fn a_dot_is_the_root_and_the_output_directory_has_its_own_name() {
    let project = Project::new();
    project.write("code.rs", "code");
    project.write("out/report.md", "report");
    let observed = project.observe(&[".", "out", "./"]);
    let shown: Vec<_> = observed.files.iter().map(|file| (file.path.as_str(), file.seen.clone())).collect();
    assert!(
        matches!(shown[..], [(".", Seen::Directory { files: 2, .. }), ("out", Seen::Directory { files: 1, .. })]),
        "{shown:?}"
    );
}

#[test]
fn each_file_is_listed_once_if_the_output_directory_is_the_root() {
    let mut project = Project::new();
    project.run_dirs.output_dir = PathBuf::from(".");
    project.write("a.md", "a");
    let observed = project.observe(&["a.md", "./a.md"]);
    assert_eq!(observed.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["a.md"]);
}

#[test]
fn a_path_may_name_the_output_directory_relative_to_the_root_or_absolutely() {
    let project = Project::new();
    project.write("out/report.md", "output");
    project.write("src/main.rs", "code");
    let in_full = project.path("out/report.md").display().to_string();
    let in_root = project.path("src/main.rs").display().to_string();
    let observed = project.observe(&["out/report.md", &in_full, &in_root]);
    let paths: Vec<_> = observed.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["out/report.md", "src/main.rs"], "the same file twice is there once");
}

#[test]
fn an_output_directory_outside_the_root_uses_absolute_paths_and_is_found_again() {
    let mut project = Project::new();
    project.run_dirs.output_dir = project.outside();
    let observed = project.observe(&["secret.txt"]);
    assert_eq!(observed.files[0].path, project.outside().join("secret.txt").display().to_string());
    assert_eq!(observed.files[0].seen, a_file("outside"));
    assert_eq!(reobserve(&project.run_dirs, &observed.files, &ObserveLimits::default(), &|_| false), observed);
}

#[test]
fn a_leading_feature_name_means_the_output_directory() {
    let project = Project::with_feature("login");
    project.write("out/plan.md", "plan");
    assert_eq!(project.seen("login/plan.md").path, "out/plan.md");
    assert_eq!(project.seen("login").path, "out");
    project.write("out/login/plan.md", "deeper");
    assert_eq!(project.seen("login/plan.md").path, "out/login/plan.md", "a directory of that name comes first");
}

#[test]
fn an_absent_file_keeps_referring_to_both_locations() {
    let project = Project::new();
    let before = project.observe(&["notes.md"]).files;
    assert_eq!((before[0].path.as_str(), &before[0].seen), ("notes.md", &Seen::Absent));
    let again = || reobserve(&project.run_dirs, &before, &ObserveLimits::default(), &|_| false).files;
    project.write("notes.md", "now");
    let after = again();
    assert_eq!((after.len(), after[0].path.as_str(), &after[0].seen), (1, "notes.md", &a_file("now")));
    project.write("out/notes.md", "and here");
    let after = again();
    let shown: Vec<_> = after.iter().map(|file| (file.path.as_str(), file.seen.clone())).collect();
    assert_eq!(shown, [("out/notes.md", a_file("and here")), ("notes.md", a_file("now"))]);
}

#[test]
fn a_missing_output_directory_makes_its_files_absent() {
    let mut project = Project::new();
    project.run_dirs.output_dir = PathBuf::from("not/yet");
    project.write("a.txt", "root");
    assert_eq!(project.seen("a.txt").seen, a_file("root"));
    assert_eq!(project.seen("not/yet/a.txt").seen, Seen::Absent);
}

#[test]
fn a_recheck_reads_the_location_where_the_file_was_found() {
    let project = Project::new();
    project.write("src/main.rs", "shown");
    let before = project.observe(&["src/main.rs"]);
    project.write("out/src/main.rs", "another file of that name");
    assert_eq!(reobserve(&project.run_dirs, &before.files, &ObserveLimits::default(), &|_| false), before);
    project.write("src/main.rs", "changed");
    let after = reobserve(&project.run_dirs, &before.files, &ObserveLimits::default(), &|_| false).files;
    assert_eq!((after[0].path.as_str(), &after[0].seen), ("src/main.rs", &a_file("changed")));
}

#[test]
fn a_large_file_is_digested_and_not_stored() {
    let project = Project::new();
    let text = "x".repeat(1_000_001);
    project.write("large.txt", &text);
    project.write("just.txt", &text[..1_000_000]);
    let observed = project.observe(&["large.txt", "just.txt"]);
    assert_eq!(observed.files[0].seen, a_file(&text));
    assert_eq!(observed.files[0].not_kept.as_deref(), Some("larger than 1 MB"));
    assert_eq!(observed.files[1].not_kept, None);
    assert_eq!(observed.values.len(), 1);
}

#[test]
fn a_file_too_large_to_digest_is_reported() {
    let project = Project::new();
    project.write("large.txt", "12345");
    let caps = ObserveLimits { file_bytes: 4, ..ObserveLimits::default() };
    assert_eq!(why(&project.observe_with(&["large.txt"], &caps).files[0]), "it is larger than 4 B");
}

#[test]
fn a_file_with_a_secret_is_digested_and_not_stored() {
    let project = Project::new();
    project.write("token.txt", "the token is hunter2!");
    project.write("names/hunter2.txt", "");
    let contains = |bytes: &[u8]| bytes.windows(7).any(|window| window == b"hunter2");
    let observed = observe(&project.run_dirs, &owned(&["token.txt", "names"]), &ObserveLimits::default(), &contains);
    for file in &observed.files {
        assert!(file.seen.digest().is_some());
        assert_eq!(file.not_kept.as_deref(), Some("contains a secret"));
        assert_eq!(preview(file, None, 5).lines, Vec::<String>::new());
    }
    assert_eq!(observed.values, []);
}

#[test]
fn a_preview_has_the_size_and_the_first_lines() {
    let project = Project::new();
    project.write("a.txt", format!("one\ntwo\n{}\nfour\n", "3".repeat(300)));
    project.write("b.bin", b"\0\x01");
    project.write("folder/inner/c.txt", "c");
    let observed = project.observe(&["a.txt", "b.bin", "folder", "nothing", "../x"]);
    let value = |digest| observed.values.iter().find(|(kept, _)| Some(*kept) == digest).map(|(_, bytes)| bytes.as_slice());
    let shown: Vec<_> = observed.files.iter().map(|file| preview(file, value(file.seen.digest()), 3)).collect();
    assert_eq!(shown[0].size, "314 B");
    assert_eq!(shown[0].lines[..2], ["one", "two"]);
    assert!(shown[0].lines[2].ends_with("… (100 more characters)"));
    assert_eq!(shown[0].more, 1);
    assert_eq!(shown[1].size, "2 B, binary");
    assert_eq!(
        (shown[2].size.as_str(), shown[2].lines.as_slice()),
        ("directory with 1 file", &["inner/c.txt (1 B)".to_owned()][..])
    );
    assert_eq!(shown[3].size, "missing");
    assert!(shown[4].size.contains("`..` is not allowed"), "{:?}", shown[4]);
}
