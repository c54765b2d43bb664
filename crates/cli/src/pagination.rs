//! The arguments that select a part of a list.

use crate::print;

/// Which part of the list is shown
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct PageArguments {
    /// List at most this many
    #[arg(long, value_name = "N", default_value = "500", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Continue after the entry that the last page ended with
    #[arg(long, value_name = "ID")]
    pub(crate) after: Option<String>,
}

impl PageArguments {
    pub(crate) fn limit(&self) -> usize {
        self.limit as usize
    }

    /// Whether this is the first page with the default limit.
    pub(crate) fn is_first(&self) -> bool {
        self.after.is_none() && self.limit == 500
    }

    /// Prints the command that shows the next page.
    pub(crate) fn print_more(&self, command: &str, last: &str) {
        let limit = if self.limit == 500 { String::new() } else { format!(" --limit {}", self.limit) };
        print::note(format_args!("there are more; continue with `lockgate {command}{limit} --after {last}`"));
    }
}
