//! The settings file, and durations.

use crate::spec::can_be_shown;
use lockgate_engine::digest::Digest;
use lockgate_engine::spec::document;
use lockgate_engine::time::{Timestamp, parse_duration};
use lockgate_runner::config::Config;
use std::path::Path;
use std::time::Duration;

/// Reads settings, and the same text as a duration and as a digest.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(problem) = document::read(text) {
        crate::spec::has_a_position(text, &problem);
    }
    match Config::parse(text, Path::new("config.yaml")) {
        Err(error) => {
            can_be_shown(&error.message);
            error.help.iter().for_each(|help| can_be_shown(help));
            let (line, column) = (error.line.expect("a line"), error.column.expect("a column"));
            let source_line = text.split('\n').nth(line - 1).expect("the line is in the file");
            assert!((1..=source_line.chars().count() + 1).contains(&column), "column {column} of {source_line:?}");
        }
        Ok(config) => {
            if let Some(url) = &config.database {
                // A short text may occur in the settings by chance.
                assert!(url.reveal().len() < 40 || !format!("{config:?}").contains(url.reveal()), "a password is shown");
            }
            assert!(!config.script.timeout.is_zero() && !config.script.condition_timeout.is_zero(), "a time limit is zero");
        }
    }
    duration(text);
    if let Some(digest) = Digest::from_hex(text) {
        assert_eq!(digest.to_string(), text.to_ascii_lowercase());
    }
}

fn duration(text: &str) {
    match parse_duration(text) {
        Ok(duration) => {
            let later = Timestamp::from_millis(0).plus(duration);
            assert!(later >= Timestamp::from_millis(0), "{text:?} is in the past");
            assert_eq!(Ok(duration), parse_duration(&format!(" {text}\n")), "space around {text:?} changes the result");
            if let Some(days) = text.trim().strip_suffix('d').and_then(|days| days.trim().parse::<u32>().ok()) {
                assert_eq!(duration, Duration::from_secs(u64::from(days) * 86_400));
            }
        }
        Err(message) if text.chars().count() <= 200 => can_be_shown(&message.to_string()),
        Err(_) => {}
    }
}

/// Complete settings, and durations.
pub fn seeds() -> Vec<Vec<u8>> {
    let all = "people:\n  require_terminal: false\nmax_parallel: 4\nscript: { timeout: 1m, condition_timeout: PT2S, memory_mb: 64 }\nlimits:\n  stored_outputs_mb: 0\n  log_mb: 8\ndatabase: postgresql://ann:secret@db.example/work\n";
    [all, "1h 30m", "2d", "PT30M", "500ms", "{}", "people: &a { require_terminal: true }\nlimits: *a\n"]
        .iter()
        .map(|seed| seed.as_bytes().to_vec())
        .collect()
}
