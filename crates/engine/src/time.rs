//! Timestamps and durations. The engine never reads a clock: every command carries its time.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::fmt;
use std::time::Duration;

/// A UTC timestamp in milliseconds: a number in stored forms, ISO 8601 in text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From milliseconds since the epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }
    /// Milliseconds since the epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }
    /// The time since `earlier`; zero if this is not later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(timestamp) => write!(f, "{timestamp:.3}"),
            Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { serializer.collect_str(self) } else { serializer.serialize_i64(self.0) }
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let text = String::deserialize(deserializer)?;
            let timestamp: jiff::Timestamp = text.parse().map_err(D::Error::custom)?;
            Ok(Self(timestamp.as_millisecond()))
        } else {
            i64::deserialize(deserializer).map(Self)
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    #[error("{0:?} is negative")]
    Negative(String),
    #[error("{0:?} is not a duration; write it as 30s, 5m, 1h 30m or PT30M")]
    Unreadable(String),
}

/// Parses a duration such as `30s`, `1h 30m` or `PT30M`. A bare number is refused, because its unit would be a guess.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let parsed: Result<jiff::SignedDuration, _> = text.trim().parse();
    let days = text.trim().strip_suffix('d').and_then(|n| n.trim().parse::<u64>().ok());
    if let Some(days) = days {
        return Ok(Duration::from_secs(days.saturating_mul(86_400)));
    }
    match parsed {
        Ok(signed) => Duration::try_from(signed).map_err(|_| DurationError::Negative(text.to_owned())),
        Err(_) => Err(DurationError::Unreadable(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_in_both_notations() {
        assert_eq!(parse_duration("30m"), Ok(Duration::from_secs(1800)));
        assert_eq!(parse_duration("PT30M"), Ok(Duration::from_secs(1800)));
        assert_eq!(parse_duration("1h 30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("2d"), Ok(Duration::from_secs(172_800)));
        assert!(parse_duration("30").is_err());
        assert!(parse_duration("-5s").is_err());
        assert!(parse_duration("soon").is_err());
    }

    #[test]
    fn timestamps_are_printed_as_iso_8601() {
        let timestamp = Timestamp::from_millis(1_761_919_200_000);
        assert_eq!(timestamp.to_string(), "2025-10-31T14:00:00.000Z");
        let text = serde_json::to_string(&timestamp).unwrap();
        assert_eq!(serde_json::from_str::<Timestamp>(&text).unwrap(), timestamp);
    }
}
