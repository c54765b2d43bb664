//! A model of how a POSIX shell parses a command, for comparison only: which characters are quoted, and which are shell syntax. It is written
//! from the standard and deliberately independent of Lockgate's implementation.

/// A character of a command, as the shell parses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// May split words, match files or be an operator.
    Bare(char),
    /// Is literal.
    Quoted(char),
    /// Is inside double quotes and starts an expansion.
    Expanded(char),
    /// Is inside a backquoted substitution.
    Backquoted(char),
    /// Is inside a comment.
    Comment(char),
    /// Is inside a here-document.
    Document(char),
}

pub fn read(command: &str) -> Vec<Token> {
    let mut reader = Reader { characters: command.chars().collect(), at: 0, tokens: Vec::new(), documents: Vec::new() };
    reader.command(End::Text);
    reader.tokens
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// The end of the text.
    Text,
    /// The `)` of a `$(…)`.
    Parenthesis,
}

struct Reader {
    characters: Vec<char>,
    at: usize,
    tokens: Vec<Token>,
    /// Delimiters of the here-documents that start after this line, and whether leading tabs are removed.
    documents: Vec<(String, bool)>,
}

impl Reader {
    fn peek(&self, offset: usize) -> Option<char> {
        self.characters.get(self.at + offset).copied()
    }

    fn next(&mut self) -> Option<char> {
        let character = self.peek(0)?;
        self.at += 1;
        Some(character)
    }

    /// Parses commands up to their end; `word` is true inside a word.
    fn command(&mut self, end: End) {
        let mut depth = 0_usize;
        let mut word = false;
        while let Some(character) = self.next() {
            let in_word = word;
            word = true;
            match character {
                ')' if end == End::Parenthesis && depth == 0 => {
                    self.tokens.push(Token::Bare(')'));
                    return;
                }
                '#' if !in_word => {
                    self.comment();
                    word = false;
                }
                '<' if self.peek(0) == Some('<') && self.peek(1) == Some('<') => {
                    self.tokens.extend(['<'; 3].map(Token::Bare));
                    self.at += 2;
                    word = false;
                }
                '<' if self.peek(0) == Some('<') => {
                    self.begin_document();
                    word = false;
                }
                '\n' => {
                    self.tokens.push(Token::Bare('\n'));
                    self.pass_documents();
                    word = false;
                }
                // A continued line does not end a word.
                '\\' if self.peek(0) == Some('\n') => {
                    self.at += 1;
                    word = in_word;
                }
                ' ' | '\t' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => {
                    match character {
                        '(' => depth += 1,
                        ')' => depth = depth.saturating_sub(1),
                        _ => {}
                    }
                    self.tokens.push(Token::Bare(character));
                    word = false;
                }
                other => {
                    if self.in_word(other, false) {
                        self.command(End::Parenthesis);
                    }
                }
            }
        }
    }

    /// Parses a character of a word, with everything that it opens. Returns true if it started a `$(`, which is left open.
    fn in_word(&mut self, character: char, in_expansion: bool) -> bool {
        match character {
            '\'' => self.single_quotes(),
            '"' => self.double_quotes(),
            '\\' => match self.next() {
                Some('\n') | None => {}
                Some(escaped) => self.tokens.push(Token::Quoted(escaped)),
            },
            '`' => self.backquotes(),
            '$' if self.peek(0) == Some('(') && self.peek(1) == Some('(') => self.arithmetic(),
            '$' if self.peek(0) == Some('(') => {
                self.at += 1;
                self.tokens.extend([Token::Bare('$'), Token::Bare('(')]);
                return true;
            }
            '$' if self.peek(0) == Some('{') => self.expansion(),
            other if in_expansion => self.tokens.push(Token::Expanded(other)),
            other => self.tokens.push(Token::Bare(other)),
        }
        false
    }

    fn comment(&mut self) {
        self.tokens.push(Token::Comment('#'));
        while let Some(character) = self.peek(0).filter(|character| *character != '\n') {
            self.tokens.push(Token::Comment(character));
            self.at += 1;
        }
    }

    fn single_quotes(&mut self) {
        while let Some(character) = self.next().filter(|character| *character != '\'') {
            self.tokens.push(Token::Quoted(character));
        }
    }

    fn double_quotes(&mut self) {
        while let Some(character) = self.next().filter(|character| *character != '"') {
            match character {
                '\\' => match self.peek(0) {
                    Some('\n') => self.at += 1,
                    Some(escaped @ ('$' | '`' | '"' | '\\')) => {
                        self.tokens.push(Token::Quoted(escaped));
                        self.at += 1;
                    }
                    Some(_) | None => self.tokens.push(Token::Quoted('\\')),
                },
                '`' => self.backquotes(),
                '$' if self.peek(0) == Some('(') && self.peek(1) == Some('(') => self.arithmetic(),
                '$' if self.peek(0) == Some('(') => {
                    self.at += 1;
                    self.tokens.extend([Token::Expanded('$'), Token::Expanded('(')]);
                    self.command(End::Parenthesis);
                }
                '$' if self.peek(0) == Some('{') => self.expansion(),
                '$' => self.tokens.push(Token::Expanded('$')),
                other => self.tokens.push(Token::Quoted(other)),
            }
        }
    }

    fn backquotes(&mut self) {
        while let Some(character) = self.next().filter(|character| *character != '`') {
            self.tokens.push(Token::Backquoted(character));
            if character == '\\' {
                self.tokens.extend(self.peek(0).map(Token::Backquoted));
                self.at += 1;
            }
        }
    }

    /// `${…}`: quotes apply inside it, and nothing in it starts a comment.
    fn expansion(&mut self) {
        self.at += 1;
        self.tokens.extend([Token::Expanded('$'), Token::Expanded('{')]);
        while let Some(character) = self.next() {
            if character == '}' {
                self.tokens.push(Token::Expanded('}'));
                return;
            }
            if self.in_word(character, true) {
                self.command(End::Parenthesis);
            }
        }
    }

    /// `$((…))`: parentheses are counted, and quotes have no meaning.
    fn arithmetic(&mut self) {
        let mut depth = 0_usize;
        self.tokens.push(Token::Expanded('$'));
        while let Some(character) = self.next() {
            self.tokens.push(Token::Expanded(character));
            match character {
                '(' => depth += 1,
                ')' if depth == 1 => return,
                ')' => depth -= 1,
                _ => {}
            }
        }
    }

    fn begin_document(&mut self) {
        self.at += 1;
        self.tokens.extend(['<'; 2].map(Token::Bare));
        let strips_tabs = self.peek(0) == Some('-');
        if strips_tabs {
            self.at += 1;
        }
        while matches!(self.peek(0), Some(' ' | '\t')) {
            self.at += 1;
        }
        let mut delimiter = String::new();
        while let Some(character) =
            self.peek(0).filter(|next| !matches!(next, ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')'))
        {
            self.at += 1;
            match character {
                '\'' | '"' => {
                    while let Some(inside) = self.next().filter(|inside| *inside != character) {
                        delimiter.push(inside);
                    }
                }
                '\\' => delimiter.extend(self.next()),
                other => delimiter.push(other),
            }
        }
        self.documents.push((delimiter, strips_tabs));
    }

    fn pass_documents(&mut self) {
        for (delimiter, strips_tabs) in std::mem::take(&mut self.documents) {
            while self.at < self.characters.len() {
                let rest = &self.characters[self.at..];
                let length = rest.iter().position(|character| *character == '\n').unwrap_or(rest.len());
                let line: String = rest[..length].iter().collect();
                self.at = (self.at + length + 1).min(self.characters.len());
                let compared = if strips_tabs { line.trim_start_matches('\t') } else { &line };
                if compared == delimiter {
                    break;
                }
                self.tokens.extend(line.chars().map(Token::Document));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(command: &str) -> String {
        let characters = read(command).into_iter().filter_map(|token| match token {
            Token::Quoted(character) => Some(character),
            _ => None,
        });
        characters.collect()
    }

    #[test]
    fn quoted_text_is_distinguished_from_shell_syntax() {
        assert_eq!(quoted(r#"echo 'a b'"c\"d$e"\f g"#), "a bc\"d".to_owned() + "ef");
        assert_eq!(quoted("echo # 'no'\necho 'yes'"), "yes");
        assert_eq!(quoted("echo a#'yes'"), "yes");
        assert_eq!(quoted("cat <<E 'yes'\n'no'\nE\n'too'"), "yestoo");
        assert_eq!(quoted("echo \"$(echo ')' \")\")\"'yes'"), "))yes");
        assert_eq!(quoted("echo $((1<<2)) ${x:-a #'yes'} `echo 'no'`"), "yes");
        assert_eq!(quoted("echo a\\\n#'yes'"), "yes");
        assert_eq!(quoted("echo $(#'no'\necho 'yes')"), "yes");
    }
}
