//! The nesting depth of brackets in JavaScript, found without a parser.
//!
//! The parser needs stack for every level, and for some constructs time and memory that grow with the square of the depth. It has
//! no limit of its own, so the depth is bounded before it runs. The bound may be too high, but never too low: once the meaning of
//! a character is unclear, every following bracket counts as opened and never closed.

/// An upper bound of the nesting depth.
pub(super) fn depth(source: &str) -> usize {
    // These two end a line only in JavaScript; no one types them.
    let lost = source.contains(['\u{2028}', '\u{2029}']);
    let mut scanner =
        Scanner { bytes: source.as_bytes(), at: 0, depth: 0, deepest: 0, open: Vec::new(), previous: Previous::Operator, lost };
    while scanner.at < scanner.bytes.len() {
        scanner.step();
    }
    scanner.deepest
}

struct Scanner<'s> {
    bytes: &'s [u8],
    at: usize,
    depth: usize,
    deepest: usize,
    open: Vec<Open>,
    previous: Previous,
    lost: bool,
}

/// The kind of an open bracket.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    /// The parenthesis of `if (…)` and the like, after which a statement starts.
    Control,
    /// `${` in a template.
    Template,
    Other,
}

/// The previous token, which decides whether `/` divides or starts a regular expression.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Previous {
    /// A value, which a `/` divides.
    Value,
    /// An operator, after which a value must follow.
    Operator,
    /// A keyword that is followed by a condition in parentheses.
    ControlWord,
    /// A `.`, after which every word is a name.
    Dot,
    Unclear,
}

impl Scanner<'_> {
    fn step(&mut self) {
        let byte = self.bytes[self.at];
        if self.lost {
            if matches!(byte, b'(' | b'[' | b'{' | b'`') {
                self.deepen();
            }
            self.at += 1;
            return;
        }
        match byte {
            b'(' | b'[' | b'{' => {
                self.deepen();
                let control = byte == b'(' && self.previous == Previous::ControlWord;
                self.open.push(if control { Open::Control } else { Open::Other });
                self.follow(1, Previous::Operator);
            }
            b')' | b']' | b'}' => self.close(byte),
            b'`' => {
                self.at += 1;
                self.template();
            }
            b'\'' | b'"' => self.string(byte),
            b'/' => self.slash(),
            b'<' if self.sees(b"<!--") => self.lost = true,
            b'-' if self.sees(b"-->") => self.lost = true,
            b'+' | b'-' if self.bytes.get(self.at + 1) == Some(&byte) => self.follow(2, Previous::Unclear),
            b'.' => self.follow(1, Previous::Dot),
            _ if is_word(byte) => self.word(),
            _ if byte.is_ascii_whitespace() => self.at += 1,
            _ => self.follow(1, Previous::Operator),
        }
    }

    fn sees(&self, text: &[u8]) -> bool {
        self.bytes[self.at..].starts_with(text)
    }

    fn follow(&mut self, length: usize, previous: Previous) {
        self.at += length;
        self.previous = previous;
    }

    fn deepen(&mut self) {
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
    }

    fn close(&mut self, byte: u8) {
        let opened = self.open.pop();
        self.depth = self.depth.saturating_sub(1);
        match (opened, byte) {
            (Some(Open::Template), b'}') => {
                self.at += 1;
                self.template();
            }
            (Some(Open::Template), _) | (None, _) => self.lost = true,
            (Some(Open::Control), _) => self.follow(1, Previous::Operator),
            (Some(Open::Other), b'}') => self.follow(1, Previous::Unclear),
            (Some(Open::Other), _) => self.follow(1, Previous::Value),
        }
    }

    /// The text of a template literal, up to its end or the next `${`.
    fn template(&mut self) {
        while let Some(byte) = self.bytes.get(self.at) {
            match byte {
                b'\\' => self.at += 2,
                b'`' => return self.follow(1, Previous::Value),
                b'$' if self.sees(b"${") => {
                    self.deepen();
                    self.open.push(Open::Template);
                    return self.follow(2, Previous::Operator);
                }
                _ => self.at += 1,
            }
        }
    }

    fn string(&mut self, quote: u8) {
        self.at += 1;
        while let Some(byte) = self.bytes.get(self.at) {
            match byte {
                b'\\' => self.at += 2,
                b'\n' | b'\r' => break,
                byte if *byte == quote => {
                    self.at += 1;
                    break;
                }
                _ => self.at += 1,
            }
        }
        self.previous = Previous::Value;
    }

    fn slash(&mut self) {
        if self.sees(b"//") {
            let line = self.bytes[self.at..].iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            self.at = line.map_or(self.bytes.len(), |line| self.at + line);
        } else if self.sees(b"/*") {
            let end = self.bytes[self.at + 2..].windows(2).position(|pair| pair == b"*/");
            self.at = end.map_or(self.bytes.len(), |end| self.at + 2 + end + 2);
        } else {
            match self.previous {
                Previous::Value => self.follow(1, Previous::Operator),
                Previous::Operator | Previous::ControlWord => self.regular_expression(),
                Previous::Dot | Previous::Unclear => self.lost = true,
            }
        }
    }

    fn regular_expression(&mut self) {
        self.at += 1;
        let mut in_class = false;
        let mut groups = 0;
        while let Some(byte) = self.bytes.get(self.at) {
            match byte {
                b'\\' => self.at += 1,
                b'\n' | b'\r' => break,
                b'[' => {
                    groups += 1;
                    in_class = true;
                }
                b'(' => groups += 1,
                b']' => in_class = false,
                b'/' if !in_class => {
                    self.at += 1;
                    break;
                }
                _ => {}
            }
            self.at += 1;
        }
        self.deepest = self.deepest.max(self.depth + groups);
        self.previous = Previous::Value;
    }

    fn word(&mut self) {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|byte| !is_word(*byte)).unwrap_or(rest.len());
        let previous = match &rest[..length] {
            _ if self.previous == Previous::Dot => Previous::Value,
            b"if" | b"while" | b"for" | b"with" => Previous::ControlWord,
            b"return" | b"typeof" | b"case" | b"in" | b"delete" | b"void" | b"throw" | b"new" | b"else" | b"do"
            | b"instanceof" => Previous::Operator,
            // `for await (…)` keeps its parenthesis; otherwise the meaning depends on the enclosing function.
            b"await" if self.previous == Previous::ControlWord => Previous::ControlWord,
            b"await" | b"yield" | b"of" => Previous::Unclear,
            _ => Previous::Value,
        };
        self.follow(length, previous);
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'\\' | b'#' | 0x80..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_code_count() {
        assert_eq!(depth("a"), 0);
        assert_eq!(depth("f(a[b({c: 1})])"), 4);
        assert_eq!(depth("(a)(b)(c)"), 1);
        assert_eq!(depth("if (a) { return (b) }"), 2);
        assert_eq!(depth("`x${f(`${a}`)}`; (a)"), 3);
    }

    #[test]
    fn brackets_in_text_do_not_count() {
        assert_eq!(depth(r#"'((((' + "[[[[" + `{{{{`"#), 0);
        assert_eq!(depth("// ((((\n/* (((( */ a"), 0);
        assert_eq!(depth("a / b / c"), 0);
        assert_eq!(depth(r"return /[/(]\/\(/.test(a)"), 2);
        assert_eq!(depth("if (a) /\\)/.test(b)"), 1);
        assert_eq!(depth("(a + b) / (c) / 2; (d)"), 1);
    }

    #[test]
    fn closing_brackets_in_text_close_nothing() {
        for hidden in
            ["')))'", "`)))`", "/* ))) */", "// )))\n", "a = /)))/;", "if (a) /)))/;", "<!-- )))\n", "\n--> )))\n", "{x} /)))/;"]
        {
            let source = ["(((", hidden, "((("].concat();
            assert!(depth(&source) >= 6, "{hidden:?}");
        }
    }

    #[test]
    fn ordinary_code_is_within_the_nesting_limit() {
        let line = "for (const [key, value] of Object.entries(x)) { if (value > (a + b) / 2) { y[key] = `${value}`.replace(/\\(/g, '(') } }\n";
        assert_eq!(depth(&line.repeat(1000)), 3);
    }
}
