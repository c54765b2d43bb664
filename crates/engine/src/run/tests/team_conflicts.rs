//! Conflicts between agents: votes, rounds, scores, vetoes, and questions to a person.

use super::team_messages::{agent_task, ask_as};
use super::*;
use crate::hold::HoldKind;
use crate::id::ConflictId;
use crate::run::team::{Compromise, Conflict, ResolvedBy, TeamEvent, TeamRefusal, TeamRequest, Veto, VoteDraft};

/// Name, weight, and boosts by domain.
type MemberSpec<'a> = (&'a str, f64, &'a [(&'a str, f64)]);

fn team(members: &[MemberSpec<'_>]) -> Option<Box<Team>> {
    let member = |weight: f64, domains: &[(&str, f64)]| TeamMember {
        weight,
        domains: domains.iter().map(|(domain, boost)| ((*domain).to_owned(), *boost)).collect(),
        ..TeamMember::default()
    };
    let members = members.iter().map(|(name, weight, domains)| ((*name).to_owned(), member(*weight, domains))).collect();
    Some(Box::new(Team { members, inject: Vec::new() }))
}

/// Two agents that work in parallel, and a conflict between them about security.
fn disagreeing() -> (Harness, ConflictId) {
    let tasks = vec![agent_task("review", "sec", &[]), agent_task("design", "ux", &[])];
    let team = team(&[("sec", 1.0, &[("security", 0.5)]), ("ux", 0.8, &[("interface", 0.5)])]);
    let mut harness = Harness::new(Workflow { team, ..workflow(vec![phase("one", tasks)]) });
    let topic = "Keep users signed in?".to_owned();
    let request = TeamRequest::OpenConflict { topic, participants: vec!["ux".into()], domain: Some("security".into()) };
    ask_as(&mut harness, "review", request).unwrap();
    let id = harness.run.conflicts_in_progress()[0].clone();
    (harness, id)
}

fn position(choice: &str, confidence: u32, domain_relevance: f64) -> VoteDraft {
    VoteDraft {
        choice: choice.into(),
        rationale: "because".into(),
        evidence: vec!["a standard".into()],
        confidence,
        domain_relevance,
        compromise: Compromise { acceptable: true, conditions: Vec::new() },
        veto: None,
        veto_reason: None,
    }
}

fn insisting(choice: &str) -> VoteDraft {
    VoteDraft { compromise: Compromise { acceptable: false, conditions: Vec::new() }, ..position(choice, 90, 1.0) }
}

fn vetoing(choice: &str, veto: Veto) -> VoteDraft {
    VoteDraft { veto: Some(veto), veto_reason: Some("it leaks".into()), ..position(choice, 90, 1.0) }
}

fn vote(harness: &mut Harness, task: &str, id: &ConflictId, vote: VoteDraft) -> Result<Vec<Event>, Refusal> {
    ask_as(harness, task, TeamRequest::Vote { conflict: id.clone(), vote })
}

fn conflict<'a>(harness: &'a Harness, id: &ConflictId) -> &'a Conflict {
    harness.run.team.as_ref().unwrap().conflict(id.as_str()).unwrap()
}

fn refused(result: Result<Vec<Event>, Refusal>) -> TeamRefusal {
    match result.unwrap_err() {
        Refusal::Team(refusal) => refusal,
        other => panic!("{other}"),
    }
}

#[test]
fn the_score_is_weight_and_boost_times_confidence_times_relevance() {
    let (mut harness, id) = disagreeing();
    vote(&mut harness, "review", &id, position("no", 95, 1.0)).unwrap();
    assert_eq!(conflict(&harness, &id).missing(), ["ux"], "the round is not over");
    let events = vote(&mut harness, "design", &id, position("yes", 80, 0.6)).unwrap();
    let resolution = conflict(&harness, &id).resolution.clone().expect("the scores decide");
    let scores: Vec<(&str, f64)> =
        resolution.scores.iter().map(|score| (score.choice.as_str(), (score.score * 1000.0).round() / 1000.0)).collect();
    assert_eq!(scores, [("no", 1.425), ("yes", 0.384)]);
    assert_eq!((resolution.choice.as_str(), &resolution.by), ("no", &ResolvedBy::Score));
    let dissent: Vec<&str> = resolution.dissent.iter().map(|vote| vote.by.as_str()).collect();
    assert_eq!(dissent, ["ux"]);
    assert!(
        events.iter().any(|event| matches!(event, Event::Team(event) if matches!(**event, TeamEvent::ConflictResolved { .. })))
    );
    assert!(id.as_str().starts_with("CONF-"), "{id}");
    assert!(harness.run.conflicts_in_progress().is_empty());
    assert_eq!(harness.run.pending_messages().len(), 1, "the participants are told");
}

#[test]
fn agreement_resolves_a_conflict_in_any_round() {
    let (mut harness, id) = disagreeing();
    vote(&mut harness, "review", &id, insisting("no")).unwrap();
    vote(&mut harness, "design", &id, insisting("yes")).unwrap();
    assert_eq!(conflict(&harness, &id).round, 2);
    vote(&mut harness, "review", &id, insisting("no")).unwrap();
    vote(&mut harness, "design", &id, position(" No ", 10, 0.1)).unwrap();
    let resolution = conflict(&harness, &id).resolution.clone().unwrap();
    assert_eq!(resolution.by, ResolvedBy::Consensus);
    assert!(resolution.dissent.is_empty());
}

#[test]
fn a_member_votes_once_per_round() {
    let (mut harness, id) = disagreeing();
    vote(&mut harness, "review", &id, position("no", 95, 1.0)).unwrap();
    let again = refused(vote(&mut harness, "review", &id, position("yes", 95, 1.0)));
    assert!(matches!(again, TeamRefusal::VotedAlready { round: 1, .. }));
    assert_eq!(conflict(&harness, &id).votes.len(), 1);
}

#[test]
fn a_person_is_asked_after_three_rounds_without_convergence() {
    let (mut harness, id) = disagreeing();
    for round in 1..=3 {
        assert_eq!(conflict(&harness, &id).round, round);
        assert!(harness.run.open_holds().is_empty());
        vote(&mut harness, "review", &id, insisting("no")).unwrap();
        vote(&mut harness, "design", &id, insisting("yes")).unwrap();
    }
    assert_eq!(harness.hold().kind, HoldKind::Conflict);
    assert!(harness.hold().notes[0].contains("3 rounds"), "{:?}", harness.hold().notes);
    let late = refused(vote(&mut harness, "review", &id, insisting("no")));
    assert_eq!(late, TeamRefusal::ConflictWithPerson(id.clone()));
    let option = harness.answer_body("yes", None);
    assert!(matches!(harness.tell(super::team_messages::inside("one/review"), option, false), Err(Refusal::InsideTask { .. })));
    harness.answer("yes", None);
    let resolution = conflict(&harness, &id).resolution.clone().unwrap();
    assert_eq!(resolution.choice, "yes");
    assert!(matches!(&resolution.by, ResolvedBy::Person { name, .. } if name == "ada"));
    assert_eq!(resolution.dissent[0].by, "sec");
}

#[test]
fn scores_within_ten_percent_ask_a_person() {
    for (confidence, asks) in [(90, true), (89, false)] {
        let tasks = vec![agent_task("review", "sec", &[]), agent_task("design", "ux", &[])];
        let mut harness = Harness::new(workflow(vec![phase("one", tasks)]));
        let request = TeamRequest::OpenConflict { topic: "t".into(), participants: vec!["ux".into()], domain: None };
        ask_as(&mut harness, "review", request).unwrap();
        let id = harness.run.conflicts_in_progress()[0].clone();
        vote(&mut harness, "review", &id, position("a", 100, 1.0)).unwrap();
        vote(&mut harness, "design", &id, position("b", confidence, 1.0)).unwrap();
        assert_eq!(harness.run.open_holds().len(), usize::from(asks), "{confidence}");
        assert_eq!(conflict(&harness, &id).resolution.is_none(), asks);
    }
}

#[test]
fn a_critical_veto_wins_and_a_high_veto_asks_a_person() {
    let (mut harness, id) = disagreeing();
    vote(&mut harness, "design", &id, vetoing("yes", Veto::Critical)).unwrap();
    vote(&mut harness, "review", &id, position("no", 100, 1.0)).unwrap();
    let resolution = conflict(&harness, &id).resolution.clone().unwrap();
    assert_eq!((resolution.choice.as_str(), resolution.by), ("yes", ResolvedBy::Veto("ux".into())));

    let (mut harness, id) = disagreeing();
    vote(&mut harness, "design", &id, vetoing("yes", Veto::High)).unwrap();
    vote(&mut harness, "review", &id, position("no", 100, 1.0)).unwrap();
    assert!(harness.hold().notes[0].contains("ux vetoed: it leaks"));

    let (mut harness, id) = disagreeing();
    vote(&mut harness, "design", &id, vetoing("yes", Veto::Critical)).unwrap();
    vote(&mut harness, "review", &id, vetoing("no", Veto::Critical)).unwrap();
    assert!(harness.hold().notes[0].contains("contradict"));
}

#[test]
fn a_veto_needs_a_reason_and_permission() {
    let (mut harness, id) = disagreeing();
    let silent = VoteDraft { veto_reason: None, ..vetoing("yes", Veto::High) };
    assert_eq!(refused(vote(&mut harness, "design", &id, silent)), TeamRefusal::VetoReasonRequired);
    let mut workflow = (*harness.run.workflow).clone();
    workflow.team.as_mut().unwrap().members.get_mut("ux").unwrap().veto = false;
    harness.run.workflow = Arc::new(workflow);
    let refusal = refused(vote(&mut harness, "design", &id, vetoing("yes", Veto::High)));
    assert_eq!(refusal, TeamRefusal::VetoNotAllowed { name: "ux".into() });
}

#[test]
fn votes_out_of_range_and_of_others_are_refused() {
    let tasks = vec![agent_task("review", "sec", &[]), agent_task("design", "ux", &[]), agent_task("other", "dev", &[])];
    let mut harness = Harness::new(workflow(vec![phase("one", tasks)]));
    let open = |participants: Vec<String>| TeamRequest::OpenConflict { topic: "t".into(), participants, domain: None };
    assert_eq!(refused(ask_as(&mut harness, "review", open(vec!["sec".into()]))), TeamRefusal::TooFewParticipants);
    ask_as(&mut harness, "review", open(vec!["ux".into()])).unwrap();
    let id = harness.run.conflicts_in_progress()[0].clone();
    let refusal = refused(vote(&mut harness, "other", &id, position("a", 1, 1.0)));
    assert!(matches!(refusal, TeamRefusal::NotParticipant { name, .. } if name == "dev"));
    for draft in [position("a", 101, 1.0), position("a", 1, 1.5), position("a", 1, f64::NAN)] {
        assert!(matches!(refused(vote(&mut harness, "review", &id, draft)), TeamRefusal::OutOfRange { .. }));
    }
    assert_eq!(refused(vote(&mut harness, "review", &id, position(" ", 1, 1.0))), TeamRefusal::ChoiceRequired);
}

#[test]
fn a_conflict_that_no_task_can_settle_asks_a_person_before_the_phase_ends() {
    let (mut harness, id) = disagreeing();
    vote(&mut harness, "review", &id, position("no", 95, 1.0)).unwrap();
    harness.work();
    assert_eq!(harness.hold().kind, HoldKind::Conflict);
    assert_eq!(harness.run.status(), crate::run::Status::Waiting);
    harness.answer("answer", Some("ask the users"));
    assert_eq!(conflict(&harness, &id).resolution.as_ref().unwrap().choice, "ask the users");
    assert_eq!(harness.run.status(), crate::run::Status::Complete);
}
