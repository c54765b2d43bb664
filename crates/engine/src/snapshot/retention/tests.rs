//! Retention, against cases and a plain model.

use super::*;
use crate::run::index::NamedVariants as _;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn snapshot(seq: u64, trigger: Trigger, phase: &str) -> SnapshotInfo {
    SnapshotInfo {
        id: SnapshotId(format!("CP-{phase}-{seq}")),
        trigger,
        phase: Some(PhaseId::from(phase)),
        seq,
        at: Timestamp::from_millis(i64::try_from(seq).unwrap_or(i64::MAX)),
        bytes: 10,
        protected: None,
    }
}

fn pinned(snapshot: SnapshotInfo) -> SnapshotInfo {
    SnapshotInfo { protected: Some(Protection::Pinned), ..snapshot }
}

fn removed(plan: &RetentionPlan) -> Vec<&str> {
    plan.remove.iter().map(|removal| removal.id.as_str()).collect()
}

fn planned(snapshots: &[SnapshotInfo]) -> RetentionPlan {
    plan(snapshots, &RetentionPolicy::default(), None)
}

#[test]
fn the_defaults_keep_milestones_and_the_newest_of_the_others() {
    let policy = RetentionPolicy::default();
    let numbers: Vec<i64> = Trigger::ALL.iter().map(|trigger| policy.keep(*trigger).number()).collect();
    assert_eq!(numbers, [-1, 3, 1, -1, -1, 1, 1, -1]);
}

#[test]
fn numbers_below_minus_one_are_not_counts() {
    assert_eq!(Keep::from_number(-1), Some(Keep::All));
    assert_eq!(Keep::from_number(0), Some(Keep::Last(0)));
    assert_eq!(Keep::from_number(-2), None);
    assert_eq!(Keep::from_number(1 << 40), None);
}

#[test]
fn batches_count_per_phase() {
    let batch = |seq, phase| snapshot(seq, Trigger::BatchComplete, phase);
    let all = [batch(1, "a"), batch(2, "a"), batch(3, "a"), batch(4, "a"), batch(5, "b"), batch(6, "b"), batch(7, "a")];
    assert_eq!(removed(&planned(&all)), ["CP-a-1", "CP-a-2"]);
}

#[test]
fn interrupts_count_over_the_whole_run() {
    let all = [snapshot(1, Trigger::UserInterrupt, "a"), snapshot(2, Trigger::UserInterrupt, "b")];
    let plan = planned(&all);
    assert_eq!(removed(&plan), ["CP-a-1"]);
    assert_eq!(plan.remove[0].reason, RemovalReason::Superseded { kept: 1 });
}

#[test]
fn a_pinned_old_snapshot_takes_no_place_of_a_newer_one() {
    let batch = |seq| snapshot(seq, Trigger::BatchComplete, "a");
    let all = [pinned(batch(1)), batch(2), batch(3), batch(4), batch(5)];
    assert_eq!(removed(&planned(&all)), ["CP-a-2"]);
    let all = [batch(1), batch(2), batch(3), pinned(batch(4)), batch(5)];
    assert_eq!(removed(&planned(&all)), ["CP-a-1", "CP-a-2"], "among the newest it counts");
}

#[test]
fn zero_keeps_only_protected_snapshots() {
    let policy = RetentionPolicy { manual: Keep::Last(0), ..RetentionPolicy::default() };
    let manual = |seq| snapshot(seq, Trigger::Manual, "a");
    let all = [manual(1), pinned(manual(2)), manual(3)];
    assert_eq!(removed(&plan(&all, &policy, None)), ["CP-a-1", "CP-a-3"]);
}

#[test]
fn the_size_limit_removes_the_oldest_unprotected_ones_even_milestones() {
    let all = [
        pinned(snapshot(1, Trigger::PhaseTransition, "a")),
        snapshot(2, Trigger::PhaseTransition, "b"),
        snapshot(3, Trigger::Manual, "b"),
        snapshot(4, Trigger::ConflictStart, "b"),
    ];
    let plan = plan(&all, &RetentionPolicy::default(), Some(20));
    assert_eq!(removed(&plan), ["CP-b-2", "CP-b-3"]);
    assert!(plan.remove.iter().all(|removal| removal.reason == RemovalReason::Size));
    assert_eq!((plan.kept_bytes, plan.over_by), (20, None));
}

#[test]
fn protected_snapshots_above_the_limit_are_reported() {
    let all =
        [pinned(snapshot(1, Trigger::Manual, "a")), snapshot(2, Trigger::Manual, "a"), pinned(snapshot(3, Trigger::Manual, "a"))];
    let plan = plan(&all, &RetentionPolicy::default(), Some(12));
    assert_eq!((removed(&plan), plan.kept_bytes, plan.over_by), (vec!["CP-a-2"], 20, Some(8)));
}

#[test]
fn only_a_superseded_snapshot_is_skipped() {
    let policy = RetentionPolicy::default();
    assert!(!is_removed_immediately(Trigger::BatchComplete, 2, &policy));
    assert!(is_removed_immediately(Trigger::BatchComplete, 3, &policy));
    assert!(is_removed_immediately(Trigger::UserInterrupt, 1, &policy));
    let none = RetentionPolicy { batch_complete: Keep::Last(0), manual: Keep::Last(0), ..RetentionPolicy::default() };
    assert!(!is_removed_immediately(Trigger::BatchComplete, 0, &none), "it may be the latest");
    assert!(is_removed_immediately(Trigger::BatchComplete, 1, &none));
    for milestone in [Trigger::PhaseTransition, Trigger::ConflictStart, Trigger::ConflictResolved, Trigger::Manual] {
        assert!(!is_removed_immediately(milestone, 1000, &none), "{milestone}");
    }
}

fn any_protection() -> impl Strategy<Value = Option<Protection>> {
    prop_oneof![
        6 => Just(None),
        1 => Just(Some(Protection::Pinned)),
        1 => Just(Some(Protection::ResumePoint)),
        1 => Just(Some(Protection::OpenHold(HoldId::from("h")))),
        1 => Just(Some(Protection::Fork(RunId::from("r")))),
    ]
}

/// Snapshots of one run in any order, the latest one protected.
fn any_snapshots() -> impl Strategy<Value = Vec<SnapshotInfo>> {
    let trigger = proptest::sample::select(Trigger::ALL);
    let phase = proptest::option::of(proptest::sample::select(vec!["a", "b"]));
    let one = (trigger, phase, 0_u64..50, any_protection());
    let all = proptest::collection::vec(one, 0..30).prop_map(|rows| {
        let numbered = rows.into_iter().enumerate();
        let mut all: Vec<SnapshotInfo> = numbered
            .map(|(seq, (trigger, phase, bytes, protected))| SnapshotInfo {
                phase: phase.map(PhaseId::from),
                bytes,
                protected,
                ..snapshot(seq as u64, trigger, "any")
            })
            .collect();
        if let Some(latest) = all.last_mut() {
            latest.protected = Some(Protection::Latest);
        }
        all
    });
    all.prop_shuffle()
}

fn any_policy() -> impl Strategy<Value = RetentionPolicy> {
    proptest::collection::vec(-1_i64..4, Trigger::ALL.len()).prop_map(|numbers| {
        let mut policy = RetentionPolicy::default();
        for (trigger, number) in Trigger::ALL.iter().zip(numbers) {
            policy.set(*trigger, Keep::from_number(number).unwrap_or(Keep::All));
        }
        policy
    })
}

/// The rules in the plainest form: a snapshot goes if it is unprotected and as many newer ones of its kind exist as are kept; then
/// the oldest unprotected one goes until the rest fits.
fn model(all: &[SnapshotInfo], policy: &RetentionPolicy, max_bytes: u64) -> (BTreeSet<u64>, BTreeSet<u64>) {
    let same_kind = |one: &SnapshotInfo, other: &SnapshotInfo| {
        one.trigger == other.trigger && (!one.trigger.is_kept_per_phase() || one.phase == other.phase)
    };
    let goes = |snapshot: &&SnapshotInfo| {
        let newer = all.iter().filter(|other| same_kind(snapshot, other) && other.seq > snapshot.seq).count();
        let number = policy.keep(snapshot.trigger).number();
        snapshot.protected.is_none() && number >= 0 && newer as i64 >= number
    };
    let superseded: BTreeSet<u64> = all.iter().filter(goes).map(|snapshot| snapshot.seq).collect();
    let mut left: BTreeMap<u64, &SnapshotInfo> =
        all.iter().filter(|snapshot| !superseded.contains(&snapshot.seq)).map(|snapshot| (snapshot.seq, snapshot)).collect();
    let mut too_large = BTreeSet::new();
    while left.values().map(|snapshot| snapshot.bytes).sum::<u64>() > max_bytes {
        let Some(oldest) = left.values().find(|snapshot| snapshot.protected.is_none()).map(|snapshot| snapshot.seq) else {
            break;
        };
        left.remove(&oldest);
        too_large.insert(oldest);
    }
    (superseded, too_large)
}

proptest! {
    #[test]
    fn the_plan_agrees_with_the_model(all in any_snapshots(), policy in any_policy(), max_bytes in 0_u64..800) {
        let planned = plan(&all, &policy, Some(max_bytes));
        let seq = |id: &SnapshotId| all.iter().find(|snapshot| snapshot.id == *id).map(|snapshot| snapshot.seq).unwrap();
        let of = |is: fn(&RemovalReason) -> bool| -> Vec<u64> {
            planned.remove.iter().filter(|removal| is(&removal.reason)).map(|removal| seq(&removal.id)).collect()
        };
        let superseded = of(|reason| matches!(reason, RemovalReason::Superseded { .. }));
        let too_large = of(|reason| *reason == RemovalReason::Size);
        let (expected, expected_size) = model(&all, &policy, max_bytes);
        prop_assert_eq!(&superseded, &expected.into_iter().collect::<Vec<_>>(), "from the oldest to the newest");
        prop_assert_eq!(&too_large, &expected_size.into_iter().collect::<Vec<_>>());

        let left: Vec<&SnapshotInfo> =
            all.iter().filter(|snapshot| !superseded.contains(&snapshot.seq) && !too_large.contains(&snapshot.seq)).collect();
        let bytes: u64 = left.iter().map(|snapshot| snapshot.bytes).sum();
        prop_assert_eq!(planned.kept_bytes, bytes);
        prop_assert_eq!(planned.over_by, (bytes > max_bytes).then(|| bytes - max_bytes));
        prop_assert!(all.iter().filter(|snapshot| snapshot.protected.is_some()).all(|snapshot| left.contains(&snapshot)));
        prop_assert!(planned.over_by.is_none() || left.iter().all(|snapshot| snapshot.protected.is_some()));
    }

    #[test]
    fn a_plan_that_was_carried_out_removes_nothing_more(all in any_snapshots(), policy in any_policy(), max_bytes in 0_u64..800) {
        let first = plan(&all, &policy, Some(max_bytes));
        let left: Vec<SnapshotInfo> =
            all.into_iter().filter(|snapshot| first.remove.iter().all(|removal| removal.id != snapshot.id)).collect();
        let second = plan(&left, &policy, Some(max_bytes));
        prop_assert_eq!((second.remove, second.kept_bytes, second.over_by), (Vec::new(), first.kept_bytes, first.over_by));
    }

    #[test]
    fn a_skipped_snapshot_is_one_that_the_plan_would_remove(all in any_snapshots(), policy in any_policy()) {
        for snapshot in all.iter().filter(|snapshot| snapshot.protected.is_none()) {
            let later = all.iter().filter(|other| {
                other.seq > snapshot.seq
                    && other.trigger == snapshot.trigger
                    && (!snapshot.trigger.is_kept_per_phase() || other.phase == snapshot.phase)
            });
            if is_removed_immediately(snapshot.trigger, later.count(), &policy) {
                prop_assert!(plan(&all, &policy, None).remove.iter().any(|removal| removal.id == snapshot.id));
            }
        }
    }
}
