//! The fenced blocks of a page, and the commands of a transcript.

/// A page, as far as its blocks are concerned.
pub(super) struct Page {
    pub(super) blocks: Vec<Block>,
}

/// A fenced block.
pub(super) struct Block {
    /// The line of the opening fence, counted from 1.
    pub(super) line: usize,
    pub(super) language: String,
    pub(super) kind: Kind,
    pub(super) lines: Vec<String>,
}

pub(super) enum Kind {
    File { name: String, invalid: bool },
    Console(Place),
    Setup,
    Fragment,
    Data,
}

/// Where the commands of a transcript run.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// In a terminal, with input and output redirected.
    Redirected,
    /// In a terminal.
    Terminal,
    /// Where there is no terminal.
    Ci,
}

/// A command of a transcript with the output that the page shows.
pub(super) struct Command {
    pub(super) line: usize,
    pub(super) text: String,
    /// The line on the page where the output starts.
    pub(super) output_line: usize,
    pub(super) output: Vec<String>,
}

const DATA: &[&str] = &["json", "rust", "toml", "ini", "text"];

impl Page {
    /// Reads the blocks of a page. An error names its line.
    pub(super) fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut blocks: Vec<Block> = Vec::new();
        let (mut paragraph, mut last_was_empty) = (String::new(), false);
        let mut lines = text.lines().enumerate();
        while let Some((at, line)) = lines.next() {
            let Some(info) = line.trim_start().strip_prefix("```") else {
                if line.trim().is_empty() {
                    last_was_empty = true;
                } else {
                    if std::mem::take(&mut last_was_empty) {
                        paragraph.clear();
                    }
                    paragraph += line;
                    paragraph.push('\n');
                }
                continue;
            };
            let indentation = line.len() - line.trim_start().len();
            let mut body = Vec::new();
            loop {
                match lines.next() {
                    None => return Err((at + 1, "the block is not closed".to_owned())),
                    Some((_, line)) if line.trim() == "```" => break,
                    Some((_, line)) => body.push(line.get(indentation..).unwrap_or_default().to_owned()),
                }
            }
            let kind = kind(info, &body, &paragraph).map_err(|problem| (at + 1, problem))?;
            let language = info.split_whitespace().next().unwrap_or_default().to_owned();
            blocks.push(Block { line: at + 1, language, kind, lines: body });
            paragraph.clear();
        }
        Ok(Self { blocks })
    }
}

fn kind(info: &str, body: &[String], paragraph: &str) -> Result<Kind, String> {
    let words: Vec<&str> = info.split_whitespace().collect();
    let Some(language) = words.first().copied() else { return Err("the block has no info string, such as `console`".to_owned()) };
    let has = |word: &str| words.contains(&word);
    if has("fragment") {
        let said = paragraph.to_lowercase();
        let says = ["fragment", "excerpt", "part of"].iter().any(|word| said.contains(word));
        return says
            .then_some(Kind::Fragment)
            .ok_or_else(|| "the text before the block must say that it is a fragment".to_owned());
    }
    if let Some(name) = words.iter().find_map(|word| word.strip_prefix("file=")) {
        return Ok(Kind::File { name: name.to_owned(), invalid: has("invalid") });
    }
    match language {
        "console" if body.first().is_none_or(|line| !line.starts_with("$ ")) => {
            Err("a console block starts with `$ ` and a command".to_owned())
        }
        "console" if has("terminal") => Ok(Kind::Console(Place::Terminal)),
        "console" if has("ci") => Ok(Kind::Console(Place::Ci)),
        "console" => Ok(Kind::Console(Place::Redirected)),
        "sh" if has("setup") => Ok(Kind::Setup),
        "text" if body.iter().any(|line| line.starts_with("$ ")) => Err("the block shows a command; use `console`".to_owned()),
        "json" if !is_json(body) => Err("the JSON does not parse".to_owned()),
        _ if DATA.contains(&language) => Ok(Kind::Data),
        _ => {
            Err(format!("the block is not checked: name its file (`{language} file=NAME`), use `console`, or mark it `fragment`"))
        }
    }
}

/// Whether the text is one JSON value, or one on each line.
fn is_json(body: &[String]) -> bool {
    let parses = |text: &str| serde_json::from_str::<serde_json::Value>(text).is_ok();
    parses(&body.join("\n")) || body.iter().all(|line| parses(line))
}

impl Block {
    pub(super) fn body(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// The commands of a transcript. A command continues after a backslash at the end of a line.
    pub(super) fn commands(&self) -> Vec<Command> {
        let mut commands: Vec<Command> = Vec::new();
        for (at, line) in self.lines.iter().enumerate() {
            let here = self.line + 1 + at;
            if let Some(text) = line.strip_prefix("$ ") {
                commands.push(Command { line: here, text: text.to_owned(), output_line: here + 1, output: Vec::new() });
            } else if let Some(command) = commands.last_mut() {
                if command.output.is_empty() && command.text.ends_with('\\') {
                    command.text = format!("{}\n{line}", command.text);
                    command.output_line = here + 1;
                } else {
                    command.output.push(line.clone());
                }
            }
        }
        commands
    }
}
