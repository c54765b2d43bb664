//! The file functions have access to the output directory and nothing else.

use super::{body, evaluator, expression, fails, json};
use lockgate_runner::script::{Call, Evaluator, FILE_LIMIT, Files, ScriptError};
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tempfile::TempDir;

/// A directory with `out` in it, and files next to it that scripts must not reach.
struct Place {
    root: TempDir,
    evaluator: Evaluator,
}

impl Place {
    fn new() -> Self {
        let root = TempDir::new().unwrap();
        fs::create_dir(root.path().join("out")).unwrap();
        fs::create_dir(root.path().join("outside")).unwrap();
        fs::write(root.path().join("outside/secret.txt"), "secret").unwrap();
        Self { root, evaluator: evaluator() }
    }

    fn out(&self) -> PathBuf {
        self.root.path().join("out")
    }

    fn outside(&self) -> PathBuf {
        self.root.path().join("outside")
    }

    fn with_files(&self, call: Call) -> Call {
        self.expecting(&[], call)
    }

    fn expecting(&self, expected: &[&str], call: Call) -> Call {
        let expected = expected.iter().map(|path| (*path).to_owned()).collect();
        Call { files: Some(Files { output_dir: self.out(), feature: Some("login".into()), expected }), ..call }
    }

    async fn json(&self, source: &str) -> String {
        json(&self.evaluator, self.with_files(body(source))).await
    }

    async fn error(&self, source: &str) -> String {
        match fails(&self.evaluator, self.with_files(body(source))).await {
            ScriptError::Thrown { message, .. } => message,
            other => panic!("{source}: {other:?}"),
        }
    }

    fn nothing_changed_outside(&self) {
        assert_eq!(names(&self.outside()), ["secret.txt"]);
        assert_eq!(fs::read_to_string(self.outside().join("secret.txt")).unwrap(), "secret");
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn files_are_written_and_read() {
    let place = Place::new();
    let call = body(
        "writeFile('plan.md', 'é'); writeFile('a/b/c.json', {x: [1]}); writeFile('plan.md', 'again'); writeFile('./a/../n', 7);
         return [readFile('plan.md'), readFile('a/b/c.json'), readFile({path: 'n'}), readFiles(['plan.md', 'none', 'a/none'])]",
    );
    let returned = place.evaluator.call(place.with_files(call)).await.unwrap();
    let expected = r#"["again","{\n  \"x\": [\n    1\n  ]\n}\n","7\n",{"plan.md":"again","none":null,"a/none":null}]"#;
    assert_eq!(returned.json, expected);
    assert_eq!(returned.wrote, ["plan.md", "a/b/c.json", "n"]);
    assert_eq!(names(&place.out()), ["a", "n", "plan.md"]);
    assert_eq!(names(&place.out().join("a/b")), ["c.json"]);
}

#[tokio::test]
async fn files_exist_and_contains_todos_inspect_files() {
    let place = Place::new();
    fs::write(place.out().join("done.md"), "all done").unwrap();
    fs::write(place.out().join("open.md"), "one TODO left").unwrap();
    symlink("nowhere", place.out().join("dangling")).unwrap();
    let table = [
        ("return files_exist('done.md')", "true"),
        ("return files_exist(['done.md', 'open.md'])", "true"),
        ("return files_exist(['done.md', 'none.md'])", "false"),
        ("return files_exist(['done.md/x'])", "false"),
        ("return files_exist('dangling')", "false"),
        ("return files_exist([])", "true"),
        ("return contains_todos('done.md')", "false"),
        ("return contains_todos([{path: 'done.md', size_bytes: 8}, {path: 'open.md'}])", "true"),
        ("return contains_todos([])", "false"),
    ];
    for (source, expected) in table {
        assert_eq!(place.json(source).await, expected, "{source}");
    }
    let asked = place.with_files(expression("files_exist(['done.md']) && !contains_todos('done.md')"));
    assert!(place.evaluator.call(asked).await.unwrap().truthy);
}

#[tokio::test]
async fn phase_outputs_are_listed_and_measured() {
    let place = Place::new();
    fs::create_dir_all(place.out().join("phase1/deep")).unwrap();
    fs::create_dir_all(place.out().join("bare/empty")).unwrap();
    for (path, text) in [("phase1/b.md", "b"), ("phase1/a.md", "a"), ("phase1/deep/c.md", "c"), ("z.md", ""), ("phase1-x", "x")] {
        fs::write(place.out().join(path), text).unwrap();
    }
    fs::write(place.out().join(".lockgate-1-1.tmp"), "being written").unwrap();
    symlink("b.md", place.out().join("phase1/link")).unwrap();
    symlink("../phase1", place.out().join("phase1/circle")).unwrap();
    symlink("../outside", place.out().join("outside")).unwrap();
    symlink("../outside/secret.txt", place.out().join("secret")).unwrap();
    let phase1 = r#"["phase1/a.md","phase1/b.md","phase1/deep/c.md","phase1/link"]"#;
    let all = r#"["phase1-x","phase1/a.md","phase1/b.md","phase1/deep/c.md","phase1/link","z.md"]"#;
    let table = [
        ("return analyzeFiles('phase1').files", phase1),
        ("return analyzeFiles('./login/phase1/').files", phase1),
        ("return analyzeFiles({path: 'phase1'}).files", phase1),
        ("return analyzeFiles().files", all),
        ("return analyzeFiles('.').files", all),
        ("return analyzeFiles('login').files", all),
        ("return analyzeFiles(null).files", all),
        ("return [analyzeFiles('none').files, analyzeFiles('bare').files, analyzeFiles('z.md').files]", "[[],[],[]]"),
        ("return readFiles(analyzeFiles('phase1/deep').files)", r#"{"phase1/deep/c.md":"c"}"#),
        ("return analyzeFiles('phase1').coverage", "100"),
    ];
    for (source, expected) in table {
        assert_eq!(place.json(source).await, expected, "{source}");
    }
    for dir in ["outside", "..", "/etc"] {
        assert!(place.error(&format!("return analyzeFiles({dir:?})")).await.contains("leads out"), "{dir}");
    }

    let coverage: [(&[&str], &str); 6] = [
        (&["phase1/a.md", "login/phase1/b.md"], "100"),
        (&["phase1/a.md", "none.md", "none/x"], "33"),
        (&["phase1/a.md", "phase1/b.md", "z.md"], "67"),
        (&["none.md", "z.md", "bare"], "0"),
        (&["phase1", "bare"], "50"),
        (&[["phase1"; 300].as_slice(), &["none"]].concat(), "99"),
    ];
    for (expected, percent) in coverage {
        let call = place.expecting(expected, body("return analyzeFiles('phase1').coverage"));
        assert_eq!(json(&place.evaluator, call).await, percent, "{expected:?}");
    }
}

#[tokio::test]
async fn gaps_are_missing_empty_or_unfinished_files() {
    let place = Place::new();
    fs::create_dir_all(place.out().join("folder/deep")).unwrap();
    fs::create_dir(place.out().join("bare")).unwrap();
    for (path, text) in [("done.md", "all done"), ("open.md", "one TODO left"), ("empty.md", ""), ("folder/deep/x", "FIXME")] {
        fs::write(place.out().join(path), text).unwrap();
    }
    let large = fs::File::create(place.out().join("large")).unwrap();
    large.set_len(FILE_LIMIT as u64 + 1).unwrap();
    let table = [
        ("'done.md'", "[]"),
        ("[]", "[]"),
        ("[{path: 'done.md', size_bytes: 8}, 'large']", "[]"),
        (
            "['login/none.md', 'empty.md', {path: 'open.md'}, 'done.md', 'bare']",
            r#"["login/none.md is missing","empty.md is empty","open.md contains TODO markers","bare is empty"]"#,
        ),
        ("'folder'", r#"["folder contains TODO markers"]"#),
        ("", r#"["open.md contains TODO markers","none/x is missing"]"#),
        ("undefined", r#"["open.md contains TODO markers","none/x is missing"]"#),
    ];
    for (given, expected) in table {
        let call = place.expecting(&["done.md", "open.md", "none/x"], body(&format!("return identifyGaps({given})")));
        assert_eq!(json(&place.evaluator, call).await, expected, "{given}");
    }
    assert_eq!(place.json("return identifyGaps()").await, "[]");
    assert_eq!(place.error("identifyGaps([{name: 'x'}])").await, "TypeError: identifyGaps needs a path, which must be a string");
    fs::remove_dir_all(place.out()).unwrap();
    assert_eq!(
        place.json("return [identifyGaps('x'), analyzeFiles()]").await,
        r#"[["x is missing"],{"coverage":100,"files":[]}]"#
    );
}

#[tokio::test]
async fn file_errors_name_the_file() {
    let place = Place::new();
    fs::create_dir(place.out().join("folder")).unwrap();
    fs::write(place.out().join("bytes"), b"a\xffb").unwrap();
    fs::File::create(place.out().join("large")).unwrap().set_len(FILE_LIMIT as u64 + 1).unwrap();
    symlink("dangling", place.out().join("dangling")).unwrap();
    let large = FILE_LIMIT + 1;
    let table = [
        ("readFile('none.md')".to_owned(), r#"Error: readFile: "none.md" does not exist in the output directory"#),
        ("readFile('folder')".into(), r#"Error: readFile: "folder" is a directory"#),
        ("readFile('large')".into(), r#"Error: readFile: "large": it is larger than 16777216 bytes"#),
        ("readFile('')".into(), r#"Error: readFile: "" is not a path"#),
        ("readFile()".into(), "TypeError: readFile needs a path, which must be a string"),
        ("readFile(7)".into(), "TypeError: readFile needs a path, which must be a string"),
        ("contains_todos('none.md')".into(), r#"Error: contains_todos: "none.md" does not exist in the output directory"#),
        ("writeFile('folder', '')".into(), r#"Error: writeFile: "folder" is a directory"#),
        ("writeFile('.', '')".into(), r#"Error: writeFile: "." is a directory"#),
        ("writeFile('x')".into(), "TypeError: writeFile needs a string, or a value that can be written as JSON"),
        ("writeFile('x', () => 1)".into(), "TypeError: writeFile needs a string, or a value that can be written as JSON"),
        (format!("writeFile('x', 'x'.repeat({large}))"), "RangeError: writeFile: more than 16777216 bytes"),
    ];
    for (source, expected) in table {
        let mut call = place.with_files(body(&source));
        call.limits.memory = 128 << 20;
        match fails(&place.evaluator, call).await {
            ScriptError::Thrown { message, line, .. } => assert_eq!((message.as_str(), line), (expected, Some(1)), "{source}"),
            other => panic!("{source}: {other:?}"),
        }
    }
    assert_eq!(place.json("return readFile('bytes')").await, "\"a\u{fffd}b\"");
    assert_eq!(names(&place.out()), ["bytes", "dangling", "folder", "large"]);
}

#[tokio::test]
async fn a_pipe_does_not_block_the_script() {
    let place = Place::new();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        place.out().join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    assert_eq!(place.error("readFile('pipe')").await, r#"Error: readFile: "pipe": it is not a regular file"#);
}

#[tokio::test]
async fn the_feature_name_means_the_output_directory_unless_such_a_directory_exists() {
    let place = Place::new();
    assert_eq!(place.json("writeFile('login/plan.md', 'x'); return readFile('plan.md')").await, "\"x\"");
    assert_eq!(names(&place.out()), ["plan.md"]);
    fs::create_dir(place.out().join("login")).unwrap();
    assert_eq!(place.json("writeFile('login/plan.md', 'y'); return readFile('plan.md')").await, "\"x\"");
    assert_eq!(names(&place.out()), ["login", "plan.md"]);
}

#[tokio::test]
async fn an_absolute_path_inside_the_output_directory_is_accepted() {
    let place = Place::new();
    let path = place.out().join("a/plan.md");
    assert_eq!(place.json(&format!("writeFile({path:?}, 'x'); return readFile('a/plan.md')")).await, "\"x\"");
}

#[tokio::test]
async fn the_first_write_creates_the_output_directory() {
    let place = Place::new();
    fs::remove_dir(place.out()).unwrap();
    assert_eq!(place.json("return [files_exist('x'), readFiles(['x'])]").await, r#"[false,{"x":null}]"#);
    assert!(place.error("writeFile('../x', '')").await.contains("leads out"));
    assert!(!place.out().exists());
    assert_eq!(place.json("writeFile('a/x', '1'); return readFile('a/x')").await, "\"1\"");
}

#[tokio::test]
async fn no_path_escapes_the_output_directory() {
    let place = Place::new();
    let (out, outside) = (place.out(), place.outside());
    symlink("../outside/secret.txt", out.join("file")).unwrap();
    symlink(outside.join("secret.txt"), out.join("absolute")).unwrap();
    symlink("../outside", out.join("folder")).unwrap();
    symlink("/", out.join("slash")).unwrap();
    symlink("folder", out.join("twice")).unwrap();
    let secret = outside.join("secret.txt").display().to_string();
    let paths = [
        "../outside/secret.txt",
        "a/../../outside/secret.txt",
        "./../outside/secret.txt",
        "login/../../outside/secret.txt",
        "..",
        "../out/../outside/secret.txt",
        "/etc/passwd",
        secret.as_str(),
        "file",
        "absolute",
        "folder/secret.txt",
        "twice/secret.txt",
        "slash/etc/passwd",
        "folder/../../outside/secret.txt",
    ];
    for path in paths {
        for call in [
            format!("return readFile({path:?})"),
            format!("return readFiles([{path:?}])"),
            format!("return files_exist([{path:?}])"),
            format!("return contains_todos({path:?})"),
            format!("return identifyGaps([{path:?}])"),
        ] {
            let error = place.error(&call).await;
            assert!(error.contains("leads out of the output directory"), "{call}: {error}");
        }
    }
    let above = format!("{}/../outside/secret.txt", out.display());
    assert!(place.error(&format!("return readFile({above:?})")).await.contains("leads out"));
    place.nothing_changed_outside();
}

#[tokio::test]
async fn nothing_is_written_outside_the_output_directory() {
    let place = Place::new();
    let (out, outside) = (place.out(), place.outside());
    symlink("../outside", out.join("folder")).unwrap();
    symlink("../outside/new.txt", out.join("dangling-dir")).unwrap();
    let new = outside.join("new.txt").display().to_string();
    for path in ["../outside/new.txt", new.as_str(), "folder/new.txt", "folder/sub/new.txt", "dangling-dir/new.txt"] {
        let error = place.error(&format!("writeFile({path:?}, 'x')")).await;
        assert!(error.contains("leads out of the output directory"), "{path}: {error}");
    }
    // A symlink in place of the file itself is replaced, not followed.
    symlink("../outside/secret.txt", out.join("file")).unwrap();
    symlink("../outside/new.txt", out.join("dangling")).unwrap();
    assert_eq!(place.json("writeFile('file', 'mine'); writeFile('dangling', 'mine'); return readFile('file')").await, "\"mine\"");
    assert!(fs::symlink_metadata(out.join("dangling")).unwrap().is_file());
    place.nothing_changed_outside();
    assert_eq!(names(&out), ["dangling", "dangling-dir", "file", "folder"]);
}

#[tokio::test]
async fn a_symlink_swapped_in_during_a_write_is_not_followed() {
    let place = Place::new();
    let stop = Arc::new(AtomicBool::new(false));
    let swapping = std::thread::spawn({
        let (stop, sub, kept, outside) = (Arc::clone(&stop), place.out().join("sub"), place.out().join("kept"), place.outside());
        move || {
            fs::create_dir(&sub).unwrap();
            while !stop.load(Ordering::Relaxed) {
                // Each step may fail because the script recreated the directory in between; the next round repairs that.
                fs::rename(&sub, &kept).ok();
                symlink(&outside, &sub).ok();
                fs::remove_file(&sub).ok();
                fs::rename(&kept, &sub).ok();
            }
        }
    });
    // Until it has seen the directory and the symlink often enough.
    let source = "let [written, refused] = [0, 0];
        while (written < 100 || refused < 30) {
            try { writeFile('sub/f' + written, 'x'); written++ } catch (error) { refused += error.message.includes('leads out') }
        }";
    let mut call = place.with_files(body(source));
    call.limits.time = Duration::from_secs(30);
    let outcome = place.evaluator.call(call).await;
    stop.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
    outcome.unwrap();
    place.nothing_changed_outside();
}

#[tokio::test]
async fn a_condition_without_files_has_no_file_functions() {
    let evaluator = evaluator();
    for call in [
        "readFile('x')",
        "readFiles(['x'])",
        "writeFile('x', '')",
        "files_exist('x')",
        "contains_todos('x')",
        "analyzeFiles('x')",
        "identifyGaps('x')",
    ] {
        let name = call.split('(').next().unwrap();
        match fails(&evaluator, expression(call)).await {
            ScriptError::Thrown { message, .. } => assert_eq!(message, format!("Error: {name} is not available in a condition")),
            other => panic!("{call}: {other:?}"),
        }
    }
}
