//! Simulation: a seed generates a plan of work, people and faults. The real drive loop executes it on an in-memory store, is
//! dropped at any await, and meets a store that fails before or after it commits and a clock that jumps. In every case the
//! invariants hold, and the run ends or waits. A table shows how often each fact occurred, alone and in combination.
//!
//! `LOCKGATE_PLANS` sets the number of plans (10,000 by default), `LOCKGATE_FIRST_SEED` the first seed, `LOCKGATE_SEED` runs
//! a single one, `LOCKGATE_SOAK_MINUTES` limits the time.

mod coverage;
mod execute;
mod invariants;
mod liveness;
mod people;
mod plan;
mod runtime;

use coverage::{Coverage, Fact};
use lockgate_engine::time::Timestamp;
use plan::Plan;
use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Seeds that once violated an invariant. They are always tried first.
const KEPT: &[u64] = &[48, 198, 254, 779];

/// After this many plans, every combination must have occurred.
const ENOUGH: u64 = 10_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// The facts that occurred in a plan, or the violated invariant.
fn executed(plan: &Plan) -> Result<BTreeSet<Fact>, String> {
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| execute::execute(plan)));
    outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        Err(text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default())
    })
}

/// Shrinks a failing plan for as long as it still fails.
fn shrunk(mut plan: Plan, mut claim: String) -> (Plan, String) {
    'smaller: loop {
        for candidate in plan.smaller() {
            if let Err(still) = executed(&candidate) {
                (plan, claim) = (candidate, still);
                continue 'smaller;
            }
        }
        return (plan, claim);
    }
}

/// Executes plans on all processors until an invariant is violated or time is up; returns the coverage and the violation.
fn play_all(seeds: impl Iterator<Item = u64> + Send, until: Option<Instant>) -> (Coverage, Option<(u64, String)>) {
    let (seeds, coverage, broken) = (Mutex::new(seeds), Mutex::new(Coverage::default()), Mutex::new(None));
    let work = || {
        while broken.lock().unwrap().is_none() && until.is_none_or(|until| Instant::now() <= until) {
            let Some(seed) = seeds.lock().unwrap().next() else { return };
            match executed(&Plan::from_seed(seed)) {
                Ok(facts) => coverage.lock().unwrap().add(&facts),
                Err(claim) => drop(broken.lock().unwrap().get_or_insert((seed, claim))),
            }
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    (coverage.into_inner().unwrap(), broken.into_inner().unwrap())
}

#[test]
#[expect(clippy::print_stdout, reason = "soak shows how much was done")]
fn invariants_hold_in_random_simulations() {
    let single = number("LOCKGATE_SEED");
    let plans = number("LOCKGATE_PLANS").unwrap_or(10_000);
    let until = number("LOCKGATE_SOAK_MINUTES").map(|minutes| Instant::now() + Duration::from_secs(minutes * 60));
    let first = number("LOCKGATE_FIRST_SEED").unwrap_or(0);
    let seeds: Box<dyn Iterator<Item = u64> + Send> = match single {
        Some(seed) => Box::new(std::iter::once(seed)),
        None => Box::new(KEPT.iter().copied().chain(first..first.saturating_add(plans))),
    };
    let (coverage, broken) = play_all(seeds, until);
    if let Some((seed, claim)) = broken {
        let (plan, claim) = shrunk(Plan::from_seed(seed), claim);
        panic!("seed {seed} breaks a claim: {claim}\nthe smallest plan that does: {plan:#?}\nkeep the seed in KEPT");
    }
    let simulated = coverage.plans();
    println!("{simulated} plans simulated, {} kept and the rest from seed {first} on", KEPT.len());
    println!("{}", coverage.table());
    if simulated >= ENOUGH {
        assert_eq!(coverage.missing(), Vec::<String>::new(), "each of these occurs");
    }
}

#[test]
fn a_plan_is_derived_from_its_seed() {
    assert_eq!(Plan::from_seed(7), Plan::from_seed(7));
    assert_ne!(Plan::from_seed(7), Plan::from_seed(8));
}

/// The check works: a timer that fired and is waited for again without progress is detected.
#[test]
#[should_panic(expected = "a turn changes nothing and does not wait")]
fn a_turn_without_progress_is_detected() {
    let (mut turns, due) = (liveness::Turns::default(), Timestamp::from_millis(0));
    for _ in 0..10 {
        turns.waits(due);
        turns.comes(due);
    }
}

/// The invariants can fail: a history in which finished work runs again is detected.
#[test]
fn a_broken_history_is_detected() {
    assert!(invariants::self_test().is_err());
}
