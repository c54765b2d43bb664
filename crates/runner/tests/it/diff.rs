//! Git diffs shown by questions, with real git: what is part of a diff, and what an answer is bound to.

use lockgate_engine::hold::{ChangeStatus, GitChange, SeenDiff};
use lockgate_engine::id::RunId;
use lockgate_engine::run::event::DiffBase;
use lockgate_engine::spec::workflow::DiffSince;
use lockgate_runner::diff::{DiffObservation, ObserveLimits, Request, Workplace, forget, look, record, since_shown};
use lockgate_runner::process::Stop;
use lockgate_runner::root::Root;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const SETTINGS: [&str; 8] = [
    "-c",
    "user.name=tester",
    "-c",
    "user.email=tester@example.invalid",
    "-c",
    "commit.gpgsign=false",
    "-c",
    "protocol.file.allow=always",
];

fn git(dir: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git").args(SETTINGS).args(arguments).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

struct Bench {
    folder: tempfile::TempDir,
    root: Root,
    caps: ObserveLimits,
}

impl Bench {
    /// With one commit that contains `code.txt`.
    fn new() -> Self {
        let bench = Self::unborn();
        bench.write("code.txt", "one\ntwo\nthree\n");
        git(bench.dir(), &["add", "-A"]);
        git(bench.dir(), &["commit", "--quiet", "-m", "first"]);
        bench
    }

    fn unborn() -> Self {
        let folder = tempfile::tempdir().unwrap();
        git(folder.path(), &["init", "--quiet", "--initial-branch=main"]);
        Self::at(folder)
    }

    fn at(folder: tempfile::TempDir) -> Self {
        let root = Root::at(folder.path());
        root.prepare().unwrap();
        root.prepare_run(&RunId::from("run00001")).unwrap();
        Self { folder, root, caps: ObserveLimits::default() }
    }

    fn dir(&self) -> &Path {
        self.folder.path()
    }

    fn path(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.dir().join(name.as_ref())
    }

    fn write(&self, name: impl AsRef<OsStr>, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn place(&self, run: &str) -> Workplace {
        Workplace { dir: self.root.dir().to_owned(), root: self.root.clone(), run: RunId::from(run), name: "test".into() }
    }

    fn record(&self) -> DiffBase {
        record(&self.place("run00001"), &["run", "phase"], &Stop::new())
    }

    fn request(&self, since: DiffSince, base: Option<&DiffBase>) -> Request {
        Request { since, paths: Vec::new(), recorded: base.cloned() }
    }

    fn look(&self, request: &Request) -> DiffObservation {
        look(&self.place("run00001"), request, &self.caps, &|patch| Ok(patch.to_owned()), &Stop::new())
    }

    fn since_base(&self, base: &DiffBase) -> (GitChange, String) {
        known(self.look(&self.request(DiffSince::Phase, Some(base))))
    }

    fn since(&self, name: &str) -> DiffObservation {
        self.look(&self.request(DiffSince::Ref(name.to_owned()), None))
    }
}

fn known(look: DiffObservation) -> (GitChange, String) {
    match look.shown.seen {
        SeenDiff::Change(change) => (*change, look.text.unwrap_or_default()),
        SeenDiff::Unavailable(why) => panic!("{why}"),
    }
}

fn why(look: &DiffObservation) -> &str {
    match &look.shown.seen {
        SeenDiff::Change(change) => panic!("{change:?}"),
        SeenDiff::Unavailable(why) => why,
    }
}

/// `STATUS PATH +ADDED -REMOVED` of each file.
fn files(change: &GitChange) -> Vec<String> {
    let line = |file: &lockgate_engine::hold::ChangedFile| {
        let lines = file.lines.map_or("binary".to_owned(), |lines| format!("+{} -{}", lines.added, lines.removed));
        let old = file.old_path.as_ref().map(|old| format!("{old} > ")).unwrap_or_default();
        format!("{} {old}{} {lines}", file.status.as_str(), file.path)
    };
    change.files.iter().map(line).collect()
}

#[test]
fn a_change_starts_from_the_files_as_they_were_whether_or_not_they_were_committed() {
    let bench = Bench::new();
    bench.write("code.txt", "uncommitted\n");
    bench.write("notes.txt", "untracked\n");
    let base = bench.record();
    let (nothing, text) = bench.since_base(&base);
    assert_eq!((nothing.file_count, text.as_str()), (0, ""), "earlier changes are not part of it");
    bench.write("code.txt", "uncommitted\nmore\n");
    bench.write("new/file.txt", "a\nb\n");
    std::fs::remove_file(bench.path("notes.txt")).unwrap();
    let (change, text) = bench.since_base(&base);
    assert_eq!(files(&change), ["modified code.txt +1 -0", "added new/file.txt +2 -0", "deleted notes.txt +0 -1"]);
    assert_eq!((change.file_count, change.added, change.removed), (3, 3, 1));
    assert!(text.contains("diff --git a/code.txt b/code.txt") && text.contains("+more"), "{text}");
}

#[test]
fn a_change_neither_touches_the_index_nor_the_objects_of_the_user() {
    let bench = Bench::new();
    bench.write("private.txt", "only for me\n");
    std::fs::set_permissions(bench.path("private.txt"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let (status, index) = (git(bench.dir(), &["status", "--porcelain"]), std::fs::read(bench.path(".git/index")).unwrap());
    let base = bench.record();
    bench.write("private.txt", "still only for me\n");
    bench.since_base(&base);
    assert_eq!((git(bench.dir(), &["status", "--porcelain"]), std::fs::read(bench.path(".git/index")).unwrap()), (status, index));
    let blob = git(bench.dir(), &["hash-object", "private.txt"]);
    let kept = Command::new("git").args(["cat-file", "-e", &blob]).current_dir(bench.dir()).status().unwrap();
    assert!(!kept.success(), "the content of an untracked file is not in the repository");
    let mode = std::fs::metadata(bench.root.diff_dir(&RunId::from("run00001"))).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "only its owner may read it");
    forget(&bench.root, &RunId::from("run00001"));
    assert!(!bench.root.diff_dir(&RunId::from("run00001")).exists());
}

#[test]
fn the_digest_changes_with_every_file_and_with_nothing_else() {
    let bench = Bench::new();
    let base = bench.record();
    bench.write("code.txt", "changed\n");
    let (first, _) = bench.since_base(&base);
    git(bench.dir(), &["commit", "--quiet", "-am", "the same content"]);
    assert_eq!(bench.since_base(&base).0.digest, first.digest, "committing the shown files changes nothing");
    bench.write("untracked.txt", "x\n");
    let (untracked, _) = bench.since_base(&base);
    assert_ne!(untracked.digest, first.digest);
    bench.write("untracked.txt", "y\n");
    assert_ne!(bench.since_base(&base).0.digest, untracked.digest);
    std::fs::remove_file(bench.path("untracked.txt")).unwrap();
    assert_eq!(bench.since_base(&base).0.digest, first.digest, "it is as it was");
    bench.write(".git/info/exclude", "ignored\n");
    bench.write("ignored", "x");
    bench.write(".lockgate/config.yaml", "people: {}\n");
    bench.write("sub/.lockgate/state", "x");
    git(bench.dir(), &["add", "--force", ".lockgate/config.yaml"]);
    assert_eq!(bench.since_base(&base).0.digest, first.digest, "neither ignored files nor our own are part of it");
}

#[test]
fn renames_modes_links_and_binary_files_are_distinguished() {
    let bench = Bench::new();
    bench.write("long.txt", "line\n".repeat(50));
    bench.write("tool.sh", "#!/bin/sh\n");
    bench.write("file", "a\n");
    bench.write("picture", b"\x00\x01\x02");
    let base = bench.record();
    std::fs::rename(bench.path("long.txt"), bench.path("moved.txt")).unwrap();
    std::fs::set_permissions(bench.path("tool.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::remove_file(bench.path("file")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", bench.path("file")).unwrap();
    bench.write("picture", b"\x00\x03");
    let (change, text) = bench.since_base(&base);
    let expected = [
        "type changed file +1 -1",
        "renamed long.txt > moved.txt +0 -0",
        "modified picture binary",
        "mode changed tool.sh +0 -0",
    ];
    assert_eq!(files(&change), expected);
    assert!(text.contains("+/etc/passwd"), "a link is shown, not what it leads to: {text}");
    assert!(!text.contains("root:"), "{text}");
    let (before, target) = (change.digest, bench.path("file"));
    std::fs::remove_file(&target).unwrap();
    std::os::unix::fs::symlink("/etc/group", &target).unwrap();
    assert_ne!(bench.since_base(&base).0.digest, before);
}

#[test]
fn a_change_looks_the_same_whatever_the_user_has_set() {
    let bench = Bench::new();
    bench.write("code.txt", "one\ntwo\n");
    let base = bench.record();
    bench.write("code.txt", "one\nTWO\n");
    let plain = bench.since_base(&base);
    let settings = [
        ("color.ui", "always"),
        ("color.diff", "always"),
        ("diff.external", "echo external"),
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.context", "0"),
        ("diff.renames", "false"),
        ("diff.shouting.textconv", "tr a-z A-Z <"),
        ("diff.shouting.command", "echo driver"),
        ("core.pager", "false"),
        ("core.quotePath", "true"),
        ("diff.relative", "true"),
    ];
    for (name, value) in settings {
        git(bench.dir(), &["config", name, value]);
    }
    bench.write(".git/info/attributes", "*.txt diff=shouting\n");
    assert_eq!(bench.since_base(&base), plain);
}

#[test]
fn marks_that_hide_files_from_git_hide_nothing_from_a_change() {
    let bench = Bench::new();
    bench.write("other.txt", "x\n");
    git(bench.dir(), &["add", "-A"]);
    git(bench.dir(), &["commit", "--quiet", "-m", "second"]);
    let base = bench.record();
    git(bench.dir(), &["update-index", "--assume-unchanged", "code.txt"]);
    git(bench.dir(), &["update-index", "--skip-worktree", "other.txt"]);
    bench.write("code.txt", "hidden\n");
    bench.write("other.txt", "hidden, too\n");
    assert_eq!(git(bench.dir(), &["status", "--porcelain"]), "");
    let (change, _) = bench.since_base(&base);
    assert_eq!(files(&change), ["modified code.txt +1 -3", "modified other.txt +1 -1"]);
}

#[test]
fn names_are_data_whatever_they_look_like() {
    let bench = Bench::new();
    let base = bench.record();
    let names: [&[u8]; 6] = [b"--output=x", b"-p", b"new\nline", b"\x1b[31mred", b"caf\xe9", b"*"];
    for name in names {
        bench.write(OsStr::from_bytes(name), "x\n");
    }
    let (change, text) = bench.since_base(&base);
    let mut listed: Vec<&str> = change.files.iter().map(|file| file.path.as_str()).collect();
    listed.sort_unstable();
    assert_eq!(listed, ["\u{1b}[31mred", "*", "--output=x", "-p", "caf\u{fffd}", "new\nline"]);
    assert!(!bench.path("x").exists() && !text.contains('\u{1b}'), "{text}");
    let only = |path: &str| Request { paths: vec![path.into()], ..bench.request(DiffSince::Phase, Some(&base)) };
    for path in ["*", "--output=x", "-p"] {
        let (change, _) = known(bench.look(&only(path)));
        assert_eq!(change.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), [path], "a path is not a pattern");
    }
}

#[test]
fn paths_narrow_a_change_to_what_is_under_the_root() {
    let bench = Bench::new();
    let base = bench.record();
    bench.write("src/a.rs", "a\n");
    bench.write("docs/a.md", "a\n");
    let only = |paths: &[&str]| Request {
        paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        ..bench.request(DiffSince::Phase, Some(&base))
    };
    let (change, _) = known(bench.look(&only(&["src"])));
    assert_eq!(files(&change), ["added src/a.rs +1 -0"]);
    bench.write("docs/a.md", "b\n");
    assert_eq!(known(bench.look(&only(&["./src/"]))).0.digest, change.digest, "another file does not matter");
    assert_eq!(why(&bench.look(&only(&["../x"]))), "../x is not inside the root");
    assert_eq!(why(&bench.look(&only(&["/etc"]))), "/etc is not inside the root");
}

#[test]
fn a_root_below_the_top_of_a_repository_sees_all_of_it_and_names_paths_from_the_root() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("part")).unwrap();
    let root = Root::at(&bench.path("part"));
    root.prepare().unwrap();
    let place = Workplace { dir: root.dir().to_owned(), root, run: RunId::from("run00001"), name: "test".into() };
    let base = record(&place, &["phase"], &Stop::new());
    bench.write("part/in.txt", "x\n");
    bench.write("out.txt", "x\n");
    let look = |paths: Vec<String>| {
        let request = Request { since: DiffSince::Phase, paths, recorded: Some(base.clone()) };
        known(look(&place, &request, &ObserveLimits::default(), &|patch| Ok(patch.to_owned()), &Stop::new())).0
    };
    assert_eq!(files(&look(Vec::new())), ["added out.txt +1 -0", "added part/in.txt +1 -0"]);
    assert_eq!(files(&look(vec!["in.txt".into()])), ["added part/in.txt +1 -0"]);
}

#[test]
fn a_change_since_a_revision_starts_where_the_branch_left_it() {
    let bench = Bench::new();
    git(bench.dir(), &["checkout", "--quiet", "-b", "work"]);
    bench.write("mine.txt", "x\n");
    git(bench.dir(), &["add", "-A"]);
    git(bench.dir(), &["commit", "--quiet", "-m", "mine"]);
    let start = git(bench.dir(), &["rev-parse", "main"]);
    git(bench.dir(), &["checkout", "--quiet", "main"]);
    bench.write("theirs.txt", "x\n");
    git(bench.dir(), &["add", "-A"]);
    git(bench.dir(), &["commit", "--quiet", "-m", "theirs"]);
    git(bench.dir(), &["checkout", "--quiet", "work"]);
    bench.write("loose.txt", "x\n");
    let (change, _) = known(bench.since("main"));
    assert_eq!(files(&change), ["added loose.txt +1 -0", "added mine.txt +1 -0"]);
    assert_eq!(change.base, start);
    let (change, _) = known(bench.since("HEAD"));
    assert_eq!(files(&change), ["added loose.txt +1 -0"]);
    git(bench.dir(), &["add", "-A"]);
    git(bench.dir(), &["commit", "--quiet", "-m", "all of it"]);
    assert_ne!(known(bench.since("HEAD")).0.digest, change.digest, "a commit moves where it starts");
    git(bench.dir(), &["checkout", "--quiet", "--orphan", "alone"]);
    let alone = bench.since("main");
    assert!(alone.notes.is_empty() || alone.notes[0].contains("no commit in common with main"), "{:?}", alone.notes);
    git(bench.dir(), &["commit", "--quiet", "-m", "alone"]);
    let alone = bench.since("main");
    assert!(alone.notes[0].contains("no commit in common with main"), "{:?}", alone.notes);
}

#[test]
fn what_cannot_be_compared_is_said_and_not_bound() {
    let bench = Bench::new();
    let look = bench.since("nowhere");
    assert_eq!(why(&look), "there is no revision nowhere in this repository");
    assert_eq!(
        look.notes,
        [
            "the change since nowhere cannot be shown, and the answer is not bound to it: there is no revision nowhere in this repository"
        ]
    );
    for hostile in ["--output=x", "", "a\nb"] {
        assert!(why(&bench.since(hostile)).contains("there is no revision"), "{hostile:?}");
    }
    assert!(!bench.path("x").exists());
    let missing = DiffBase::Missing("git was not there".into());
    let look = bench.look(&bench.request(DiffSince::Phase, Some(&missing)));
    assert_eq!(why(&look), "the files were not recorded then: git was not there");
    let lost = DiffBase::Tree { tree: "0123456789012345678901234567890123456789".into(), kept_by: RunId::from("run00001") };
    assert_eq!(why(&bench.look(&bench.request(DiffSince::Run, Some(&lost)))), "the files as they were then are no longer in git");
    let look = bench.look(&bench.request(DiffSince::Run, None));
    assert!(why(&look).contains("the workflow did not show changes then"));
}

#[test]
fn without_a_working_tree_nothing_can_be_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let outside = Bench::at(folder);
    let DiffBase::Missing(why) = outside.record() else { panic!("there is no repository") };
    assert!(why.contains("not a git repository"), "{why}");
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), &["init", "--quiet", "--bare"]);
    let bare = Bench::at(folder);
    let DiffBase::Missing(why) = bare.record() else { panic!("a bare repository has no files") };
    assert!(why.contains("work tree"), "{why}");
}

#[test]
fn a_repository_without_commits_and_a_shallow_one_are_compared_as_others_are() {
    let unborn = Bench::unborn();
    unborn.write("a.txt", "a\n");
    let base = unborn.record();
    unborn.write("b.txt", "b\n");
    assert_eq!(files(&unborn.since_base(&base).0), ["added b.txt +1 -0"]);
    assert!(why(&unborn.since("main")).contains("there is no revision main"));

    let origin = Bench::new();
    origin.write("code.txt", "second\n");
    git(origin.dir(), &["commit", "--quiet", "-am", "second"]);
    let folder = tempfile::tempdir().unwrap();
    let url = format!("file://{}", origin.dir().display());
    git(folder.path(), &["clone", "--quiet", "--depth=1", &url, "."]);
    let shallow = Bench::at(folder);
    let base = shallow.record();
    shallow.write("code.txt", "third\n");
    assert_eq!(files(&shallow.since_base(&base).0), ["modified code.txt +1 -1"]);
    assert!(why(&shallow.since("HEAD~1")).contains("git fetch --unshallow"), "{}", why(&shallow.since("HEAD~1")));
}

#[test]
fn submodules_and_other_repositories_are_part_of_the_digest() {
    let inner = Bench::new();
    let bench = Bench::new();
    let url = inner.dir().to_string_lossy().into_owned();
    git(bench.dir(), &["submodule", "--quiet", "add", &url, "module"]);
    git(bench.dir(), &["commit", "--quiet", "-m", "with a module"]);
    let base = bench.record();
    let (clean, _) = bench.since_base(&base);
    assert_eq!(clean.file_count, 0, "{clean:?}");
    bench.write("module/code.txt", "changed inside\n");
    let look = bench.look(&bench.request(DiffSince::Phase, Some(&base)));
    assert!(look.notes[0].contains("the submodule module has uncommitted changes"), "{:?}", look.notes);
    let (dirty, _) = known(look);
    assert_eq!(dirty.files[0].status, ChangeStatus::Dirty);
    bench.write("module/code.txt", "changed again\n");
    assert_ne!(bench.since_base(&base).0.digest, dirty.digest);
    git(&bench.path("module"), &["commit", "--quiet", "-am", "inside"]);
    let (moved, text) = bench.since_base(&base);
    assert_eq!(files(&moved), ["modified module +1 -1"]);
    assert!(text.contains("+Subproject commit "), "{text}");

    git(bench.dir(), &["init", "--quiet", "other"]);
    bench.write("other/x", "x\n");
    let look = bench.look(&bench.request(DiffSince::Phase, Some(&base)));
    assert!(look.notes[0].contains("other is another git repository"), "{:?}", look.notes);
    let (with_other, _) = known(look);
    bench.write("other/x", "y\n");
    assert_ne!(bench.since_base(&base).0.digest, with_other.digest);
}

#[test]
fn a_huge_change_is_cut_and_bound_as_a_whole() {
    let bench = Bench { caps: ObserveLimits { files: 3, patch_bytes: 200 }, ..Bench::new() };
    let base = bench.record();
    for number in 0..5 {
        bench.write(format!("file-{number}"), format!("{number}\n").repeat(100));
    }
    let (change, text) = bench.since_base(&base);
    assert_eq!((change.files.len(), change.file_count, change.added), (3, 5, 500));
    assert!(text.len() <= 200 && text.ends_with('\n'), "{text}");
    assert_eq!(change.not_kept.as_deref(), Some("only its first 200 B are shown"));
    bench.write("file-4", "the last file, which neither the list nor the patch has\n");
    assert_ne!(bench.since_base(&base).0.digest, change.digest);
}

#[test]
fn a_starting_point_survives_garbage_collection_and_rewritten_history() {
    let bench = Bench::new();
    bench.write("staged.txt", "staged\n");
    git(bench.dir(), &["add", "staged.txt"]);
    bench.write("loose.txt", "untracked\n");
    let base = bench.record();
    bench.write("code.txt", "rewritten\n");
    bench.write("staged.txt", "other\n");
    bench.write("loose.txt", "other\n");
    let (before, text) = bench.since_base(&base);
    git(bench.dir(), &["add", "-A"]);
    git(bench.dir(), &["checkout", "--quiet", "--orphan", "new-history"]);
    git(bench.dir(), &["commit", "--quiet", "-m", "another history"]);
    git(bench.dir(), &["branch", "-D", "main"]);
    git(bench.dir(), &["reflog", "expire", "--expire=now", "--all"]);
    git(bench.dir(), &["gc", "--quiet", "--prune=now"]);
    assert_eq!(bench.since_base(&base), (before, text));
}

#[test]
fn a_fork_compares_with_what_its_parent_recorded() {
    let bench = Bench::new();
    bench.write("loose.txt", "untracked\n");
    let base = bench.record();
    bench.write("loose.txt", "changed\n");
    bench.root.prepare_run(&RunId::from("run00002")).unwrap();
    let request = bench.request(DiffSince::Phase, Some(&base));
    let forked = look(&bench.place("run00002"), &request, &bench.caps, &|patch| Ok(patch.to_owned()), &Stop::new());
    assert_eq!(files(&known(forked).0), ["modified loose.txt +1 -1"]);
}

#[test]
fn how_a_change_has_changed_is_shown() {
    let bench = Bench::new();
    let base = bench.record();
    bench.write("code.txt", "approved\n");
    let (then, _) = bench.since_base(&base);
    bench.write("code.txt", "slipped in\n");
    let (now, _) = bench.since_base(&base);
    let patch = since_shown(&bench.place("run00001"), &then, &now, &[], &Stop::new()).unwrap();
    assert!(patch.contains("-approved") && patch.contains("+slipped in"), "{patch}");
}

#[test]
fn content_that_must_not_be_kept_is_bound_by_its_digest() {
    let bench = Bench::new();
    let base = bench.record();
    bench.write("code.txt", "s3cret\n");
    let refuse = |_: &str| Err("contains a secret".to_owned());
    let look = look(&bench.place("run00001"), &bench.request(DiffSince::Phase, Some(&base)), &bench.caps, &refuse, &Stop::new());
    assert_eq!(look.text, None);
    let (change, _) = known(look);
    assert_eq!((change.text, change.not_kept.as_deref()), (None, Some("contains a secret")));
    bench.write("code.txt", "s3cret2\n");
    assert_ne!(bench.since_base(&base).0.digest, change.digest);
}
