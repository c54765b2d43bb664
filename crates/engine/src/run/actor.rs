//! The actor, as recorded in histories, and the caller, who also carries their authority.

use crate::run::refusal::Refusal;
use serde::{Deserialize, Serialize};

/// Who sends a command, and through which channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    pub credential: Credential,
    /// A display name. People are identified by `uid`.
    pub name: String,
    /// The stored key is older than the field name.
    #[serde(rename = "channel")]
    pub channel: Channel,
    /// Whether there was a controlling terminal.
    pub terminal: bool,
    /// The task from within which the command was sent, if any.
    pub inside_task: Option<String>,
    /// The operating system user, if the command came from one. It is never taken from the environment.
    #[serde(default)]
    pub uid: Option<u32>,
}

impl Actor {
    /// Lockgate itself, carrying out a decision.
    pub fn driver() -> Self {
        Self {
            credential: Credential::System,
            name: "lockgate".into(),
            channel: Channel::Driver,
            terminal: false,
            inside_task: None,
            uid: None,
        }
    }

    /// An automatic answer in place of a person's.
    pub fn automatic(name: &str, channel: Channel) -> Self {
        Self { name: name.to_owned(), channel, ..Self::driver() }
    }

    /// Refuses actors inside a task. `what` completes "may not …".
    pub fn outside_tasks(&self, what: &str) -> Result<(), Refusal> {
        match &self.inside_task {
            Some(task) => Err(Refusal::InsideTask { what: what.to_owned(), task: task.clone() }),
            None => Ok(()),
        }
    }
}

/// What an actor may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Credential {
    /// May answer holds.
    Person,
    /// May work, but never answer holds.
    Agent,
    /// May read.
    Viewer,
    /// May answer holds and manage runs.
    Admin,
    /// Lockgate itself.
    System,
}

/// The channel of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// Typed at a prompt that showed the hold.
    Prompt,
    /// Given on the command line.
    Command,
    /// A program that embeds Lockgate and has identified the person itself.
    Program,
    /// Given in advance, without seeing the hold.
    Preset,
    /// The drive loop.
    Driver,
    /// The workflow's policy.
    Policy,
    /// The default answer of a hold that does not block its run.
    Default,
    /// The answer that applies after a deadline.
    Deadline,
}

impl Channel {
    /// Whether the answer was given without a person, so that a person may change it later.
    pub fn is_automatic(self) -> bool {
        match self {
            Self::Policy | Self::Default | Self::Deadline => true,
            Self::Prompt | Self::Command | Self::Program | Self::Preset | Self::Driver => false,
        }
    }
}

/// Whether the project's settings require a controlling terminal for decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalRule {
    /// Only a person at a terminal may decide.
    Required,
    /// A person may also decide without a terminal.
    NotRequired,
}

/// Whether a caller may make decisions about runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authority {
    /// A person, verified as far as the project's rule requires.
    Decides,
    /// The command was sent from within a task.
    InsideTask,
    /// An agent, a viewer, or Lockgate itself.
    PersonRequired,
    /// A person without the terminal that the project requires.
    TerminalRequired,
}

/// Who sends a command, and with what authority.
///
/// The authority is determined once, where the command enters, and cannot be set separately: no code between that edge and
/// `decide` can turn an agent into a person. Histories record only the actor, because the project's rule may change later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    actor: Actor,
    authority: Authority,
}

impl Caller {
    pub fn new(actor: Actor, rule: TerminalRule) -> Self {
        let authority = Self::authority_of(&actor, rule);
        Self { actor, authority }
    }

    /// Lockgate itself, which never decides.
    pub fn driver() -> Self {
        Self { actor: Actor::driver(), authority: Authority::PersonRequired }
    }

    fn authority_of(actor: &Actor, rule: TerminalRule) -> Authority {
        if actor.inside_task.is_some() {
            return Authority::InsideTask;
        }
        match (actor.credential, rule) {
            (Credential::Agent | Credential::Viewer | Credential::System, _) => Authority::PersonRequired,
            (Credential::Person | Credential::Admin, TerminalRule::Required) if !actor.terminal => Authority::TerminalRequired,
            (Credential::Person | Credential::Admin, TerminalRule::Required | TerminalRule::NotRequired) => Authority::Decides,
        }
    }

    /// The actor, as recorded in a history.
    pub fn actor(&self) -> &Actor {
        &self.actor
    }

    pub fn authority(&self) -> Authority {
        self.authority
    }

    /// Refuses callers who may not decide about runs. `what` completes "may not …".
    pub fn may_decide(&self, what: &str) -> Result<(), Refusal> {
        match self.authority {
            Authority::Decides => Ok(()),
            Authority::InsideTask => self.actor.outside_tasks(what),
            Authority::PersonRequired => Err(Refusal::PersonRequired { what: what.to_owned(), actor: self.actor.clone() }),
            Authority::TerminalRequired => Err(Refusal::TerminalRequired { what: what.to_owned() }),
        }
    }

    /// Refuses callers inside a task. `what` completes "may not …".
    pub fn outside_tasks(&self, what: &str) -> Result<(), Refusal> {
        self.actor.outside_tasks(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person() -> Actor {
        Actor { credential: Credential::Person, terminal: true, uid: Some(1000), ..Actor::driver() }
    }

    fn authority(actor: Actor, rule: TerminalRule) -> Authority {
        Caller::new(actor, rule).authority()
    }

    #[test]
    fn only_people_decide_and_only_at_a_terminal_where_the_project_requires_one() {
        for credential in [Credential::Person, Credential::Admin] {
            let at_terminal = Actor { credential, ..person() };
            let without = Actor { terminal: false, ..at_terminal.clone() };
            assert_eq!(authority(at_terminal, TerminalRule::Required), Authority::Decides);
            assert_eq!(authority(without.clone(), TerminalRule::Required), Authority::TerminalRequired);
            assert_eq!(authority(without, TerminalRule::NotRequired), Authority::Decides);
        }
        for credential in [Credential::Agent, Credential::Viewer, Credential::System] {
            let actor = Actor { credential, ..person() };
            assert_eq!(authority(actor, TerminalRule::NotRequired), Authority::PersonRequired, "{credential:?}");
        }
        assert_eq!(Caller::driver(), Caller::new(Actor::driver(), TerminalRule::NotRequired));
    }

    #[test]
    fn a_person_inside_a_task_may_not_decide() {
        let inside = Actor { inside_task: Some("a/b".into()), ..person() };
        let caller = Caller::new(inside, TerminalRule::NotRequired);
        assert_eq!(caller.authority(), Authority::InsideTask);
        assert!(matches!(caller.may_decide("answer"), Err(Refusal::InsideTask { task, .. }) if task == "a/b"));
    }

    #[test]
    fn the_stored_form_of_an_actor_keeps_its_keys() {
        let stored = serde_json::to_string(&person()).unwrap();
        let expected =
            r#"{"credential":"person","name":"lockgate","channel":"driver","terminal":true,"inside_task":null,"uid":1000}"#;
        assert_eq!(stored, expected);
        assert_eq!(serde_json::from_str::<Actor>(expected).unwrap(), person());
    }
}
