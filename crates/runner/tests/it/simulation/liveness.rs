//! Liveness: every iteration of the loop makes progress or waits, and every process ends or waits within a bounded number of
//! iterations.

use super::runtime::Outside;
use lockgate_engine::run::Run;
use lockgate_engine::run::event::Entry;
use lockgate_engine::time::Timestamp;
use lockgate_runner::driver::Listener;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How often something may be performed again without progress: a clock that jumps back makes a deadline wait again.
const TRIES: u32 = 3;

/// More polls than any process needs until it has to wait or end.
pub(super) const POLLS: u32 = 20_000;

const COMMITS: u64 = 600;

/// The iterations of one process's loop.
#[derive(Debug, Default)]
pub(super) struct Turns {
    commits: u64,
    asked: u64,
    performed: BTreeMap<String, Performed>,
    come: BTreeMap<Timestamp, Performed>,
}

#[derive(Debug)]
struct Performed {
    at: u64,
    times: u32,
}

impl Turns {
    pub(super) fn start(&mut self) {
        self.performed.clear();
        self.come.clear();
    }

    /// An effect is performed. Performing it again without progress in between is a wasted iteration.
    pub(super) fn performs(&mut self, effect: String) {
        let commits = self.commits;
        let known = self.performed.entry(effect.clone()).or_insert(Performed { at: commits, times: 0 });
        if known.at != commits {
            *known = Performed { at: commits, times: 0 };
        }
        known.times += 1;
        assert!(known.times <= TRIES, "a turn changes nothing and does not wait: {effect}");
    }

    /// A timer is waited for. Waiting for it again after it fired, without progress in between, is a wasted iteration.
    pub(super) fn waits(&mut self, due: Timestamp) {
        let commits = self.commits;
        let Some(come) = self.come.get_mut(&due).filter(|come| come.at == commits) else { return };
        come.times += 1;
        assert!(come.times < TRIES, "a turn changes nothing and does not wait: {due} has come");
    }

    pub(super) fn comes(&mut self, due: Timestamp) {
        let commits = self.commits;
        let come = self.come.entry(due).or_insert(Performed { at: commits, times: 0 });
        if come.at != commits {
            *come = Performed { at: commits, times: 0 };
        }
    }

    /// People are asked; returns how often they were asked before.
    pub(super) fn asks(&mut self) -> u64 {
        self.asked += 1;
        assert!(self.asked < COMMITS, "every plan ends: people were asked {COMMITS} times");
        self.asked
    }

    fn commits(&mut self) {
        self.commits += 1;
        assert!(self.commits < COMMITS, "every plan ends: it has made {COMMITS} commits");
    }
}

pub(super) struct Counting(pub(super) Arc<Outside>);

impl Listener for Counting {
    fn committed(&mut self, _: &Run, _: &[Entry]) {
        self.0.turns.lock().unwrap().commits();
    }
}
