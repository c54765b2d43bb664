//! The YAML at the top of a Markdown file, between two lines of `---`.

use std::ops::Range;

/// The two parts of a Markdown file.
pub(crate) struct Frontmatter<'a> {
    /// The YAML, starting at the first byte of the file: the line of `---` starts a YAML document, so positions in it are positions in the file.
    pub(crate) yaml: &'a str,
    /// The Markdown after the frontmatter.
    pub(crate) body: &'a str,
}

/// Splits a file into its parts; `None` if it has no closed frontmatter.
pub(crate) fn split(source: &str) -> Option<Frontmatter<'_>> {
    let mut lines = lines(source.strip_prefix('\u{feff}').unwrap_or(source));
    let shift = if source.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let (_, first) = lines.find(|(_, line)| !line.trim().is_empty())?;
    if first.trim_end() != "---" {
        return None;
    }
    let (close, _) = lines.find(|(_, line)| matches!(line.trim_end(), "---" | "..."))?;
    Some(Frontmatter { yaml: &source[..close.start + shift], body: &source[close.end + shift..] })
}

/// The keys at the left margin of a YAML text, found without parsing it.
pub(crate) fn top_keys(yaml: &str) -> impl Iterator<Item = &str> + Clone {
    lines(yaml).filter_map(|(_, line)| {
        let (key, rest) = line.split_once(':')?;
        let plain = key.trim_matches(['"', '\'']);
        let is_key =
            !plain.is_empty() && plain.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
        (is_key && (rest.is_empty() || rest.starts_with([' ', '\t', '\r']))).then_some(plain)
    })
}

/// The lines of a text without their line breaks, each with its byte range including the line break.
pub(crate) fn lines(source: &str) -> impl Iterator<Item = (Range<usize>, &str)> + Clone {
    let mut start = 0;
    source.split_inclusive('\n').map(move |line| {
        let range = start..start + line.len();
        start = range.end;
        (range, line.strip_suffix('\n').unwrap_or(line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frontmatter_ends_at_the_second_fence() {
        let source = "\u{feff}\n---\r\na: 1\r\n---\r\n# Title\n---\n";
        let parts = split(source).expect("frontmatter");
        assert_eq!((parts.yaml, parts.body), ("\u{feff}\n---\r\na: 1\r\n", "# Title\n---\n"));
        assert!(split("---\na: 1\n").is_none() && split("a: 1\n---\nb\n---\n").is_none() && split("").is_none());
    }

    #[test]
    fn unindented_keys_are_found() {
        let yaml = "---\na: 1\n b: 2\n\"c\":\n# d: 3\n- e: 4\nhttp://x\nf:\r\n";
        assert_eq!(top_keys(yaml).collect::<Vec<_>>(), ["a", "c", "f"]);
    }
}
