//! Human-readable sizes.

/// A size for people: `812 B`, `1.2 kB`, `64 MB`.
pub fn format_size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    // Tenths, rounded down: a file just below a limit is never shown as being at it.
    let mut tenths = bytes / 100;
    let mut unit = 0;
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        tenths /= 1000;
        unit += 1;
    }
    match tenths % 10 {
        0 => format!("{} {}", tenths / 10, UNITS[unit]),
        tenth => format!("{}.{tenth} {}", tenths / 10, UNITS[unit]),
    }
}

#[cfg(test)]
mod tests {
    use super::format_size;

    #[test]
    fn sizes_are_printed_in_a_fitting_unit() {
        assert_eq!(format_size(0), "0 B");
        assert_eq!(format_size(999), "999 B");
        assert_eq!(format_size(1000), "1 kB");
        assert_eq!(format_size(1234), "1.2 kB");
        assert_eq!(format_size(999_999), "999.9 kB");
        assert_eq!(format_size(64_000_000), "64 MB");
        assert_eq!(format_size(u64::MAX), "18446744 TB");
    }
}
