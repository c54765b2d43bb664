//! Simulation of two hosts that share a store with leases: each drives the run whenever it can claim it, is sometimes frozen
//! or cut off from the store, and has its own clock. In every case, nothing starts under a lost lease, no task runs on two
//! hosts, and the run completes.
//!
//! `LOCKGATE_PLANS` sets the number of plans (1,500 by default), `LOCKGATE_FIRST_SEED` the first seed, `LOCKGATE_SEED` runs a
//! single one, `LOCKGATE_SOAK_MINUTES` limits the time.

mod host;
mod lease_store;
mod performer;
mod plan;
mod watch;

use plan::{Leases, Plan};
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

/// Seeds that once violated an invariant. They are always tried first.
const KEPT: &[u64] = &[];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// The violation in a plan, if any.
fn broken(plan: &Plan) -> Option<String> {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| runtime().block_on(host::play(plan))));
    match outcome {
        Ok(Ok(())) => None,
        Ok(Err(claim)) => Some(claim),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            Some(text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default())
        }
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "soak shows how much was done")]
fn nothing_starts_under_a_lost_lease() {
    let plans = number("LOCKGATE_PLANS").unwrap_or(1_500);
    let until = number("LOCKGATE_SOAK_MINUTES").map(|minutes| Instant::now() + Duration::from_secs(minutes * 60));
    let first = number("LOCKGATE_FIRST_SEED").unwrap_or(0);
    let seeds: Vec<u64> = match number("LOCKGATE_SEED") {
        Some(seed) => vec![seed],
        None => KEPT.iter().copied().chain(first..first.saturating_add(plans)).collect(),
    };
    let mut simulated = 0_u64;
    for seed in seeds {
        if until.is_some_and(|until| Instant::now() > until) {
            break;
        }
        simulated += 1;
        let plan = Plan::from_seed(seed);
        if let Some(claim) = broken(&plan) {
            panic!("seed {seed} breaks a claim: {claim}\n{plan:#?}\nkeep the seed in KEPT");
        }
    }
    println!("{simulated} plans of two drivers simulated, from seed {first} on");
}

/// The invariants can fail: hosts that ignore their leases violate them soon.
#[test]
fn hosts_that_ignore_their_leases_are_detected() {
    let mut ignoring = (0..200).map(|seed| Plan { leases: Leases::Ignored, ..Plan::from_seed(seed) });
    assert!(ignoring.any(|plan| broken(&plan).is_some()), "no plan breaks a claim");
}
