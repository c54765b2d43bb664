//! Writes the pages and pictures of `docs/` that follow from the code; its tests compare them. `cargo xtask docs` runs it.
//! With `man DIR`, it writes a manual page for each command instead, for `cargo xtask dist`.

mod svg;

use lockgate_cli::reference::{Background, Screen, definition, pages, screens};
use std::io;
use std::path::{Path, PathBuf};
use svg::Theme;

fn main() -> io::Result<()> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if let [mode, directory] = arguments.as_slice()
        && mode == "man"
    {
        return write_manual(Path::new(directory));
    }
    generated()?.into_iter().try_for_each(|(name, text)| std::fs::write(documents().join(name), text))
}

fn documents() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Writes `lockgate.1`, `lockgate-run.1` and so on.
fn write_manual(directory: &Path) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    clap_mangen::generate_to(definition(), directory)
}

/// Everything that is generated, each with its path in `docs/`.
fn generated() -> io::Result<Vec<(&'static str, String)>> {
    let read = |name: &str| -> io::Result<serde_json::Value> {
        Ok(serde_json::from_str(&std::fs::read_to_string(documents().join(name))?)?)
    };
    let (schema, examples) = (read("reference/json.schema.json")?, read("reference/json.examples.json")?);
    let pictures = screens().into_iter().map(|screen| (screen.file, picture(&screen)));
    Ok(pages(&schema, &examples).into_iter().chain(pictures).collect())
}

fn picture(screen: &Screen) -> String {
    let mut terminal = vt100::Parser::new(screen.rows, screen.columns, 0);
    // A terminal makes a line break of every line feed.
    terminal.process(screen.text.replace("\r\n", "\n").replace('\n', "\r\n").as_bytes());
    let theme = match screen.background {
        Background::Dark => Theme::DARK,
        Background::Light => Theme::LIGHT,
    };
    svg::picture(terminal.screen(), theme)
}

#[test]
fn generated_pages_and_pictures_are_current() {
    let stale = generated().unwrap().into_iter().filter_map(|(name, text)| {
        let committed = std::fs::read_to_string(documents().join(name)).unwrap_or_default();
        let lines = committed.lines().zip(text.lines());
        let line = lines.take_while(|(committed, generated)| committed == generated).count() + 1;
        (committed != text).then(|| format!("docs/{name}:{line}"))
    });
    let stale: Vec<String> = stale.collect();
    assert!(stale.is_empty(), "these do not say what the code says: {stale:#?}\nrun `cargo xtask docs`");
}

#[test]
fn every_command_has_a_manual_page() {
    fn expected(command: &clap::Command, name: &str) -> Vec<String> {
        let visible = command.get_subcommands().filter(|below| !below.is_hide_set());
        let below = visible.flat_map(|below| expected(below, &format!("{name}-{}", below.get_name())));
        std::iter::once(format!("{name}.1")).chain(below).collect()
    }
    let directory = tempfile::tempdir().unwrap();
    write_manual(directory.path()).unwrap();
    let mut expected = expected(&definition(), "lockgate");
    assert!(expected.len() > 20 && expected.contains(&"lockgate-run.1".to_owned()), "{expected:?}");
    let written = std::fs::read_dir(directory.path()).unwrap().flatten();
    let mut written: Vec<String> = written.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    expected.sort();
    written.sort();
    assert_eq!(written, expected);
    let page = std::fs::read_to_string(directory.path().join("lockgate-run.1")).unwrap();
    assert!(page.contains(".TH lockgate-run 1") && page.contains(".SH OPTIONS"), "{page}");
}
