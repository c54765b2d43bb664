//! Which of several open holds is being asked about.

use lockgate_engine::id::HoldId;
use std::fmt;
use tokio::sync::watch;

/// Which of several questions one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// Counted from 1.
    pub(crate) at: usize,
    pub(crate) of: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} of {}", self.at, self.of)
    }
}

/// The holds that are asked about one after another: some are done, and those that are open now are to come.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    open: watch::Receiver<Vec<(HoldId, u32)>>,
    done: Vec<(HoldId, u32)>,
}

impl Queue {
    /// Counts holds as they open and close.
    pub(crate) fn of(open: watch::Receiver<Vec<(HoldId, u32)>>) -> Self {
        Self { open, done: Vec::new() }
    }

    /// Takes note that a hold is done with, also where the list of open ones still has it.
    pub(crate) fn pass(&mut self, hold: &HoldId, revision: u32) {
        self.done.push((hold.clone(), revision));
    }

    /// Counts from 1 again, because no hold was left.
    pub(crate) fn restart(&mut self) {
        self.done.clear();
    }

    /// Which one is asked about now.
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
        assert_eq!(queue.position().to_string(), "2 of 3", "also before the list is without it");
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
