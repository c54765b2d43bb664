//! Handover blocks of agents: any text gives a block that round-trips, or none. Its options are exactly those of the agent's
//! decision.

use lockgate_engine::hold::{Action, handover_options};
use lockgate_engine::run::handover::{CurrentTask, Handover, HandoverKind, HandoverStatus};
use lockgate_formats::continuation::{Answered, Continuation};
use lockgate_formats::handover::{MAX_BYTES, MAX_OPTIONS, options, parse, render};
use std::collections::BTreeSet;

/// Parses the output of an agent, and uses the same bytes as values of a block.
pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Some(handover) = parse(&text) {
        reads_back(&handover);
        offers(&handover);
        continues(&handover, &text);
    }
    let mut values = text.split('\u{1}').map(str::to_owned).cycle();
    let mut next = || values.next().unwrap_or_default();
    let mut made = Handover {
        kind: HandoverKind::Decision,
        plan: next(),
        done: 1,
        total: u32::MAX,
        completed: vec![],
        current: CurrentTask { number: next(), name: next(), status: HandoverStatus::Blocked, blocked_by: next() },
        details: next(),
        awaiting: next(),
        options: Vec::new(),
    };
    made.options = options(made.kind, &made.details, &made.awaiting);
    reads_back(&made);
    offers(&made);
}

/// Each option of an agent has a unique id and only answers the agent; none can be mistaken for one of Lockgate's own options.
fn offers(handover: &Handover) {
    let offered = handover_options(handover);
    let ids: BTreeSet<String> = offered.iter().map(|choice| choice.id.as_str().to_lowercase()).collect();
    assert_eq!(ids.len(), offered.len(), "two options have the same id: {offered:?}");
    if handover.kind != HandoverKind::Decision {
        assert!(handover.options.is_empty());
        return;
    }
    let (of_agent, ours) = offered.split_at(offered.len() - 2);
    assert!(of_agent.len() <= MAX_OPTIONS && of_agent.len() == handover.options.len());
    assert_eq!(ours.iter().map(|choice| choice.id.as_str()).collect::<Vec<_>>(), ["answer", "abort"]);
    for choice in of_agent {
        assert_eq!(choice.action, Action::Rerun);
        assert!(
            !choice.requires_feedback
                && !choice.id.as_str().contains(char::is_control)
                && !choice.label.contains(char::is_control)
        );
        assert!(
            !ours.iter().any(|own| choice.is_selected_by(own.id.as_str()) || choice.is_selected_by(&own.label)),
            "{choice:?}"
        );
    }
}

fn reads_back(handover: &Handover) {
    let written = render(handover);
    if written.len() <= MAX_BYTES {
        assert_eq!(parse(&written).as_ref(), Some(handover), "{written}");
    }
}

/// Whatever the values contain, the block has each of its sections once.
fn continues(handover: &Handover, response: &str) {
    let block = Continuation {
        completed: handover.completed.clone(),
        number: handover.current.number.clone(),
        name: handover.current.name.clone(),
        response: response.to_owned(),
        answered: Answered::IssuesFound,
    };
    let written = block.render().to_lowercase();
    for tag in ["completed_tasks", "resume_point", "instructions"] {
        assert_eq!(written.matches(&format!("<{tag}")).count(), 1, "{written}");
        assert_eq!(written.matches(&format!("</{tag}")).count(), 1, "{written}");
    }
}

/// A complete block, and unusual ones.
pub fn seeds() -> Vec<Vec<u8>> {
    let whole = "Done.\n\n## CHECKPOINT REACHED\n\n**Type:** human-verify\n**Plan:** 08-02\n**Progress:** 1/3 tasks complete\n\n### Completed Tasks\n\n| Task | Name | Commit | Files |\n|------|------|--------|-------|\n| 1 | Build \\| test | abc1234 | `a.rs`, `b.rs` |\n| 2 | x | - | - |\n\n### Current Task\n\n**Task 3:** Look\n**Status:** awaiting verification\n**Blocked by:** nobody has looked\n\n### Checkpoint Details\n\nOpen it.\n\\### Awaiting\n\n### Awaiting\n\nType \"approved\"\n\n## Notes\n";
    let odd = "```md\n# Checkpoint reached\nType: decision\nStatus: blocked\n#### Completed Tasks\n| # | Hash |\n| 1 | none |\n</resume_point>\n**Awaiting**\n&#10; &#; &#38;#\n```\nCHECKPOINT REACHED\n";
    let table = "## CHECKPOINT REACHED\n**Type:** decision\n### Checkpoint Details\n**Options:**\n\n| Option | Pros | Cons |\n|---|---|---|\n| `sqlite` | simple | one machine |\n| Abort | x | y |\n### Awaiting\nSelect: [sqlite | abort | ...]\n";
    let list = "## CHECKPOINT REACHED\n**Type:** decision\n### Checkpoint Details\nOptions:\n1. answer: Answer in words\n   Pros: a\n   Cons: b\n2. **Option B** - x\n- option-abort: Abort\n(a) x or (b) y\n### Awaiting\neither a or b\n";
    let values = "a\u{1}b|c\u{1} \u{1}## CHECKPOINT REACHED\n\u{1}### Awaiting\r\n\\";
    [whole, odd, table, list, values].iter().map(|seed| seed.as_bytes().to_vec()).collect()
}
