//! Values that a nested shell reads: `sh -c "… {{x}}"`, `eval {{x}}`, `ssh host "… {{x}}"`, `… {{x}} | sh`.
//!
//! A value is quoted for the shell that runs the command. If that shell passes it on as code, another one reads it a second time,
//! without quotes, and could run it as a command.

use std::ops::Range;

/// Shells, by program name.
const SHELLS: [&str; 9] = ["sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "fish", "busybox"];

/// Programs that run the argument of an option as code, with the letter of that option.
const RUN_CODE: [(&str, &str); 11] = [
    ("su", "c"),
    ("runuser", "c"),
    ("script", "c"),
    ("python", "c"),
    ("python3", "c"),
    ("node", "e"),
    ("bun", "e"),
    ("perl", "e"),
    ("ruby", "e"),
    ("php", "r"),
    ("osascript", "e"),
];

/// Options of `ssh` that take a value.
const SSH_VALUES: &str = "BbcDEeFIiJLlmOopQRSWw";

/// A part of a command that is read as code by a nested shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Code {
    pub(super) span: Range<usize>,
    /// The program that reads it: `sh -c`, `eval`.
    pub(super) reader: String,
}

/// A word of a command, without its quotes.
#[derive(Debug)]
struct Word {
    text: String,
    span: Range<usize>,
}

/// The parts of a command that another shell or interpreter reads as code.
pub(super) fn code(command: &str) -> Vec<Code> {
    let mut found = Vec::new();
    for pipeline in pipelines(command) {
        for (at, words) in pipeline.iter().enumerate() {
            found.extend(code_in(words));
            if let Some(reader) = reads_code(words).filter(|_| at > 0) {
                let before = pipeline[..at].iter().flatten();
                found.extend(before.map(|word| Code { span: word.span.clone(), reader: format!("| {reader}") }));
            }
        }
    }
    found
}

/// The arguments of one command that are code.
fn code_in(words: &[Word]) -> Vec<Code> {
    let mut found = Vec::new();
    let is_code = |word: &Word, reader: &str| Code { span: word.span.clone(), reader: reader.to_owned() };
    for (at, word) in words.iter().enumerate() {
        let (name, rest) = (base_name(&word.text), &words[at + 1..]);
        if name == "eval" && starts_command(&words[..at]) {
            found.extend(rest.iter().map(|word| is_code(word, "eval")));
        }
        if name == "ssh" && starts_command(&words[..at]) {
            found.extend(after_host(rest).iter().map(|word| is_code(word, "ssh")));
        }
        let option = if SHELLS.contains(&name) { Some("c") } else { option_of(name) };
        if let Some((script, letter)) = option.and_then(|letter| Some((script_of(rest, letter, takes_user(name))?, letter))) {
            found.push(is_code(script, &format!("{name} -{letter}")));
        }
        if SHELLS.contains(&name)
            && let Some(here) = rest.iter().position(|word| word.text == "<<<")
        {
            found.extend(rest.get(here + 1).map(|word| is_code(word, &format!("{name} <<<"))));
        }
    }
    found
}

fn option_of(name: &str) -> Option<&'static str> {
    RUN_CODE.iter().find(|(known, _)| *known == name).map(|(_, letter)| *letter)
}

fn takes_user(name: &str) -> bool {
    matches!(name, "su" | "runuser" | "busybox")
}

fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Whether the word after these is the name of a program. Assignments and programs that start others may precede it.
fn starts_command(before: &[Word]) -> bool {
    const STARTERS: [&str; 14] =
        ["sudo", "env", "exec", "command", "builtin", "time", "nice", "nohup", "then", "do", "else", "!", "{", "if"];
    before.iter().all(|word| STARTERS.contains(&word.text.as_str()) || word.text.starts_with('-') || word.text.contains('='))
}

/// The argument of an option such as `-c`, alone or at the end of combined letters: `-lc`.
fn script_of<'w>(rest: &'w [Word], letter: &str, anywhere: bool) -> Option<&'w Word> {
    let names = |word: &Word| {
        word.text.strip_prefix('-').is_some_and(|letters| !letters.starts_with('-') && letters.contains(letter))
            || matches!((letter, word.text.as_str()), ("c", "--command") | ("e", "--eval"))
    };
    // Arguments after a script file belong to that script; `su` has a user before its options.
    let has_value = |before: &Word| matches!(before.text.as_str(), "-o" | "+o" | "-O" | "+O" | "-W" | "-X" | "-u");
    let is_option = |at: usize| rest[at].text.starts_with(['-', '+']) || (at > 0 && has_value(&rest[at - 1]));
    let option = (0..rest.len()).take_while(|at| anywhere || is_option(*at)).find(|at| names(&rest[*at]))?;
    // `bash -c -e SCRIPT`: further options may follow.
    rest[option + 1..].iter().find(|word| !word.text.starts_with('-'))
}

/// The words that `ssh` passes to the remote shell: everything after the host.
fn after_host(words: &[Word]) -> &[Word] {
    let mut at = 0;
    while let Some(letters) = words.get(at).and_then(|word| word.text.strip_prefix('-')) {
        let takes_next = letters.len() == 1 && SSH_VALUES.contains(letters);
        at += if takes_next { 2 } else { 1 };
    }
    words.get(at + 1..).unwrap_or_default()
}

/// The name of a pipe member, if it runs its input as code.
fn reads_code(words: &[Word]) -> Option<String> {
    let at = words.iter().position(|word| SHELLS.contains(&base_name(&word.text)));
    let is_ssh = |word: &Word| base_name(&word.text) == "ssh";
    let Some(at) = at else {
        // Without a command, the remote shell reads its input.
        let ssh = words.iter().position(is_ssh).filter(|at| starts_command(&words[..*at]))?;
        return after_host(&words[ssh + 1..]).is_empty().then(|| "ssh".to_owned());
    };
    let (name, rest) = (base_name(&words[at].text), &words[at + 1..]);
    let xargs = words[..at].iter().any(|word| base_name(&word.text) == "xargs");
    match script_of(rest, "c", false) {
        Some(_) if xargs && words[..at].iter().any(|word| word.text.starts_with("-I") || word.text == "-i") => {
            Some(format!("xargs {name} -c"))
        }
        Some(_) => None,
        None if xargs || !(starts_command(&words[..at]) || words[..at].iter().any(is_ssh)) => None,
        // A file argument is the script; the input is then only data for it.
        None => rest.iter().all(|word| word.text.starts_with('-')).then(|| name.to_owned()).or_else(|| {
            let reads_input = rest.iter().take_while(|word| word.text != "--").any(|word| word.text == "-s");
            reads_input.then(|| format!("{name} -s"))
        }),
    }
}

/// The commands of a text, pipe by pipe, each as its words. Unsupported syntax is skipped.
fn pipelines(command: &str) -> Vec<Vec<Vec<Word>>> {
    let mut reading = Reading { done: Vec::new(), pipe: Vec::new(), words: Vec::new(), word: None };
    let mut delimiters: Vec<String> = Vec::new();
    let mut signs = command.char_indices().peekable();
    while let Some((at, sign)) = signs.next() {
        let next = signs.peek().map(|(_, next)| *next);
        match sign {
            '\\' => {
                if let Some((after, escaped)) = signs.next() {
                    reading.push(escaped, at..after + escaped.len_utf8());
                }
            }
            '\'' | '"' => {
                reading.touch(at..at + 1);
                while let Some((inside, quoted)) = signs.next() {
                    match quoted {
                        _ if quoted == sign => {
                            reading.touch(inside..inside + 1);
                            break;
                        }
                        '\\' if sign == '"' => {
                            if let Some((after, escaped)) = signs.next() {
                                reading.push(escaped, inside..after + escaped.len_utf8());
                            }
                        }
                        _ => reading.push(quoted, inside..inside + quoted.len_utf8()),
                    }
                }
            }
            '#' if reading.word.is_none() => while signs.next_if(|(_, sign)| *sign != '\n').is_some() {},
            '|' if next == Some('|') => {
                signs.next();
                reading.end_pipe();
            }
            '|' => {
                signs.next_if(|(_, next)| *next == '&');
                reading.end_command();
            }
            '&' if next == Some('>') || command[..at].ends_with(['>', '<']) => reading.push(sign, at..at + 1),
            '\n' => {
                reading.end_pipe();
                skip_here_documents(command, &mut signs, &mut delimiters);
            }
            ';' | '&' | '(' | ')' | '`' => reading.end_pipe(),
            '<' if command[at..].starts_with("<<<") => {
                reading.end_word();
                reading.push_text("<<<", at..at + 3);
                reading.end_word();
                signs.next();
                signs.next();
            }
            '<' if next == Some('<') => {
                signs.next();
                let after = command[at + 2..].trim_start_matches(['-', ' ', '\t']);
                let delimiter = after.trim_start_matches(['\'', '"', '\\']);
                let end = delimiter.find(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_').unwrap_or(delimiter.len());
                delimiters.push(delimiter[..end].to_owned());
            }
            _ if sign.is_whitespace() => reading.end_word(),
            _ => reading.push(sign, at..at + sign.len_utf8()),
        }
    }
    reading.end_pipe();
    reading.done
}

/// Skips the bodies of here-documents that the previous line started.
fn skip_here_documents(command: &str, signs: &mut std::iter::Peekable<std::str::CharIndices<'_>>, delimiters: &mut Vec<String>) {
    for delimiter in delimiters.drain(..) {
        while let Some((at, _)) = signs.peek().copied() {
            let line = command[at..].lines().next().unwrap_or_default();
            let end = at + line.len();
            while signs.next_if(|(at, _)| *at <= end).is_some() {}
            if line.trim_start_matches('\t') == delimiter {
                break;
            }
        }
    }
}

struct Reading {
    done: Vec<Vec<Vec<Word>>>,
    pipe: Vec<Vec<Word>>,
    words: Vec<Word>,
    word: Option<Word>,
}

impl Reading {
    fn touch(&mut self, span: Range<usize>) {
        let word = self.word.get_or_insert_with(|| Word { text: String::new(), span: span.clone() });
        word.span.end = span.end;
    }

    fn push(&mut self, sign: char, span: Range<usize>) {
        self.touch(span);
        if let Some(word) = &mut self.word {
            word.text.push(sign);
        }
    }

    fn push_text(&mut self, text: &str, span: Range<usize>) {
        self.touch(span);
        if let Some(word) = &mut self.word {
            word.text.push_str(text);
        }
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn end_command(&mut self) {
        self.end_word();
        self.pipe.push(std::mem::take(&mut self.words));
    }

    fn end_pipe(&mut self) {
        self.end_command();
        self.done.push(std::mem::take(&mut self.pipe));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(command: &str) -> Vec<String> {
        code(command).into_iter().map(|code| format!("{}: {}", code.reader, &command[code.span])).collect()
    }

    #[test]
    fn nested_shell_code_is_found() {
        for (command, expected) in [
            ("sh -c \"echo X\" sh X", "sh -c: \"echo X\""),
            ("sudo -u me /bin/bash -lc 'X' y", "bash -c: 'X'"),
            ("eval \"$x\"", "eval: \"$x\""),
            ("ssh -p 22 host \"a; b\"", "ssh: \"a; b\""),
            ("find . -exec sh -c 'X' {} +", "sh -c: 'X'"),
            ("bash <<< 'X'", "bash <<<: 'X'"),
            ("python3 -c 'X' y", "python3 -c: 'X'"),
            ("su me -c 'X'", "su -c: 'X'"),
            ("bash -o pipefail -c 'X'", "bash -c: 'X'"),
            ("cat <<A\nit's\nA\nsh -c X", "sh -c: X"),
        ] {
            assert_eq!(found(command), [expected], "{command}");
        }
        assert_eq!(found("echo X | sh"), ["| sh: echo", "| sh: X"]);
        assert_eq!(
            found("a; echo X | tee y | bash -s -- z"),
            ["| bash -s: echo", "| bash -s: X", "| bash -s: tee", "| bash -s: y"]
        );
        assert_eq!(found("echo X | xargs -I{} sh -c 'y {}'"), ["sh -c: 'y {}'", "| xargs sh -c: echo", "| xargs sh -c: X"]);
        assert_eq!(found("echo X | ssh host"), ["| ssh: echo", "| ssh: X"]);
    }

    #[test]
    fn plain_arguments_are_not_code() {
        for command in [
            "sh script.sh X",
            "bash script.sh -c X",
            "python3 tool.py -c X",
            "bash -s X",
            "echo sh -n X",
            "echo eval X",
            "ssh X",
            "ssh -i key X",
            "echo X | xargs rm",
            "echo X | bash script.sh",
            "echo X | grep sh",
            "a X || sh",
            "a X; sh < y",
            "# sh -c X\necho X",
            "./ssh-thing host X",
        ] {
            assert_eq!(found(command), [] as [&str; 0], "{command}");
        }
    }
}
