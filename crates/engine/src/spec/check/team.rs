//! Teams: the weights of members in conflicts, and the knowledge that prompts include.

use super::Checker;
use super::fields::{Fields, Format, Key, Shape};
use crate::spec::syntax::Node;
use crate::spec::workflow::{Team, TeamMember};
use std::collections::BTreeMap;

pub(super) const TEAM_ABOUT: &str = "The agents that work together: their roles, and how much they count in conflicts.";
pub(super) const KNOWLEDGE_ABOUT: &str =
    "Which entries of the project's knowledge prompts include. At most 5 entries are selected by tag.";

pub(super) static TEAM: Format = Format {
    name: "team",
    what: "`team`",
    known: &[Key::required("members", Shape::MapOf(&MEMBER_SHAPE), "The members, by the name of the agent.")],
    later: &[],
    rule: None,
};

static MEMBER_SHAPE: Shape = Shape::Map(&MEMBER);
static BOOST_SHAPE: Shape = Shape::Number;

pub(super) static MEMBER: Format = Format {
    name: "team_member",
    what: "a member of the team",
    known: &[
        Key::optional("role", Shape::Filled, "What the member does in the team, for people."),
        Key::optional("weight", Shape::Number, "How much its votes count.").default("1"),
        Key::optional("domains", Shape::MapOf(&BOOST_SHAPE), "What is added to its weight in conflicts about a domain."),
        Key::optional("veto", Shape::Boolean, "Whether it may veto.").default("true"),
    ],
    later: &[],
    rule: None,
};

pub(super) static KNOWLEDGE: Format = Format {
    name: "knowledge",
    what: "`knowledge`",
    known: &[Key::required("inject", Shape::Texts, "The tags. Entries with most of them come first.")],
    later: &[],
    rule: None,
};

impl Checker<'_, '_> {
    /// Reads the settings of the team, and the knowledge for all prompts.
    pub(super) fn team(&mut self, fields: &Fields<'_, '_>) -> Option<Box<Team>> {
        let members = fields.get("team").and_then(|node| self.members(node)).unwrap_or_default();
        let inject = self.inject(fields);
        let team = Team { members, inject };
        (team != Team::default()).then(|| Box::new(team))
    }

    fn members(&mut self, node: &Node<'_>) -> Option<BTreeMap<String, TeamMember>> {
        let fields = self.fields(node, &TEAM)?;
        let node = fields.require(self, "members")?;
        let mut members = BTreeMap::new();
        for entry in self.entries(node, "`members`").unwrap_or_default() {
            if let Some(member) = self.member(&entry.value) {
                members.insert(entry.key.to_string(), member);
            }
        }
        Some(members)
    }

    fn member(&mut self, node: &Node<'_>) -> Option<TeamMember> {
        let fields = self.fields(node, &MEMBER)?;
        let standard = TeamMember::default();
        let mut domains = BTreeMap::new();
        for entry in fields.get("domains").and_then(|node| self.entries(node, "`domains`")).unwrap_or_default() {
            if let Some(boost) = self.positive(&entry.value, &format!("`{}`", entry.key)) {
                domains.insert(entry.key.to_string(), boost);
            }
        }
        Some(TeamMember {
            role: fields.get("role").and_then(|node| self.filled(node, "`role`")).map(|role| role.trim().to_owned()),
            weight: fields.get("weight").and_then(|node| self.positive(node, "`weight`")).unwrap_or(standard.weight),
            domains,
            veto: fields.get("veto").and_then(|node| self.boolean(node, "`veto`")).unwrap_or(standard.veto),
        })
    }

    /// The tags of the knowledge that prompts include.
    pub(super) fn inject(&mut self, fields: &Fields<'_, '_>) -> Vec<String> {
        let Some(fields) = fields.get("knowledge").and_then(|node| self.fields(node, &KNOWLEDGE)) else { return Vec::new() };
        fields.require(self, "inject");
        let tags = self.names(&fields, "inject");
        tags.into_iter().map(|tag| tag.trim().to_owned()).collect()
    }
}
