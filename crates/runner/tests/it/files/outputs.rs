//! The outputs of a task.

use super::{Project, no_secret, owned};
use lockgate_engine::digest::Digest;
use lockgate_runner::files::{
    FileError, MissingOutputs, Outputs, collect_outputs, output_exists, read_output, write_atomically, write_output,
};
use std::os::unix::fs::PermissionsExt;

fn collect(project: &Project, declared: &[&str], keep: u64) -> Result<Outputs, MissingOutputs> {
    collect_outputs(&project.run_dirs, &owned(declared), keep, &no_secret)
}

fn paths(outputs: &Outputs) -> Vec<&str> {
    outputs.files.iter().map(|file| file.path.as_str()).collect()
}

#[test]
fn declared_outputs_are_digested_and_stored_by_relative_path() {
    let project = Project::new();
    project.write("out/report.md", "report");
    project.write("out/deep/er/plan.md", "plan");
    let in_full = project.path("out/report.md").display().to_string();
    let outputs = collect(&project, &["deep/er/plan.md", "report.md", "./report.md", &in_full], 100).unwrap();
    assert_eq!(paths(&outputs), ["deep/er/plan.md", "report.md"]);
    assert_eq!((outputs.files[1].digest, outputs.files[1].bytes, outputs.files[1].stored), (Digest::of(b"report"), 6, true));
    assert_eq!(outputs.values, [(Digest::of(b"plan"), b"plan".to_vec()), (Digest::of(b"report"), b"report".to_vec())]);
}

#[test]
fn outputs_are_searched_only_in_the_output_directory() {
    let project = Project::new();
    project.write("report.md", "in the root");
    assert!(collect(&project, &["report.md"], 100).is_err());
    project.write("out/report.md", "report");
    let missing = collect(&project, &["out/report.md"], 100).unwrap_err();
    assert_eq!(missing.missing[0].reason.to_string(), "paths are relative to the output directory: write \"report.md\"");
}

#[test]
fn a_leading_feature_name_in_an_output_means_the_output_directory() {
    let project = Project::with_feature("login");
    project.write("out/plan.md", "plan");
    assert_eq!(paths(&collect(&project, &["login/plan.md"], 0).unwrap()), ["plan.md"]);
    assert_eq!(write_output(&project.run_dirs, "login/more.md", b"more").unwrap(), "more.md");
    assert!(output_exists(&project.run_dirs, "login/more.md").unwrap());
}

#[test]
fn all_missing_outputs_are_reported_together() {
    let project = Project::new();
    project.write("out/there.md", "");
    std::fs::create_dir(project.path("out/empty")).unwrap();
    let missing = collect(&project, &["there.md", "one.md", "", "empty", "there.md/inside"], 100).unwrap_err();
    let missing_files = missing.missing.iter();
    let reported: Vec<_> = missing_files.map(|missing| (missing.path.clone(), missing.reason.to_string())).collect();
    let expected = [
        ("one.md", "it does not exist"),
        ("", "the path is empty"),
        ("empty", "it is a directory without files"),
        ("there.md/inside", "it does not exist"),
    ];
    assert_eq!(reported, expected.map(|(path, reason)| (path.to_owned(), reason.to_owned())));
    let text = missing.to_string();
    assert!(text.contains(&project.path("out").display().to_string()) && text.lines().count() == 5, "{text}");
}

#[test]
fn a_directory_output_means_all_regular_files_below_it() {
    let project = Project::new();
    project.write("out/site/index.html", "1");
    project.write("out/site/css/a.css", "2");
    project.link("../../../outside/secret.txt", "out/site/link");
    project.pipe("out/site/pipe");
    let outputs = collect(&project, &["site"], 100).unwrap();
    assert_eq!(paths(&outputs), ["site/css/a.css", "site/index.html"]);
    assert_eq!(paths(&collect(&project, &["."], 0).unwrap()), ["site/css/a.css", "site/index.html"]);
}

#[test]
fn bytes_are_stored_while_they_fit_and_without_secrets() {
    let project = Project::new();
    project.write("out/a", "12345");
    project.write("out/b", "123456");
    project.write("out/c", "1234");
    project.write("out/d", "12345");
    let outputs = collect(&project, &["a", "b", "c", "d"], 10).unwrap();
    let stored: Vec<bool> = outputs.files.iter().map(|file| file.stored).collect();
    assert_eq!(stored, [true, false, true, true], "b does not fit in addition to a; d is the same as a");
    assert_eq!(outputs.values.len(), 2);
    let outputs = collect_outputs(&project.run_dirs, &owned(&["a"]), 10, &|bytes| bytes == b"12345").unwrap();
    assert!(!outputs.files[0].stored && outputs.values.is_empty());
}

#[test]
fn a_missing_output_directory_has_no_outputs() {
    let mut project = Project::new();
    project.run_dirs.output_dir = "never".into();
    assert!(collect(&project, &["a"], 10).is_err());
    assert_eq!(collect(&project, &[], 10).unwrap(), Outputs::default());
}

#[test]
fn written_files_round_trip_and_directories_are_created() {
    let mut project = Project::new();
    project.run_dirs.output_dir = "new/out".into();
    assert_eq!(read_output(&project.run_dirs, "a/b.txt", 10).unwrap(), None);
    write_output(&project.run_dirs, "a/b.txt", b"one").unwrap();
    write_output(&project.run_dirs, "a/b.txt", b"two").unwrap();
    assert_eq!(read_output(&project.run_dirs, "a/b.txt", 3).unwrap().as_deref(), Some(&b"two"[..]));
    assert_eq!(read_output(&project.run_dirs, "a/b.txt", 2).unwrap_err().reason, FileError::TooLarge { most: 2 });
    assert!(matches!(read_output(&project.run_dirs, "a", 10).unwrap_err().reason, FileError::NotAFile("a directory")));
    assert!(matches!(write_output(&project.run_dirs, "a", b"").unwrap_err().reason, FileError::NotAFile("a directory")));
    assert!(matches!(write_output(&project.run_dirs, ".", b"").unwrap_err().reason, FileError::OutputDirItself));
    assert_eq!(std::fs::read_dir(project.path("new/out/a")).unwrap().count(), 1, "no temporary file stays");
}

#[test]
fn a_file_in_place_of_a_directory_is_reported() {
    let project = Project::new();
    project.write("out/a", "file");
    let refused = write_output(&project.run_dirs, "a/b.txt", b"x").unwrap_err();
    assert!(refused.to_string().contains("\"a/b.txt\": it cannot be written"), "{refused}");
}

#[test]
fn writing_atomically_replaces_the_whole_file_and_keeps_its_permissions() {
    let project = Project::new();
    project.write("state.json", "a long old text");
    std::fs::set_permissions(project.path("state.json"), std::fs::Permissions::from_mode(0o600)).unwrap();
    write_atomically(&project.path("state.json"), b"new").unwrap();
    assert_eq!(std::fs::read(project.path("state.json")).unwrap(), b"new");
    assert_eq!(project.path("state.json").metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_write_that_fails_leaves_the_old_file_and_no_temporary_one() {
    let project = Project::new();
    project.write("folder/inside", "old");
    assert!(write_atomically(&project.path("folder"), b"new").is_err(), "a directory occupies the path");
    assert!(write_atomically(&project.path("no/such/folder.txt"), b"new").is_err());
    assert_eq!(std::fs::read(project.path("folder/inside")).unwrap(), b"old");
    let mut names: Vec<_> = std::fs::read_dir(project.path(".")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["folder", "out"]);
}
