//! Observes work starting and ending on both hosts, and knows what must not happen.

use super::lease_store::Server;
use super::plan::Plan;
use lockgate_engine::id::{DriverId, RunId, TaskKey};
use lockgate_engine::run::event::Event;
use lockgate_engine::run::hash_chain::SealedCommit;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// How long before its lease ends a live host stops its tasks. A frozen one cannot.
const ENDING: Duration = Duration::from_secs(6);

/// How long a host that was frozen may take to notice that its lease has lapsed, and to stop its tasks.
const NOTICING: Duration = Duration::from_secs(8);

pub(super) struct Watch {
    pub(super) server: Arc<Server>,
    plan: Plan,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: BTreeMap<String, Vec<Running>>,
    started: BTreeSet<(TaskKey, u32)>,
    broken: Option<String>,
}

#[derive(Clone)]
struct Running {
    host: usize,
    driver: DriverId,
}

impl Watch {
    pub(super) fn new(plan: &Plan, server: &Arc<Server>) -> Arc<Self> {
        Arc::new(Self { server: server.clone(), plan: plan.clone(), state: Mutex::default() })
    }

    fn breaks(&self, claim: String) {
        self.state.lock().unwrap().broken.get_or_insert(format!("{claim} (after {:?})", self.server.start.elapsed()));
    }

    /// The first violated invariant.
    pub(super) fn broken(&self) -> Option<String> {
        self.state.lock().unwrap().broken.clone()
    }

    /// An external effect starts.
    pub(super) fn effect_starts(&self, run: &RunId, host: usize, driver: &DriverId, what: &str) {
        if self.server.owner(run).as_ref() != Some(driver) {
            self.breaks(format!("{what} starts on host {host}, and the other one has claimed the run"));
        }
        if self.server.expires(driver).is_none_or(|expires| expires <= Instant::now()) {
            self.breaks(format!("{what} starts on host {host} under a lease that has expired"));
        }
    }

    pub(super) fn task_starts(&self, key: &TaskKey, attempt: u32, host: usize, driver: &DriverId) {
        let address = key.address();
        let mut state = self.state.lock().unwrap();
        let again = !state.started.insert((key.clone(), attempt));
        let running = state.running.entry(address.clone()).or_default();
        let others = running.clone();
        running.push(Running { host, driver: driver.clone() });
        drop(state);
        if again {
            self.breaks(format!("attempt {attempt} of {address} starts a second time, on host {host}"));
        }
        for other in others {
            if !self.could_not_end(&other) {
                self.breaks(format!("{address} starts on host {host} while it runs on host {}", other.host));
            }
        }
    }

    pub(super) fn task_ends(&self, key: &TaskKey, driver: &DriverId) {
        let mut state = self.state.lock().unwrap();
        let running = state.running.entry(key.address()).or_default();
        if let Some(position) = running.iter().position(|running| running.driver == *driver) {
            running.remove(position);
        }
    }

    /// Whether a host was frozen when its lease ended, or was thawed only just now.
    fn could_not_end(&self, running: &Running) -> bool {
        let expired = self.server.expires(&running.driver).unwrap_or(self.server.start);
        let (expired, now) = (expired.duration_since(self.server.start), self.server.start.elapsed());
        let freezes = &self.plan.hosts[running.host].freezes;
        freezes.iter().any(|span| span.from < expired && span.to + NOTICING > now && span.to > expired.saturating_sub(ENDING))
    }
}

/// According to the history, finished work never runs again.
pub(super) fn check_history(commits: &[SealedCommit]) -> Result<(), String> {
    let mut finished = BTreeSet::new();
    for entry in commits.iter().flat_map(|commit| commit.open().expect("it was written").entries) {
        match entry.event {
            Event::TaskFinished { key, .. } if !finished.insert(key.clone()) => {
                return Err(format!("{} finished twice", key.address()));
            }
            Event::TaskStarted { key, .. } if finished.contains(&key) => {
                return Err(format!("{} started after it had finished", key.address()));
            }
            _ => {}
        }
    }
    Ok(())
}
