//! Writes the pages and pictures of `docs/` that follow from the code; its tests compare them. `cargo xtask docs` runs it.

mod svg;

use lockgate_cli::reference::{Background, Screen, pages, screens};
use std::io;
use std::path::{Path, PathBuf};
use svg::Theme;

fn main() -> io::Result<()> {
    generated()?.into_iter().try_for_each(|(name, text)| std::fs::write(documents().join(name), text))
}

fn documents() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
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
