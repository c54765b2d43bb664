//! Prints problems of files: the message, the location with the source underlined, and the fix.

use crate::error::heading;
use crate::print;
use lockgate::sanitize;
use lockgate::view::shell_word;
use lockgate_engine::plural::counted;
use lockgate_engine::spec::problem::{Problem, Severity};
use lockgate_runner::start::WorkflowFile;
use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, NamedSource, SourceCode, SourceSpan,
    SpanContents,
};
use std::fmt;
use std::sync::Arc;

/// The maximum number of problems shown. With more, the first ones would scroll out of view.
const MOST_SHOWN: usize = 20;
/// Longer lines are shown as an excerpt.
const LONGEST_LINE: usize = 600;
/// The number of characters on each side of an excerpt.
const EXCERPT: usize = 50;

/// Prints the first problems of a file, or of the files of a directory, and the total.
pub(crate) fn report(file: &WorkflowFile) {
    let chosen = chosen(&file.problems);
    let (own, others): (Vec<_>, Vec<_>) = file.problems.iter().zip(&chosen).partition(|(problem, _)| problem.file.is_none());
    let name = file.path.to_string_lossy();
    let mut text = rendered(&name, &file.source, &own);
    for of_one in others.chunk_by(|(one, _), (other, _)| one.file == other.file) {
        let path = file.path.join(of_one[0].0.file.as_deref().unwrap_or_default());
        let source = file.includes.get(&path).map(String::as_str).unwrap_or_default();
        text += &rendered(&path.to_string_lossy(), source, of_one);
    }
    print::talk(&format!("{text}{}", rest(&name, &file.problems, &chosen)));
}

pub(crate) fn print_problem(name: &str, source: &str, problem: &Problem) {
    print::talk(&rendered(name, source, &[(problem, &true)]));
}

/// Chooses the problems to show: errors before warnings, because an error may cause any number of warnings.
fn chosen(problems: &[Problem]) -> Vec<bool> {
    let mut chosen = vec![false; problems.len()];
    let mut left = MOST_SHOWN;
    for severity in [Severity::Error, Severity::Warning] {
        for (problem, chosen) in problems.iter().zip(&mut chosen) {
            if problem.severity == severity && problem.untold == 0 && left > 0 {
                *chosen = true;
                left -= 1;
            }
        }
    }
    chosen
}

/// The chosen problems of one file, and its total.
fn rendered(name: &str, source: &str, problems: &[(&Problem, &bool)]) -> String {
    if problems.is_empty() {
        return String::new();
    }
    let shown = Arc::new(ShownSource::new(&sanitize::line(name), source));
    let mut text = String::new();
    for (problem, _) in problems.iter().filter(|(_, chosen)| **chosen) {
        render(&mut text, problem, &shown);
    }
    text += &format!(
        "{}: {}\n",
        sanitize::line(name),
        lockgate::workflow_file::summary(problems.iter().map(|(problem, _)| *problem))
    );
    text
}

/// How many problems are not shown, and the command that lists them.
fn rest(name: &str, problems: &[Problem], chosen: &[bool]) -> String {
    let left: usize = problems.iter().zip(chosen).filter(|(_, chosen)| !**chosen).map(|(problem, _)| problem.weight()).sum();
    if left == 0 {
        return String::new();
    }
    let command = sanitize::line(&format!("lockgate validate {} --json", shell_word(name))).into_owned();
    let listed = problems.iter().filter(|problem| problem.untold == 0).count();
    let lists = if listed == problems.len() { "them all".to_owned() } else { format!("{listed} of all") };
    let left = counted(left, "more problem");
    format!("… and {left} ({} lists {lists})\n", print::styled(print::HELP, command))
}

fn render(text: &mut String, problem: &Problem, source: &Arc<ShownSource>) {
    let colour = print::stderr_has_colour();
    let theme = if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme).with_links(false).with_width(120).with_context_lines(1);
    let word = match problem.severity {
        Severity::Error => heading(print::ERROR, "error", problem.code.text()),
        Severity::Warning => heading(print::WARNING, "warning", problem.code.text()),
    };
    *text += &format!("{word} {}\n", sanitize::line(&problem.message));
    let placed = Placed { problem, span: source.span(problem), source: source.clone() };
    let mut drawn = String::new();
    if source.has_long_lines(&placed.span) {
        *text += &source.excerpt(problem, &placed.span);
    } else if handler.render_report(&mut drawn, &placed).is_ok() {
        text.extend(picture(&drawn).map(|line| format!("{line}\n")));
    } else {
        *text += &format!("  {}:{}:{}\n", source.inner.name(), problem.line, problem.column);
    }
    if let Some(help) = &problem.help {
        *text += &format!("  {} {}\n", print::styled(print::HELP, "help:"), sanitize::line(help));
    }
}

/// The drawn source without its heading, which repeats the code and the message. Colours contain brackets too, so they are stripped
/// before the search.
fn picture(drawn: &str) -> impl Iterator<Item = &str> {
    let names_the_file = |line: &&str| anstream::adapter::strip_str(line).to_string().contains("─[");
    drawn.lines().skip_while(move |line| !names_the_file(line)).filter(|line| !line.trim().is_empty())
}

/// The text of a file with control characters made visible, and a map from its original bytes to it.
struct ShownSource {
    inner: NamedSource<String>,
    moved: Vec<(usize, usize)>,
}

impl ShownSource {
    fn new(name: &str, source: &str) -> Self {
        let (mut shown, mut moved) = (String::with_capacity(source.len()), Vec::new());
        let mut rest = 0;
        for (at, character) in source.char_indices() {
            if matches!(character, '\n' | '\t') || !sanitize::is_control(character) {
                continue;
            }
            shown += &source[rest..at];
            // In a CRLF line break, the return is not shown.
            if !(character == '\r' && source[at + 1..].starts_with('\n')) {
                shown += &sanitize::line(&source[at..at + character.len_utf8()]);
            }
            rest = at + character.len_utf8();
            moved.push((rest, shown.len()));
        }
        shown += &source[rest..];
        Self { inner: NamedSource::new(name, shown), moved }
    }

    fn position(&self, byte: usize) -> usize {
        let before = self.moved.partition_point(|(from, _)| *from <= byte);
        let (from, to) = before.checked_sub(1).map_or((0, 0), |last| self.moved[last]);
        (to + (byte - from)).min(self.inner.inner().len())
    }

    /// Whether the lines around a span are too long to draw.
    fn has_long_lines(&self, span: &SourceSpan) -> bool {
        let text = self.inner.inner();
        let before = text[..span.offset()].rsplitn(3, '\n').take(2).map(str::len).max().unwrap_or(0);
        let after = text[span.offset()..].splitn(3, '\n').take(2).map(str::len).max().unwrap_or(0);
        before + after > LONGEST_LINE
    }

    /// The part of a long line around a span, which is underlined.
    fn excerpt(&self, problem: &Problem, span: &SourceSpan) -> String {
        let text = self.inner.inner();
        let before: Vec<char> = text[..span.offset()].chars().rev().take_while(|c| *c != '\n').take(EXCERPT).collect();
        let rest: String = text[span.offset()..].chars().take_while(|c| *c != '\n').take(EXCERPT).collect();
        let before: String = before.into_iter().rev().collect();
        let marked = text[span.offset()..span.offset() + span.len()].chars().count().clamp(1, EXCERPT);
        let indent = " ".repeat(before.chars().count());
        format!(
            "  {}:{}:{}\n    …{before}{rest}…\n     {indent}{}\n",
            self.inner.name(),
            problem.line,
            problem.column,
            "^".repeat(marked)
        )
    }

    fn span(&self, problem: &Problem) -> SourceSpan {
        let (start, end) = (self.position(problem.span.start), self.position(problem.span.end));
        // Only the first line is underlined; a bracket around a whole block is harder to read.
        let line_end = self.inner.inner()[start..].find('\n').map_or(end, |length| start + length);
        let end = end.min(line_end).max(start);
        (start, end - start).into()
    }
}

struct Placed<'p> {
    problem: &'p Problem,
    span: SourceSpan,
    source: Arc<ShownSource>,
}

impl fmt::Display for Placed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.problem.code, f)
    }
}

impl fmt::Debug for Placed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Placed<'_> {}

impl Diagnostic for Placed<'_> {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(self)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(None, self.span))))
    }
}

impl SourceCode for Placed<'_> {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        self.source.inner.read_span(span, before, after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockgate_engine::spec::code::ProblemCode;

    fn problem(source: &str, part: &str) -> Problem {
        let start = source.find(part).unwrap();
        let line = source[..start].matches('\n').count() + 1;
        let column = start - source[..start].rfind('\n').map_or(0, |at| at + 1) + 1;
        Problem {
            code: ProblemCode::UnknownPhase,
            severity: Severity::Error,
            message: format!("phase {part:?} is not defined"),
            span: start..start + part.len(),
            line,
            column,
            help: Some("did you mean \"review\"?".into()),
            file: None,
            untold: 0,
        }
    }

    fn rendered(source: &str, part: &str) -> String {
        let mut text = String::new();
        render(&mut text, &problem(source, part), &Arc::new(ShownSource::new("flow.yaml", source)));
        anstream::adapter::strip_str(&text).to_string()
    }

    #[test]
    fn the_error_code_is_printed_once_with_and_without_colors() {
        for (head, place) in [
            ("  × unknown-key", "   ╭─[flow.yaml:2:3]"),
            ("  \x1b[31m×\x1b[0m unknown-key", "   ╭─[\x1b[36;1mflow.yaml:2:3\x1b[0m]"),
        ] {
            let drawn = format!("unknown-key\n\n{head}\n{place}\n 2 │ x\n   ╰────\n");
            assert_eq!(picture(&drawn).collect::<Vec<_>>(), [place, " 2 │ x", "   ╰────"]);
        }
    }

    #[test]
    fn a_problem_is_printed_with_its_position_underlined_and_its_help() {
        let text = rendered("name: x\nphases:\n  - target: reveiw\n", "reveiw");
        assert!(text.starts_with("error[unknown-phase]: phase \"reveiw\" is not defined\n"), "{text}");
        assert!(text.contains("flow.yaml:3:13"), "{text}");
        assert!(text.contains("───"), "{text}");
        assert!(text.ends_with("  help: did you mean \"review\"?\n"), "{text}");
    }

    #[test]
    fn control_characters_are_sanitized_and_the_right_position_is_underlined() {
        let text = rendered("name: \"\u{9b}\x1b[31m\r\n\u{202e}\" # reveiw\r\n", "reveiw");
        assert!(!text.contains(|character: char| character != '\n' && sanitize::is_control(character)), "{text:?}");
        let lines: Vec<&str> = text.lines().collect();
        let marked = lines.iter().position(|line| line.contains("# reveiw")).unwrap();
        let column = |line: &str, part: &str| line[..line.find(part).unwrap()].chars().count();
        assert_eq!(column(lines[marked], "reveiw"), column(lines[marked + 1], "─"), "{text}");
    }

    #[test]
    fn only_the_first_problems_are_shown_with_errors_before_warnings() {
        let source = "phases: reveiw\n";
        let error = problem(source, "reveiw");
        let warning = Problem { severity: Severity::Warning, ..error.clone() };
        let untold = Problem { untold: 40, ..error.clone() };
        let few = [error.clone(), warning.clone()];
        assert_eq!((chosen(&few), rest("a.yaml", &few, &chosen(&few))), (vec![true, true], String::new()));
        let mut many = vec![warning; 30];
        many.push(error);
        let shown = chosen(&many);
        assert_eq!(shown.iter().filter(|shown| **shown).count(), MOST_SHOWN);
        assert!(shown[30] && shown[18] && !shown[19]);
        let rendered =
            |problems: &[Problem]| anstream::adapter::strip_str(&rest("a b.yaml", problems, &chosen(problems))).to_string();
        assert_eq!(rendered(&many), "… and 11 more problems (lockgate validate 'a b.yaml' --json lists them all)\n");
        assert_eq!(lockgate::workflow_file::summary(&many), "1 error, 30 warnings");
        many.push(untold);
        assert_eq!(rendered(&many), "… and 51 more problems (lockgate validate 'a b.yaml' --json lists 31 of all)\n");
        assert_eq!(lockgate::workflow_file::summary(&many), "1 error, 30 warnings and 40 more problems");
    }
}
