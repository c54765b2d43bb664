//! Questions that are answered with one typed line, before a run is under way.

use crate::print;
use crate::trouble::Trouble;
use std::io::BufRead;

/// Asks, and gives the line that was typed; nothing when there is nobody to type one.
pub(crate) fn ask(question: &str) -> Result<Option<String>, Trouble> {
    print::terminal(question);
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line) {
        Ok(0) | Err(_) => {
            print::terminal("\n");
            Ok(None)
        }
        Ok(_) => Ok(Some(line.trim_end_matches(['\n', '\r']).to_owned())),
    }
}
