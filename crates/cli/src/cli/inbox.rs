//! `lockgate inbox`: everything that waits for a person, in every run.

use super::after_decision::{ResumeMode, continue_run};
use super::help::examples;
use crate::authority::{Authority, Decision};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::Project;
use crate::pagination::PageArguments;
use crate::print::{self, FAINT, HELP, STRONG, styled};
use crate::prompt::{self, HoldPrompt, Line, PromptOutcome, Queue};
use crate::{line_prompt, prompt_answer, signals};
use lockgate::lists::{HoldLine, Part};
use lockgate::select::{self, HoldName};
use lockgate::{human_time, sanitize};
use lockgate_engine::hold::HoldState;
use lockgate_engine::run::command::Channel;
use lockgate_engine::run::index::HoldRow;
use lockgate_engine::time::Timestamp;
use lockgate_runner::driver::Halt;
use lockgate_runner::load::load;
use std::path::Path;
use tokio::sync::watch;

/// List what waits for a person, and answer it
///
/// At a terminal you pick a hold, read it and answer it, one after another. Elsewhere the holds are listed, the longest waiting first.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&["lockgate inbox", "lockgate inbox --list", "lockgate inbox --json"]))]
pub(super) struct Arguments {
    #[command(flatten)]
    page: PageArguments,
    /// Only list the holds, with the commands that answer them
    #[arg(long)]
    list: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Arguments {
    pub(super) fn authority(&self) -> Authority<'_> {
        match self.is_interactive() {
            true => {
                Authority::Person(Decision::about_project("answer a hold").help("list the holds with `lockgate inbox --list`"))
            }
            false => Authority::Anyone,
        }
    }

    fn is_interactive(&self) -> bool {
        !self.list && !self.json && self.page.is_first() && print::is_interactive() && print::stdout_is_terminal()
    }
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    if arguments.is_interactive() {
        return answer_all(&crate::open::open(root)?).await;
    }
    let project = crate::open::open_read_only(root)?;
    let Part { lines, more } = project.inbox(arguments.page.limit(), arguments.page.after.as_deref()).await?;
    if arguments.json {
        print::json(&lines);
    } else {
        print_list(&project, &lines).await?;
    }
    if let (true, Some(last)) = (more, lines.last()) {
        arguments.page.print_more("inbox", &last.hold.id);
    }
    Ok(Exit::Done)
}

async fn print_list(project: &Project, lines: &[HoldLine]) -> Result<(), CommandError> {
    if lines.is_empty() {
        print::say("Nothing waits for a person.");
    }
    let now = project.now();
    let mut out = String::new();
    for line in lines {
        out += &text(line, project.continues_by_itself(&line.run).await?, now);
    }
    print::data(&out);
    Ok(())
}

fn text(line: &HoldLine, driven: bool, now: Timestamp) -> String {
    let hold = &line.hold;
    let mut text = format!("{}\n  {}\n", heading(line, now), lockgate::phrases::first_line(&hold.prompt));
    text.extend(crate::run_text::deadline_line(hold, now).map(|line| format!("  {line}\n")));
    text += &crate::run_text::shown_text(hold, "  ");
    if hold.text.is_some() || hold.shows_content() {
        text.push_str(&format!("  see details: {}\n", styled(HELP, format_args!("lockgate why {}", line.run))));
    }
    for command in hold.next_commands(line.run.as_str(), !driven, now) {
        text.push_str(&format!("  {}\n", styled(HELP, sanitize::line(&command))));
    }
    text
}

fn heading(line: &HoldLine, now: Timestamp) -> String {
    let hold = &line.hold;
    let feature = line.feature.as_deref().map(|feature| format!(" ({feature})")).unwrap_or_default();
    let phase = hold.phase.as_deref().map(|phase| format!(", phase {phase}")).unwrap_or_default();
    let what = format!("{}{feature}{phase}, {}", line.workflow, hold.kind);
    let name = styled(STRONG, format_args!("{}@{}", hold.id, hold.revision));
    format!("{name}  run {}  {}  {}", line.run, sanitize::line(&what), human_time::ago(now, hold.since))
}

/// How many holds a person picks from at a time.
const PICKED_FROM: usize = 20;

/// Lets the person at the terminal pick, read and answer one hold after another.
pub(super) async fn answer_all(project: &Project) -> Result<Exit, CommandError> {
    let halt = Halt::default();
    signals::listen(&halt)?;
    loop {
        let Part { lines, more } = project.inbox(PICKED_FROM, None).await?;
        if lines.is_empty() {
            print::say("Nothing waits for a person.");
            return Ok(Exit::Done);
        }
        print_choices(&lines, more, project.now());
        let Some(line) = pick(&lines, &halt).await else {
            return Ok(if halt.is_halted() { Exit::halted(halt.reason()) } else { Exit::Done });
        };
        let named = HoldName { id: line.hold.id.clone(), revision: None };
        let row = select::hold(project.store(), &named).await?.row;
        match ask(project, &row, &halt).await? {
            // In the background, because the terminal is needed for the next hold.
            Asked::Answered => drop(continue_run(project, &row.run, ResumeMode::Background).await?),
            Asked::NotAnswered => {}
            Asked::Stopped(exit) => return Ok(exit),
        }
    }
}

fn print_choices(lines: &[HoldLine], more: bool, now: Timestamp) {
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        let number = styled(STRONG, format_args!("{:>3}.", at + 1));
        text += &format!("{number} {}\n     {}\n", heading(line, now), lockgate::phrases::first_line(&line.hold.prompt));
    }
    if more {
        text += &format!("     {}\n", styled(FAINT, format_args!("and more; the first {PICKED_FROM} are shown")));
    }
    print::talk(&text);
}

/// The hold that the person picks; none to leave.
async fn pick<'l>(lines: &'l [HoldLine], halt: &Halt) -> Option<&'l HoldLine> {
    let question = match lines.len() {
        1 => "Answer it? [Enter: yes, q: quit] ".to_owned(),
        count => format!("Answer which one? [1-{count}, Enter: 1, q: quit] "),
    };
    loop {
        let typed = line_prompt::ask_unless_halted(&question, halt).await?;
        match typed.trim() {
            "q" | "Q" | "quit" | "n" | "no" => return None,
            "" | "y" | "yes" => return lines.first(),
            number => match number.parse::<usize>().ok().and_then(|number| lines.get(number.checked_sub(1)?)) {
                Some(line) => return Some(line),
                None => print::say(format_args!("type a number from 1 to {}, or q", lines.len())),
            },
        }
    }
}

/// The outcome of asking about a hold.
pub(super) enum Asked {
    Answered,
    /// The hold is closed, or nothing can be typed.
    NotAnswered,
    /// The person pressed Ctrl+C, or a signal asks the program to stop.
    Stopped(Exit),
}

/// Shows a hold at the terminal, asks for the answer and records it.
pub(super) async fn ask(project: &Project, row: &HoldRow, halt: &Halt) -> Result<Asked, CommandError> {
    let state = load(project.store(), &row.run).await?;
    let Some(hold) = state.holds.get(&row.hold).filter(|hold| hold.state == HoldState::Open) else {
        print::note(format_args!("hold {} no longer waits for an answer; see `lockgate log {}`", row.hold, row.run));
        return Ok(Asked::NotAnswered);
    };
    let about = HoldPrompt::of(&state, hold, project.store()).await?;
    // The sender lives as long as the question, because only this hold is asked about here, even if others open.
    let (_open, receiver) = watch::channel(vec![(hold.id.clone(), hold.revision)]);
    let (mut queue, mut draft) = (Queue::of(receiver), Line::default());
    let (option, feedback) = match prompt::ask(&about, prompt::Context { draft: &mut draft, queue: &mut queue, halt }).await? {
        PromptOutcome::Chose { option, feedback } => (option, feedback),
        PromptOutcome::Elsewhere => {
            print::note(format_args!("hold {} was answered elsewhere, or has changed", row.hold));
            return Ok(Asked::NotAnswered);
        }
        PromptOutcome::NoOneThere => return Ok(Asked::Stopped(Exit::Waiting)),
        PromptOutcome::Interrupted => return Ok(Asked::Stopped(Exit::Interrupted)),
        PromptOutcome::Halted => return Ok(Asked::Stopped(Exit::halted(halt.reason()))),
    };
    let recorded = prompt_answer::record(project, project.caller(Channel::Prompt), hold, option, feedback).await?;
    Ok(if recorded { Asked::Answered } else { Asked::NotAnswered })
}
