//! Integer codes used in the tables of both databases.

use lockgate_engine::hold::HoldState;

/// A limit as a database parameter.
pub(crate) fn row_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// The stored code of a hold state. Open must be 0: an index depends on it.
pub(crate) fn of_hold_state(state: HoldState) -> i64 {
    match state {
        HoldState::Open => 0,
        HoldState::Checking => 1,
        HoldState::Settled => 2,
        HoldState::Void => 3,
    }
}

pub(crate) fn hold_state(number: i64) -> Option<HoldState> {
    [HoldState::Open, HoldState::Checking, HoldState::Settled, HoldState::Void]
        .into_iter()
        .find(|state| of_hold_state(*state) == number)
}
