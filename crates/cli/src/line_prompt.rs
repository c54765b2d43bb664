//! Questions that are answered with one typed line, before a run is under way.

use crate::error::CommandError;
use crate::print;
use lockgate_runner::driver::Halt;
use std::io::BufRead;
use tokio::sync::oneshot;

/// Asks, and gives the line that was typed; nothing when there is nobody to type one. Where signals are listened for, use
/// [`ask_unless_halted`]: they would not end this.
pub(crate) fn ask(question: &str) -> Result<Option<String>, CommandError> {
    print::terminal(question);
    Ok(typed())
}

/// The same until a signal asks the program to stop; gives nothing then, too.
pub(crate) async fn ask_unless_halted(question: &str, halt: &Halt) -> Option<String> {
    print::terminal(question);
    let (sender, line) = oneshot::channel();
    // Reading cannot be taken back, so a thread does it that ends with the process.
    std::thread::spawn(move || drop(sender.send(typed())));
    tokio::select! {
        line = line => line.unwrap_or_default(),
        () = halt.halted() => {
            print::terminal("\n");
            None
        }
    }
}

fn typed() -> Option<String> {
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line) {
        Ok(0) | Err(_) => {
            print::terminal("\n");
            None
        }
        Ok(_) => Some(line.trim_end_matches(['\n', '\r']).to_owned()),
    }
}
