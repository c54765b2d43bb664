//! Questions that are answered with one typed line, outside the live display.

use crate::error::CommandError;
use crate::print;
use lockgate_runner::driver::Halt;
use std::io::BufRead;
use tokio::sync::oneshot;

/// Asks, and returns the typed line; `None` at the end of input. If signals are caught, use [`ask_unless_halted`], because they do not
/// interrupt this.
pub(crate) fn ask(question: &str) -> Result<Option<String>, CommandError> {
    print::terminal(question);
    Ok(typed())
}

/// Like [`ask`], but also returns `None` when a signal asks the program to stop.
pub(crate) async fn ask_unless_halted(question: &str, halt: &Halt) -> Option<String> {
    print::terminal(question);
    let (sender, line) = oneshot::channel();
    // A blocking read cannot be cancelled, so it happens on a thread that ends with the process.
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
