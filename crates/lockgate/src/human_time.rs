//! Times and durations for people. JSON has UTC times.

use lockgate_engine::time::Timestamp;
use std::time::Duration;

/// Formats a duration in its one or two largest units.
pub fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{} ms", duration.as_millis()),
        1..60 => format!("{}.{} s", seconds, duration.subsec_millis() / 100),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h {}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// Formats a running duration in whole seconds, short enough for a narrow column.
pub fn elapsed(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h {:02}m", seconds / 3600, seconds % 3600 / 60),
        86_400..8_640_000 => format!("{}d {:02}h", seconds / 86_400, seconds % 86_400 / 3600),
        _ => format!("{}d", (seconds / 86_400).min(999_999)),
    }
}

/// A time in the time zone of this machine, with its offset.
pub fn local(at: Timestamp) -> String {
    in_zone(at, jiff::tz::TimeZone::system())
}

/// Replaces the UTC times in a message by local ones.
pub fn localize(message: &str) -> String {
    const FORM: &[u8] = b"0000-00-00T00:00:00.000Z";
    let fits = |found: &[u8]| {
        found.iter().zip(FORM).all(|(byte, expected)| if *expected == b'0' { byte.is_ascii_digit() } else { byte == expected })
    };
    let (mut text, mut rest) = (String::new(), message);
    while let Some(at) = rest.as_bytes().windows(FORM.len()).position(fits) {
        let (before, from) = rest.split_at(at);
        let (time, after) = from.split_at(FORM.len());
        let parsed = time.parse::<jiff::Timestamp>().map(|time| Timestamp::from_millis(time.as_millisecond()));
        text += before;
        text += &parsed.map_or_else(|_| time.to_owned(), local);
        rest = after;
    }
    text + rest
}

fn in_zone(at: Timestamp, zone: jiff::tz::TimeZone) -> String {
    match jiff::Timestamp::from_millisecond(at.as_millis()) {
        Ok(time) => time.to_zoned(zone).strftime("%Y-%m-%d %H:%M:%S %:z").to_string(),
        Err(_) => at.to_string(),
    }
}

/// How long ago a time was.
pub fn ago(now: Timestamp, then: Timestamp) -> String {
    let passed = now.since(then);
    if passed.as_secs() == 0 { "just now".to_owned() } else { format!("{} ago", duration(Duration::from_secs(passed.as_secs()))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_printed_in_the_time_zone_of_the_reader() {
        let at = Timestamp::from_millis(1_794_000_000_000);
        let zone = |name| jiff::tz::TimeZone::get(name).unwrap();
        assert_eq!(in_zone(at, zone("Europe/Berlin")), "2026-11-06 22:20:00 +01:00");
        assert_eq!(in_zone(at, zone("America/New_York")), "2026-11-06 16:20:00 -05:00");
        assert_eq!(in_zone(at, jiff::tz::TimeZone::UTC), "2026-11-06 21:20:00 +00:00");
        assert_eq!(in_zone(Timestamp::from_millis(i64::MAX), jiff::tz::TimeZone::UTC), format!("{}ms", i64::MAX));
    }

    #[test]
    fn times_in_messages_become_local() {
        let at = Timestamp::from_millis(1_794_000_000_000);
        assert_eq!(localize(&format!("né à {at}, et {at}")), format!("né à {0}, et {0}", local(at)));
        assert_eq!(localize("at 9999-99-99T99:99:99.999Z, or 2026-"), "at 9999-99-99T99:99:99.999Z, or 2026-");
    }

    #[test]
    fn durations_are_printed_in_fitting_units() {
        let printed = |millis| duration(Duration::from_millis(millis));
        assert_eq!(printed(7), "7 ms");
        assert_eq!(printed(1_230), "1.2 s");
        assert_eq!(printed(61_000), "1m 1s");
        assert_eq!(printed(3_600_000), "1h 0m");
        assert_eq!(printed(90_000_000), "1d 1h");
    }

    #[test]
    fn running_durations_are_printed_in_whole_seconds_and_a_narrow_column() {
        let printed = |seconds| elapsed(Duration::from_secs(seconds));
        assert_eq!(
            [printed(0), printed(59), printed(61), printed(3_660), printed(90_000)],
            ["0s", "59s", "1m 01s", "1h 01m", "1d 01h"]
        );
        assert!([59, 3_599, 86_399, 8_639_999, u64::MAX].into_iter().all(|seconds| printed(seconds).len() <= 7));
    }
}
