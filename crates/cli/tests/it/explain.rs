//! `lockgate explain`: every error message has a code, and every code has a page.

use crate::project::Project;

const BROKEN: &str = "name: broken\nphases:\n  - id: a\n    taks: []\n    gates: []\n";

/// The code in the brackets of the first error on stderr.
fn code_of(stderr: &str) -> String {
    let (_, rest) = stderr.split_once("error[").unwrap_or_else(|| panic!("no code: {stderr}"));
    rest.split_once("]: ").unwrap().0.to_owned()
}

#[test]
fn the_code_of_an_error_message_is_explained() {
    let project = Project::with(BROKEN);
    let commands: [&[&str]; 5] =
        [&["validate", "flow.yaml"], &["status", "nobody"], &["run", "missing.yaml"], &["frobnicate"], &["explain", "xyz"]];
    for command in commands {
        let output = project.run(command);
        let code = code_of(&output.stderr);
        let page = project.run(&["explain", &code]);
        assert_eq!(page.code, Some(0), "{page:?}");
        assert!(page.stdout.starts_with(&format!("# {code}: ")), "{page:?}");
        assert!(page.stdout.contains("## What to do"), "{page:?}");
        let json = project.json(0, &["explain", "--json", &code]);
        assert_eq!((&json["code"], &json["text"]), (&code.as_str().into(), &page.stdout.as_str().into()));
    }
}

#[test]
fn without_a_code_all_codes_are_listed_with_their_titles() {
    let project = Project::with(BROKEN);
    let listed = project.json(0, &["explain", "--json"]);
    let text = project.run(&["explain"]).stdout;
    for (line, reported) in listed.as_array().unwrap().iter().zip(text.lines()) {
        let (code, title) = reported.split_once(' ').unwrap();
        assert_eq!((line["code"].as_str(), line["title"].as_str()), (Some(code), Some(title.trim())));
    }
    assert_eq!(listed.as_array().unwrap().len(), text.lines().count());
    assert!(text.contains("a key that the format does not have"), "{text}");
}

#[test]
fn an_unknown_code_is_refused_with_a_suggestion() {
    let output = Project::with(BROKEN).run(&["explain", "unkown-keys"]);
    assert_eq!(output.code, Some(4), "{output:?}");
    assert_eq!(
        output.stderr,
        "error[unknown-code]: no error code \"unkown-keys\"\nhelp: did you mean `lockgate explain unknown-key`?\n"
    );
}
