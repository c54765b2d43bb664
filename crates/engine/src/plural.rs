//! Nouns in the singular or plural, depending on a number.

/// A number with its noun: `1 task`, `3 tasks`, `1 more file`. The noun comes last, so that the plural is formed by appending an
/// `s`.
pub fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    match count.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        assert_eq!(counted(1_u32, "time"), "1 time");
        assert_eq!(counted(0_usize, "time"), "0 times");
        assert_eq!(counted(2_u64, "more file"), "2 more files");
    }
}
