//! The order of open holds while a person answers them.

use lockgate_engine::id::HoldId;
use std::fmt;
use tokio::sync::watch;

/// The position of a question among several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// From 1.
    pub(crate) at: usize,
    pub(crate) of: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} of {}", self.at, self.of)
    }
}

/// The holds that are asked about one after another: those already passed, and those that are open.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    open: watch::Receiver<Vec<(HoldId, u32)>>,
    done: Vec<(HoldId, u32)>,
}

impl Queue {
    /// Follows holds as they open and close.
    pub(crate) fn of(open: watch::Receiver<Vec<(HoldId, u32)>>) -> Self {
        Self { open, done: Vec::new() }
    }

    /// Records that a hold is done, even if the list of open holds still contains it.
    pub(crate) fn pass(&mut self, hold: &HoldId, revision: u32) {
        self.done.push((hold.clone(), revision));
    }

    /// Restarts the count, because no hold is left.
    pub(crate) fn restart(&mut self) {
        self.done.clear();
    }

    /// The position of the current hold.
    pub(super) fn position(&self) -> Position {
        let left = self.open.borrow().iter().filter(|open| !self.done.contains(open)).count();
        Position { at: self.done.len() + 1, of: self.done.len() + left.max(1) }
    }

    /// Waits until another hold has opened or closed.
    pub(super) async fn changed(&mut self) {
        if self.open.changed().await.is_err() {
            std::future::pending().await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_are_counted_as_they_open_and_close() {
        let hold = |id: &str| (HoldId::from(id), 1);
        let (sender, open) = watch::channel(vec![hold("a")]);
        let mut queue = Queue::of(open);
        assert_eq!(queue.position().to_string(), "1 of 1");
        sender.send_replace(vec![hold("a"), hold("b"), hold("c")]);
        assert_eq!(queue.position().to_string(), "1 of 3");
        queue.pass(&hold("a").0, 1);
        assert_eq!(queue.position().to_string(), "2 of 3", "even before it is removed from the list");
        sender.send_replace(vec![hold("b"), hold("c")]);
        assert_eq!(queue.position().to_string(), "2 of 3");
        sender.send_replace(vec![hold("b")]);
        assert_eq!(queue.position().to_string(), "2 of 2", "one was answered elsewhere");
        queue.pass(&hold("b").0, 1);
        queue.restart();
        sender.send_replace(vec![hold("d")]);
        assert_eq!(queue.position().to_string(), "1 of 1");
    }
}
