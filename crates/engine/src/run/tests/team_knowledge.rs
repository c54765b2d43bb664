//! Knowledge that runs capture and prompts include.

use super::team_messages::{agent_task, ask_as};
use super::*;
use crate::run::team::{
    KnowledgeDraft, KnowledgeEntry, MAX_INJECTED, Sender, TeamCommand, TeamRefusal, TeamRequest, knowledge_id, select,
};
use serde_json::json;

fn entry(number: i64, tags: &[&str]) -> KnowledgeEntry {
    let content = json!({"number": number});
    KnowledgeEntry {
        id: knowledge_id("pattern", &content),
        kind: "pattern".into(),
        content: StoredValue::Inline(content.to_string()),
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        by: Sender::Lockgate,
        at: Timestamp::from_millis(number),
    }
}

fn draft(kind: &str) -> KnowledgeDraft {
    let content = json!({"title": "use sqlite"});
    let id = knowledge_id(kind, &content);
    KnowledgeDraft { id, kind: kind.into(), content: StoredValue::Inline(content.to_string()), tags: vec!["storage".into()] }
}

fn working() -> Harness {
    Harness::new(workflow(vec![phase("one", vec![agent_task("plan", "ana", &[])])]))
}

fn inject(harness: &mut Harness, entries: Vec<KnowledgeEntry>) -> Vec<Event> {
    let request = TeamRequest::Inject { key: key("one", 1, "plan"), entries };
    harness.tell(Actor::driver(), CommandKind::Team(Box::new(TeamCommand { from: None, request })), false).unwrap()
}

#[test]
fn the_id_of_an_entry_is_the_hash_of_its_type_and_content() {
    let one = knowledge_id("decision", &json!({"a": 1, "b": [{"c": 2, "d": 3}]}));
    let same = knowledge_id("decision", &json!({"b": [{"d": 3, "c": 2}], "a": 1}));
    assert_eq!(one, same, "the order of keys does not matter");
    assert!(one.as_str().starts_with("KE-decision-"), "{one}");
    assert_ne!(one, knowledge_id("decision", &json!({"a": 2})));
    assert_ne!(knowledge_id("decision", &json!({})).as_str()[12..], knowledge_id("incident", &json!({})).as_str()[12..]);
}

#[test]
fn the_same_knowledge_is_captured_once() {
    let mut harness = working();
    assert_eq!(ask_as(&mut harness, "plan", TeamRequest::Capture(draft("decision"))).unwrap().len(), 1);
    let other_tags = KnowledgeDraft { tags: vec!["other".into()], ..draft("decision") };
    assert!(ask_as(&mut harness, "plan", TeamRequest::Capture(other_tags)).unwrap().is_empty());
    let id = draft("decision").id;
    assert_eq!(harness.run.captured_knowledge(), [&id]);
    assert_eq!(harness.run.pending_captures(|_| false).len(), 1);
    assert!(harness.run.pending_captures(|known| *known == id).is_empty());
    let refusal = ask_as(&mut harness, "plan", TeamRequest::Capture(draft("A/b"))).unwrap_err();
    assert_eq!(refusal, Refusal::Team(TeamRefusal::InvalidKnowledgeType("A/b".into())));
}

#[test]
fn at_most_five_entries_are_selected_by_tag() {
    let entries: Vec<KnowledgeEntry> =
        (0..7).map(|number| entry(number, &["api"])).chain([entry(9, &["api", "db"]), entry(8, &["ui"])]).collect();
    let chosen = select(entries, &["api".into(), "db".into()]);
    assert_eq!(chosen.len(), MAX_INJECTED);
    let times: Vec<i64> = chosen.iter().map(|entry| entry.at.as_millis()).collect();
    assert_eq!(times, [9, 6, 5, 4, 3], "the best match first, then the newest");
}

#[test]
fn a_later_attempt_uses_the_recorded_selection() {
    let mut harness = working();
    assert_eq!(inject(&mut harness, vec![entry(1, &["api"])]).len(), 1);
    assert!(inject(&mut harness, vec![entry(2, &["api"])]).is_empty(), "it was selected before");
    let knowledge = &harness.run.team.as_ref().unwrap().knowledge;
    let chosen: Vec<_> = knowledge.selection("one/plan").unwrap().into_iter().map(|entry| entry.at.as_millis()).collect();
    assert_eq!(chosen, [1]);
    assert_eq!(harness.run.injected_knowledge(), [&entry(1, &[]).id]);
}
