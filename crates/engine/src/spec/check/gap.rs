//! Gap checks and the finalization.

use super::Checker;
use super::fields::{Fields, Format, Key, Shape};
use super::subagent::SUBAGENT_LIST;
use crate::spec::code::ProblemCode;
use crate::spec::includes;
use crate::spec::problem::shown;
use crate::spec::syntax::Node;
use crate::spec::workflow::{Criterion, Finalization, GapAction, GapCheck};
use crate::template::{Roots, mustache};
use std::collections::BTreeSet;

const ACTIONS: [(&str, GapAction); 4] = {
    let [retry, spawn, escalate, abort] = GapAction::ALL;
    [(retry.as_str(), retry), (spawn.as_str(), spawn), (escalate.as_str(), escalate), (abort.as_str(), abort)]
};

const MAX_ITERATIONS: u32 = 1_000;

/// After this many checks that found gaps, a person is asked.
const ITERATIONS: u32 = 3;

pub(super) static GAP_CHECK: Format = Format {
    name: "gap_check",
    what: "`gap_check`",
    known: &[
        Key::optional("enabled", Shape::Boolean, "`false` disables the check.").default("true"),
        Key::optional("criteria", Shape::List(&CRITERION, 0), "Conditions that must all hold."),
        Key::optional(
            "script",
            Shape::Filled,
            "A function body that returns `{ status, gaps, action, additionalAgents, message }`; `status: 'complete'` means that nothing is missing.",
        ),
        Key::optional("on_failure", Shape::Map(&ON_FAILURE), "What happens if there are gaps and the script does not say."),
        Key::optional(
            "max_iterations",
            Shape::Count(1, MAX_ITERATIONS),
            "After this many checks that found gaps, a hold asks whether to run the phase again, continue anyway or abort.",
        )
        .default("3"),
    ],
    later: &["timeout", "name", "description"],
    rule: None,
};

static CRITERION: Format = Format {
    name: "criterion",
    what: "a criterion",
    known: &[
        Key::required("name", Shape::Filled, "The display name."),
        Key::required(
            "check",
            Shape::Filled,
            "A JavaScript expression that must be true. It can call the functions that scripts can.",
        ),
    ],
    later: &["weight"],
    rule: None,
};

static ON_FAILURE: Format = Format {
    name: "on_failure",
    what: "`on_failure`",
    known: &[
        Key::optional(
            "action",
            Shape::Words(&["retry", "spawn_additional", "escalate", "abort"]),
            "`retry` runs the phase again, `spawn_additional` starts more agents, `escalate` asks a person, and `abort` fails the run.",
        )
        .default("retry"),
        Key::optional("additional_agents", SUBAGENT_LIST, "For `spawn_additional`: the agents to start."),
        Key::optional("additionalAgents", SUBAGENT_LIST, "The same, in the spelling of scripts."),
        Key::optional("message", Shape::Text, "A message for people."),
    ],
    later: &[],
    rule: None,
};

pub(super) static FINALIZATION: Format = Format {
    name: "finalization",
    what: "`finalization`",
    known: &[
        Key::required("template", Shape::Filled, "A path next to the workflow file or its directory, or the template itself."),
        Key::optional("output", Shape::Filled, "The path of the rendered file in the output directory; a template.")
            .default(OUTPUT),
        Key::optional("description", Shape::Text, "A description for people."),
    ],
    later: &["script", "outputs"],
    rule: None,
};

/// The default path of the finalization's file.
const OUTPUT: &str = "final.md";

impl Checker<'_, '_> {
    /// The gap check of a phase, unless it is disabled.
    pub(super) fn gap_check(&mut self, phase: &Fields<'_, '_>, taken: &mut BTreeSet<String>) -> Option<GapCheck> {
        let fields = phase.get("gap_check").and_then(|node| self.fields(node, &GAP_CHECK))?;
        let enabled = fields.get("enabled").and_then(|node| self.boolean(node, "`enabled`")).unwrap_or(true);
        let nodes = fields.get("criteria").and_then(|node| self.list(node, "`criteria`")).unwrap_or_default();
        let criteria = nodes.iter().filter_map(|node| self.criterion(node)).collect();
        let script = fields.get("script").and_then(|node| self.script(node, "`script`"));
        let on_failure = fields.get("on_failure").and_then(|node| self.fields(node, &ON_FAILURE));
        let (mut action, mut additional, mut message) = (None, Vec::new(), None);
        if let Some(on_failure) = &on_failure {
            action = on_failure.get("action").and_then(|node| self.word(node, "`action`", &ACTIONS));
            for key in ["additional_agents", "additionalAgents"] {
                additional.extend(on_failure.get(key).map(|node| self.subagent_list(node, taken)).unwrap_or_default());
            }
            message = on_failure.get("message").and_then(|node| self.text(node, "`message`")).map(str::to_owned);
        }
        let limit = fields.get("max_iterations").and_then(|node| self.count(node, "`max_iterations`", 1..=MAX_ITERATIONS));
        if enabled && nodes.is_empty() && fields.get("script").is_none() {
            let nothing = "this gap check checks nothing, so it never finds gaps";
            self.report.warning(ProblemCode::MissingKey, &fields.span, nothing).help("give it `criteria` or a `script`");
            return None;
        }
        if let (Some(span), false) = (fields.key("script"), nodes.is_empty())
            && fields.get("script").is_some()
        {
            let both = "a gap check has `criteria` or a `script`; this one has both";
            self.error(ProblemCode::ConflictingKeys, span, both).help("check the criteria in the script");
        }
        enabled.then(|| GapCheck {
            criteria,
            script,
            on_failure: action.unwrap_or_default(),
            additional,
            max_iterations: limit.unwrap_or(ITERATIONS),
            message,
        })
    }

    fn criterion(&mut self, node: &Node<'_>) -> Option<Criterion> {
        let fields = self.fields(node, &CRITERION)?;
        let name = fields.require(self, "name").and_then(|node| self.filled(node, "`name`"));
        let check = fields.require(self, "check").and_then(|node| self.expression(node, "`check`"));
        Some(Criterion { name: name?.trim().to_owned(), check: check? })
    }

    pub(super) fn finalization(&mut self, fields: &Fields<'_, '_>) -> Option<Finalization> {
        let fields = fields.get("finalization").and_then(|node| self.fields(node, &FINALIZATION))?;
        let output = match fields.get("output") {
            Some(node) => self.path(node, "`output`", Roots::Checkpoint),
            None => Some(OUTPUT.to_owned()),
        };
        fields.get("description").map(|node| self.text(node, "`description`"));
        let node = fields.require(self, "template")?;
        let text = self.filled(node, "`template`")?.to_owned();
        let template = if is_path(&text) { self.included_template(text.trim(), node)? } else { text };
        for fault in mustache::check_document(&template) {
            let message = format!("the template cannot be rendered: {}", fault.message);
            self.error(ProblemCode::InvalidTemplate, &node.span, message).maybe_help(fault.help);
        }
        Some(Finalization { template, output: output? })
    }

    fn included_template(&mut self, path: &str, node: &Node<'_>) -> Option<String> {
        let found = self.includes.read(path);
        let message = match found {
            Ok(Some(text)) => return Some(text),
            Ok(None) => format!("there is no template `{}` next to this file or its directory", shown(path)),
            Err(why) => format!("the template `{}` cannot be read: {why}", shown(path)),
        };
        let help = includes::meant(self.includes, path);
        self.error(ProblemCode::MissingFile, &node.span, message).maybe_help(help);
        None
    }
}

/// Whether the template is a path, not the template itself: one word that looks like a path.
fn is_path(text: &str) -> bool {
    let text = text.trim();
    let named = text.rsplit('/').next().unwrap_or(text);
    !text.contains(char::is_whitespace) && !text.contains("{{") && (text.contains('/') || named.contains('.'))
}
