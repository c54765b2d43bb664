//! No path leads out of its directory, and nothing blocks.

use super::{Project, a_file, no_secret, why};
use lockgate_engine::hold::Seen;
use lockgate_runner::files::{collect_outputs, output_exists, read_output, write_output};

#[test]
fn paths_that_escape_are_refused_with_the_reason() {
    let project = Project::new();
    let absolute = project.outside().join("secret.txt").display().to_string();
    let around = project.path("out/../../outside/secret.txt").display().to_string();
    for (path, reason) in [
        ("../outside/secret.txt", "`..` is not allowed"),
        ("src/../../outside/secret.txt", "`..` is not allowed"),
        ("out/../src", "`..` is not allowed"),
        (absolute.as_str(), "outside the root"),
        (around.as_str(), "`..` is not allowed"),
        ("/etc/passwd", "outside the root"),
        ("", "empty"),
        ("  ", "empty"),
        ("a\0b", "NUL"),
    ] {
        let seen = project.seen(path);
        assert!(why(&seen).contains(reason), "{seen:?}");
        assert_eq!(seen.path, path);
        assert!(collect_outputs(&project.run_dirs, &[path.to_owned()], 0, &no_secret).is_err(), "{path:?}");
        assert!(read_output(&project.run_dirs, path, 100).is_err(), "{path:?}");
        assert!(output_exists(&project.run_dirs, path).is_err(), "{path:?}");
        assert!(write_output(&project.run_dirs, path, b"x").is_err(), "{path:?}");
    }
}

#[test]
fn symlinks_that_escape_are_not_followed() {
    let project = Project::new();
    project.link("../../outside/secret.txt", "out/file");
    project.link("../../outside", "out/folder");
    project.link(project.outside(), "out/absolute");
    project.link("../../outside/not-there", "out/dangling");
    project.link("file", "out/twice");
    project.link("../outside/secret.txt", "in-root");
    for path in ["file", "folder", "folder/secret.txt", "absolute", "absolute/secret.txt", "dangling", "twice", "in-root"] {
        let seen = project.seen(path);
        assert!(why(&seen).contains("a symbolic link leads out"), "{seen:?}");
    }
    for path in ["file", "folder/secret.txt", "absolute/secret.txt", "twice"] {
        let missing = collect_outputs(&project.run_dirs, &[path.to_owned()], 100, &no_secret).unwrap_err();
        assert!(missing.to_string().contains("a symbolic link leads out"), "{missing}");
        assert!(read_output(&project.run_dirs, path, 100).is_err());
    }
    for path in ["folder/new.txt", "absolute/new.txt", "folder/deeper/new.txt"] {
        assert!(write_output(&project.run_dirs, path, b"x").is_err());
    }
    assert_eq!(std::fs::read_dir(project.outside()).unwrap().count(), 1, "nothing was written outside");
}

#[test]
fn writing_over_a_symlink_replaces_the_symlink_and_keeps_its_target() {
    let project = Project::new();
    project.link("../../outside/secret.txt", "out/file");
    assert_eq!(write_output(&project.run_dirs, "file", b"new").unwrap(), "file");
    assert_eq!(std::fs::read_to_string(project.outside().join("secret.txt")).unwrap(), "outside");
    assert_eq!(project.seen("file").seen, a_file("new"));
}

#[test]
fn an_output_directory_replaced_by_a_symlink_is_not_followed() {
    let project = Project::new();
    std::fs::remove_dir(project.path("out")).unwrap();
    project.link("../outside", "out");
    let seen = project.seen("out/secret.txt");
    assert!(why(&seen).contains("a symbolic link leads out"), "{seen:?}");
    assert!(collect_outputs(&project.run_dirs, &["secret.txt".to_owned()], 0, &no_secret).is_err());
    assert!(write_output(&project.run_dirs, "new.txt", b"x").is_err());
    assert_eq!(std::fs::read_dir(project.outside()).unwrap().count(), 1, "nothing was written outside");
}

#[test]
fn an_output_directory_that_escapes_by_dots_is_not_used() {
    let mut project = Project::new();
    project.run_dirs.output_dir = "../outside".into();
    assert!(why(&project.seen("secret.txt")).contains("the output directory cannot be used"));
    assert!(write_output(&project.run_dirs, "new.txt", b"x").is_err());
}

#[test]
fn symlinks_that_stay_inside_are_followed() {
    let project = Project::new();
    project.write("out/real/a.txt", "a");
    project.link("real", "out/alias");
    project.link("real/a.txt", "out/b.txt");
    assert_eq!(project.seen("alias/a.txt").seen, a_file("a"));
    assert_eq!(project.seen("b.txt").seen, a_file("a"));
}

#[test]
fn a_dangling_symlink_inside_is_absent() {
    let project = Project::new();
    project.link("nothing", "out/dangling");
    assert_eq!(project.seen("dangling").seen, Seen::Absent);
    assert!(!output_exists(&project.run_dirs, "dangling").unwrap());
}

#[test]
fn symlink_loops_are_unreadable() {
    let project = Project::new();
    project.link("two", "out/one");
    project.link("one", "out/two");
    project.link("self", "out/self");
    for path in ["one", "two", "self", "one/inside"] {
        assert_eq!(why(&project.seen(path)), "symbolic links form a cycle");
    }
}

#[test]
fn reading_a_pipe_does_not_block() {
    let project = Project::new();
    project.pipe("out/pipe");
    project.link("pipe", "out/alias");
    for path in ["pipe", "alias"] {
        assert_eq!(why(&project.seen(path)), "it is a named pipe, not a file");
        let missing = collect_outputs(&project.run_dirs, &[path.to_owned()], 0, &no_secret).unwrap_err();
        assert!(missing.to_string().contains("a named pipe"), "{missing}");
        assert!(read_output(&project.run_dirs, path, 100).is_err());
    }
}

#[test]
fn a_socket_is_unreadable() {
    let project = Project::new();
    let _listener = std::os::unix::net::UnixListener::bind(project.path("out/socket")).unwrap();
    assert_eq!(why(&project.seen("socket")), "it is a socket, not a file");
}

#[test]
fn a_missing_root_makes_everything_unreadable() {
    let mut project = Project::new();
    project.run_dirs.root = project.path("gone");
    let seen = project.seen("a.txt");
    assert!(why(&seen).contains("cannot be opened"), "{seen:?}");
}
