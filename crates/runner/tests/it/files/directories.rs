//! Answers are bound to directories with everything in them, or a note says that they are not.

use super::{Project, usual_mode, why};
use lockgate_engine::hold::Seen;
use lockgate_runner::files::ObserveLimits;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

fn listing(project: &Project, path: &str) -> String {
    let observed = project.observe(&[path]);
    assert!(matches!(observed.files[0].seen, Seen::Directory { .. }), "{observed:?}");
    String::from_utf8(observed.values[0].1.clone()).unwrap()
}

#[test]
fn a_directory_is_listed_with_file_digests_without_following_symlinks() {
    let project = Project::new();
    project.write("src/b/c.txt", "c");
    project.write("src/a.txt", "a");
    std::fs::create_dir(project.path("src/empty")).unwrap();
    project.link("../../outside", "src/link out");
    project.link("..", "src/b/circle");
    project.pipe("src/pipe");
    let observed = project.observe(&["src"]);
    let Seen::Directory { files, .. } = observed.files[0].seen else { panic!("{observed:?}") };
    assert_eq!((files, observed.files[0].path.as_str()), (2, "src"));
    let a = lockgate_engine::digest::Digest::of(b"a");
    let c = lockgate_engine::digest::Digest::of(b"c");
    let mode = format!("{:04o}", usual_mode());
    let folder = format!("{:04o}", project.path("src/b").metadata().unwrap().permissions().mode() & 0o7777);
    let expected = format!(
        "lockgate listing 2\nfile {mode} 1 {a} a.txt\nfolder {folder} b\nfile {mode} 1 {c} b/c.txt\nlink .. b/circle\nfolder {folder} empty\n\
         link ../../outside link out\na-named-pipe pipe\n"
    );
    assert_eq!(listing(&project, "src"), expected);
}

#[test]
fn every_change_below_a_directory_changes_its_digest() {
    let project = Project::new();
    project.write("src/deep/a.txt", "a");
    project.link("deep", "src/link");
    let mut digests = vec![project.seen("src").seen.digest()];
    assert_eq!(project.seen("src").seen.digest(), digests[0], "reading changes nothing");
    project.write("src/deep/a.txt", "b");
    digests.push(project.seen("src").seen.digest());
    project.write("src/new.txt", "");
    digests.push(project.seen("src").seen.digest());
    std::fs::rename(project.path("src/new.txt"), project.path("src/renamed.txt")).unwrap();
    digests.push(project.seen("src").seen.digest());
    std::fs::create_dir(project.path("src/empty")).unwrap();
    digests.push(project.seen("src").seen.digest());
    std::fs::remove_file(project.path("src/link")).unwrap();
    project.link("deep/a.txt", "src/link");
    digests.push(project.seen("src").seen.digest());
    let count = digests.len();
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), count);
}

#[test]
fn lockgate_and_git_state_is_excluded_and_named() {
    let mut project = Project::new();
    project.run_dirs.output_dir = ".lockgate/runs/x/out".into();
    project.write(".lockgate/lockgate.db", "1");
    project.write(".git/index", "1");
    project.write("a.txt", "a");
    let before = listing(&project, ".");
    assert!(before.contains("\nleft-out .git\n") && before.contains("\nleft-out .lockgate\n"), "{before}");
    project.write(".lockgate/lockgate.db", "2");
    project.write(".git/index", "2");
    assert_eq!(listing(&project, "."), before);
    assert!(listing(&project, ".git").contains(" index\n"), "a path that is named explicitly is observed");
}

#[test]
fn a_non_utf_8_name_is_listed_and_differs_from_its_escaped_form() {
    let project = Project::new();
    project.write("src/\\xff", "");
    let one = listing(&project, "src");
    std::fs::rename(project.path("src/\\xff"), project.path("src").join(std::ffi::OsStr::from_bytes(b"\xff"))).unwrap();
    let other = listing(&project, "src");
    assert_ne!(one, other);
    assert!(other.ends_with(" \\xff\n"), "{other}");
}

#[test]
fn an_oversized_directory_is_unreadable_with_a_reason() {
    let project = Project::new();
    for number in 0..5 {
        project.write(&format!("src/{number}/file.txt"), "12345");
    }
    let caps = ObserveLimits { dir_entries: 9, ..ObserveLimits::default() };
    assert_eq!(why(&project.observe_with(&["src"], &caps).files[0]), "it is a directory with more than 9 entries");
    let caps = ObserveLimits { dir_entries: 10, dir_bytes: 24, ..ObserveLimits::default() };
    assert_eq!(why(&project.observe_with(&["src"], &caps).files[0]), "it is a directory with more than 24 B");
    let caps = ObserveLimits { dir_entries: 10, dir_bytes: 25, ..ObserveLimits::default() };
    assert!(matches!(project.observe_with(&["src"], &caps).files[0].seen, Seen::Directory { files: 5, .. }));
}

#[test]
fn a_directory_nested_too_deeply_is_unreadable() {
    let project = Project::new();
    let name = "deep".repeat(60);
    let mut at = std::os::fd::OwnedFd::from(std::fs::File::open(project.path("out")).unwrap());
    // Longer than the longest path that can be opened in one call.
    for _ in 0..20 {
        rustix::fs::mkdirat(&at, &name, rustix::fs::Mode::RWXU).unwrap();
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY;
        at = rustix::fs::openat(&at, &name, flags, rustix::fs::Mode::empty()).unwrap();
    }
    let seen = project.seen("out");
    assert!(matches!(seen.seen, Seen::Unreadable(_)), "{seen:?}");
}

/// A repository with one commit, created by git.
fn repository(project: &Project, path: &str) {
    project.write(&format!("{path}/a.txt"), "a");
    git(project, path, &["init", "--quiet", "--initial-branch=main"]);
    commit(project, path);
}

fn commit(project: &Project, path: &str) {
    git(project, path, &["add", "--all"]);
    git(project, path, &["commit", "--quiet", "--allow-empty", "--message", "more"]);
}

fn git(project: &Project, path: &str, arguments: &[&str]) {
    let settings = [
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.invalid",
        "-c",
        "commit.gpgsign=false",
        "-c",
        "protocol.file.allow=always",
    ];
    let mut command = std::process::Command::new("git");
    let output = command.current_dir(project.path(path)).args(settings).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

#[test]
fn approval_is_bound_to_commits_branches_and_hooks_of_a_nested_repository() {
    let project = Project::new();
    repository(&project, "shown/lib");
    let mut listings = vec![listing(&project, "shown"), listing(&project, "shown/lib")];
    assert!(listings[0].contains("\nrepository ") && listings[0].ends_with(" lib/a.txt\n"), "{}", listings[0]);
    // Git rewrites its index even when it only reads.
    git(&project, "shown/lib", &["update-index", "--refresh"]);
    assert_eq!([listing(&project, "shown"), listing(&project, "shown/lib")], listings[..]);
    commit(&project, "shown/lib");
    listings.push(listing(&project, "shown"));
    git(&project, "shown/lib", &["branch", "other"]);
    listings.push(listing(&project, "shown"));
    project.write("shown/lib/.git/hooks/post-commit", "#!/bin/sh");
    listings.push(listing(&project, "shown"));
    let count = listings.len();
    listings.sort();
    listings.dedup();
    assert_eq!(listings.len(), count, "each of these is a change");
}

#[test]
fn approval_is_bound_to_everything_in_a_directory_merely_named_like_a_repository() {
    let project = Project::new();
    project.write("shown/.git/objects/run.sh", "echo good");
    let before = listing(&project, "shown");
    project.write("shown/.git/objects/run.sh", "echo evil");
    assert_ne!(listing(&project, "shown"), before);
}

#[test]
fn approval_is_bound_to_the_commit_of_a_submodule() {
    let project = Project::new();
    repository(&project, "elsewhere");
    repository(&project, ".");
    git(&project, ".", &["submodule", "--quiet", "add", "./elsewhere", "shown/lib"]);
    let before = listing(&project, "shown");
    assert!(before.contains("\nrepository "), "{before}");
    commit(&project, "shown/lib");
    assert_ne!(listing(&project, "shown"), before);
}

#[test]
fn approval_is_bound_to_the_modes_below_a_directory() {
    let project = Project::new();
    project.write("src/tool", "x");
    let mut digests = vec![project.seen("src").seen.digest()];
    for (path, mode) in [("src/tool", 0o755), ("src/tool", 0o4755), ("src", 0o700)] {
        std::fs::set_permissions(project.path(path), std::fs::Permissions::from_mode(mode)).unwrap();
        digests.push(project.seen(".").seen.digest());
    }
    let count = digests.len();
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), count);
}
