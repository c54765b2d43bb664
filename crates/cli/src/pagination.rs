//! A part of a list that may be long: how many entries, and after which one.

use crate::print;
use lockgate_store::{Cursor, Page};

/// Which part of the list is shown
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct PageArguments {
    /// How many are listed at most
    #[arg(long, value_name = "N", default_value = "500", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Goes on after this one, which the list before ended with
    #[arg(long, value_name = "ID")]
    pub(crate) after: Option<String>,
}

impl PageArguments {
    /// The part to be read: one more than is shown, so that it is known whether there are more.
    pub(crate) fn from(&self, after: Option<Cursor>) -> Page {
        Page { after, limit: self.limit as usize + 1 }
    }

    /// What is shown of what was read, and whether there is more.
    pub(crate) fn cut<T>(&self, mut entries: Vec<T>) -> (Vec<T>, bool) {
        let more = entries.len() > self.limit as usize;
        entries.truncate(self.limit as usize);
        (entries, more)
    }

    /// Tells how the list goes on.
    pub(crate) fn print_more(&self, command: &str, last: &str) {
        let limit = if self.limit == 500 { String::new() } else { format!(" --limit {}", self.limit) };
        print::note(format_args!("there are more: `lockgate {command}{limit} --after {last}` goes on"));
    }
}
