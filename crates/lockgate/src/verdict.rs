//! Whether a run can continue from a snapshot, with every reason that speaks against it.

use lockgate_runner::git::git;
use lockgate_runner::snapshot::{GitState, Prerequisites};
use serde::Serialize;
use std::path::Path;
use std::process::{Command, Stdio};

/// What to do with a snapshot, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Nothing speaks against it.
    Resume,
    /// The run can continue, but may fail later.
    ProceedWithWarning,
    /// A person must decide.
    PromptUser,
    /// The run cannot continue in this state of the project.
    StartFresh,
}

impl Action {
    /// The name in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Resume => "resume",
            Self::ProceedWithWarning => "proceed_with_warning",
            Self::PromptUser => "prompt_user",
            Self::StartFresh => "start_fresh",
        }
    }
}

/// One reason, and what it alone would lead to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "fields whose names say what they hold; docs/reference/json.md lists them")]
pub struct Reason {
    pub action: Action,
    pub text: String,
}

/// The strongest action, and all reasons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "fields whose names say what they hold; docs/reference/json.md lists them")]
pub struct Verdict {
    pub action: Action,
    pub reasons: Vec<Reason>,
}

impl Verdict {
    fn of(reasons: Vec<Reason>) -> Self {
        let strongest = reasons.iter().map(|reason| reason.action).max();
        Self { action: strongest.unwrap_or(Action::Resume), reasons }
    }

    /// Compares what a snapshot needs with the project as it is now.
    pub fn check(needs: &Prerequisites, project: &Path) -> Self {
        let mut reasons = Vec::new();
        let mut add = |action, text: String| reasons.push(Reason { action, text });
        if needs.branch.is_some() || needs.commit.is_some() {
            match GitState::read(project) {
                Ok(Some(now)) => git_reasons(needs, &now, project, &mut add),
                Ok(None) => add(Action::PromptUser, "the project is no longer in a git repository".to_owned()),
                Err(error) => add(Action::PromptUser, format!("the state of the git repository is unknown: {error}")),
            }
        }
        for program in needs.agents.iter().filter(|program| !can_start(program, project)) {
            add(Action::ProceedWithWarning, format!("the agent program `{program}` is not found"));
        }
        for name in needs.environment.iter().filter(|name| std::env::var_os(name).is_none()) {
            add(Action::ProceedWithWarning, format!("the environment variable {name} is not set"));
        }
        Self::of(reasons)
    }
}

fn git_reasons(needs: &Prerequisites, now: &GitState, project: &Path, add: &mut dyn FnMut(Action, String)) {
    if let Some(branch) = &needs.branch {
        let name = format!("refs/heads/{branch}");
        if git(project, &["rev-parse", "--verify", "--quiet", "--end-of-options", &name]).is_err() && now.commit.is_some() {
            add(Action::StartFresh, format!("the branch {branch} no longer exists"));
        } else if now.branch.as_ref() != Some(branch) {
            let current = now.branch.as_deref().map_or("no branch".to_owned(), |branch| format!("the branch {branch}"));
            add(Action::PromptUser, format!("{current} is checked out, and the snapshot was taken on {branch}"));
        }
    }
    if let Some(commit) = &needs.commit {
        let object = format!("{commit}^{{commit}}");
        if git(project, &["rev-parse", "--verify", "--quiet", "--end-of-options", &object]).is_err() {
            add(Action::PromptUser, format!("the commit {} no longer exists", &commit[..commit.len().min(12)]));
        }
    }
}

/// Whether a shell started in the project finds the program. Shell builtins count.
pub fn can_start(program: &str, project: &Path) -> bool {
    let found = Command::new("sh")
        .args(["-c", "command -v -- \"$1\"", "sh", program])
        .current_dir(project)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    found.is_ok_and(|status| status.success())
}
