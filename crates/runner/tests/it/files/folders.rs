//! Folders are bound with all that is in them, or said not to be.

use super::{Project, why};
use lockgate_engine::hold::Seen;
use lockgate_runner::files::Caps;
use std::os::unix::ffi::OsStrExt;

fn listing(project: &Project, path: &str) -> String {
    let observed = project.observe(&[path]);
    assert!(matches!(observed.files[0].seen, Seen::Directory { .. }), "{observed:?}");
    String::from_utf8(observed.values[0].1.clone()).unwrap()
}

#[test]
fn a_folder_is_listed_with_the_digests_of_its_files_and_no_link_is_followed() {
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
    let expected = format!(
        "lockgate listing 1\nfile 1 {a} a.txt\nfolder b\nfile 1 {c} b/c.txt\nlink .. b/circle\nfolder empty\n\
         link ../../outside link out\na-named-pipe pipe\n"
    );
    assert_eq!(listing(&project, "src"), expected);
}

#[test]
fn every_change_below_a_folder_changes_its_digest() {
    let project = Project::new();
    project.write("src/deep/a.txt", "a");
    project.link("deep", "src/link");
    let mut digests = vec![project.seen("src").seen.digest()];
    assert_eq!(project.seen("src").seen.digest(), digests[0], "looking changes nothing");
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
fn state_that_changes_by_itself_is_left_out_and_named() {
    let mut project = Project::new();
    project.places.output_dir = ".lockgate/runs/x/out".into();
    project.write(".lockgate/lockgate.db", "1");
    project.write(".git/index", "1");
    project.write("a.txt", "a");
    let before = listing(&project, ".");
    assert!(before.contains("\nleft-out .git\n") && before.contains("\nleft-out .lockgate\n"), "{before}");
    project.write(".lockgate/lockgate.db", "2");
    project.write(".git/index", "2");
    assert_eq!(listing(&project, "."), before);
    assert!(listing(&project, ".git").contains(" index\n"), "what is named itself is looked at");
}

#[test]
fn a_name_that_is_not_text_is_listed_and_differs_from_its_spelling() {
    let project = Project::new();
    project.write("src/\\xff", "");
    let one = listing(&project, "src");
    std::fs::rename(project.path("src/\\xff"), project.path("src").join(std::ffi::OsStr::from_bytes(b"\xff"))).unwrap();
    let other = listing(&project, "src");
    assert_ne!(one, other);
    assert!(other.ends_with(" \\xff\n"), "{other}");
}

#[test]
fn a_folder_with_too_much_in_it_is_unreadable_and_says_why() {
    let project = Project::new();
    for number in 0..5 {
        project.write(&format!("src/{number}/file.txt"), "12345");
    }
    let caps = Caps { folder_things: 9, ..Caps::default() };
    assert_eq!(why(&project.observe_with(&["src"], &caps).files[0]), "it is a folder with more than 9 things in it");
    let caps = Caps { folder_things: 10, folder_bytes: 24, ..Caps::default() };
    assert_eq!(why(&project.observe_with(&["src"], &caps).files[0]), "it is a folder with more than 24 B in it");
    let caps = Caps { folder_things: 10, folder_bytes: 25, ..Caps::default() };
    assert!(matches!(project.observe_with(&["src"], &caps).files[0].seen, Seen::Directory { files: 5, .. }));
}

#[test]
fn a_folder_too_deep_to_be_read_is_unreadable() {
    let project = Project::new();
    let name = "deep".repeat(60);
    let mut at = std::os::fd::OwnedFd::from(std::fs::File::open(project.path("out")).unwrap());
    // More than the longest path that can be opened at once.
    for _ in 0..20 {
        rustix::fs::mkdirat(&at, &name, rustix::fs::Mode::RWXU).unwrap();
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY;
        at = rustix::fs::openat(&at, &name, flags, rustix::fs::Mode::empty()).unwrap();
    }
    let seen = project.seen("out");
    assert!(matches!(seen.seen, Seen::Unreadable(_)), "{seen:?}");
}
