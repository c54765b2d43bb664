//! Rendered blocks parse back, and blocks as agents write them are parsed.

use super::*;
use lockgate_engine::run::handover::CompletedTask;
use proptest::prelude::*;

const BLOCK: &str = "\
## CHECKPOINT REACHED

**Type:** human-verify
**Plan:** 08-02
**Progress:** 1/3 tasks complete

### Completed Tasks

| Task | Name | Commit | Files |
|------|------|--------|-------|
| 1 | Build the page | abc1234 | src/page.rs, src/lib.rs |

### Current Task

**Task 2:** Look at the page
**Status:** awaiting verification
**Blocked by:** not reviewed yet

### Checkpoint Details

Open http://localhost:3000.

1. It is there.

### Awaiting

Type \"approved\" or describe issues
";

fn handover() -> Handover {
    Handover {
        kind: HandoverKind::Verify,
        plan: "08-02".into(),
        done: 1,
        total: 3,
        completed: vec![CompletedTask {
            number: "1".into(),
            name: "Build the page".into(),
            commit: Some("abc1234".into()),
            files: vec!["src/page.rs".into(), "src/lib.rs".into()],
        }],
        current: CurrentTask {
            number: "2".into(),
            name: "Look at the page".into(),
            status: HandoverStatus::AwaitingVerification,
            blocked_by: "not reviewed yet".into(),
        },
        details: "Open http://localhost:3000.\n\n1. It is there.".into(),
        awaiting: "Type \"approved\" or describe issues".into(),
        options: Vec::new(),
    }
}

#[test]
fn the_block_matches_the_reference_format() {
    assert_eq!(render(&handover()), BLOCK);
    assert_eq!(parse(BLOCK), Some(handover()));
}

#[test]
fn prose_around_the_block_is_ignored() {
    let text = format!("I have done task 1.\n\nHere it is:\n\n{BLOCK}\n## Notes\n\nBye.\n");
    assert_eq!(parse(&text), Some(handover()));
}

#[test]
fn a_fence_around_the_block_is_ignored() {
    let text = format!("So:\r\n```markdown\n{BLOCK}```\n\nI wait.\n").replace('\n', "\r\n");
    assert_eq!(parse(&text), Some(handover()));
}

#[test]
fn heading_levels_and_markers_may_differ() {
    let text = BLOCK.replace("**", "").replace("### ", "#### ").replace("## CH", "# CH");
    assert_eq!(parse(&text), Some(handover()));
    let text = BLOCK
        .replace(":** ", "**: ")
        .replace("### Awaiting", "**Awaiting:**")
        .replace("## CHECKPOINT REACHED", "**CHECKPOINT REACHED**");
    assert_eq!(parse(&text), Some(handover()));
}

#[test]
fn the_last_block_wins() {
    let later = BLOCK.replace("1/3", "2/3");
    let read = parse(&format!("{BLOCK}\nmore\n\n{later}")).expect("a block");
    assert_eq!((read.done, read.details), (2, handover().details));
}

#[test]
fn the_format_description_is_not_a_block() {
    let shown = "## CHECKPOINT REACHED\n\n**Type:** [human-verify | decision | human-action]\n**Plan:** {phase}-{plan}\n";
    assert_eq!(parse(shown), None);
    assert_eq!(parse(&format!("{BLOCK}\n{shown}")).map(|read| read.plan), Some("08-02".into()));
    assert_eq!(parse("No CHECKPOINT REACHED here.\n## CHECKPOINT REACHED soon\n"), None);
}

#[test]
fn a_bare_stop_marker_is_a_handover() {
    for text in
        ["## CHECKPOINT REACHED\n\nI need you to log in.\n", "\u{1b}[1m## CHECKPOINT REACHED\u{1b}[0m\nI need you to log in."]
    {
        let read = parse(text).unwrap_or_else(|| panic!("{text:?}"));
        assert_eq!((read.kind, read.details.trim()), (HandoverKind::Action, "I need you to log in."));
    }
    assert!(parse("## CHECKPOINT REACHED\n").is_some());
    assert_eq!(parse("An example:\n```\n## CHECKPOINT REACHED\n```\nI did not need it, all is done.\n"), None);
}

#[test]
fn missing_fields_are_derived_from_present_ones() {
    let read = parse("## CHECKPOINT REACHED\nStatus: blocked on login\n### Completed Tasks\n| 1 | x |\n").expect("a block");
    assert_eq!((read.kind, read.done, read.total), (HandoverKind::Action, 1, 1));
    let read = parse("## Checkpoint Reached\n**Type:** decision\n").expect("a block");
    assert_eq!((read.kind, read.current.status), (HandoverKind::Decision, HandoverStatus::AwaitingDecision));
    let read = parse("## CHECKPOINT REACHED\n**Type:** something new\n").expect("a block");
    assert_eq!(read.kind, HandoverKind::Verify);
}

#[test]
fn only_the_end_of_a_long_text_is_searched() {
    let text = format!("{BLOCK}{}", "é".repeat(MAX_BYTES));
    assert_eq!(parse(&text), None);
    assert_eq!(parse(&format!("{}\n{BLOCK}", "é".repeat(MAX_BYTES))), Some(handover()));
}

/// Texts that often contain parts of the block's own syntax.
fn text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "|",
        "\\",
        "\n",
        "\r",
        " ",
        "-",
        "none",
        "`",
        "``",
        "**",
        ":",
        "#",
        "## CHECKPOINT REACHED",
        "### Awaiting",
        "### Details",
        "\n# x\n",
        "CHECKPOINT REACHED",
        "**Awaiting**",
        "Task 3",
        "**Type:** decision",
        "```",
        "&#10;",
        "&#",
        "&",
        ",",
        "abc1234",
        "é",
        "\u{a0}",
        "\t",
        "| a |",
        "---",
        "<b>",
        "\u{2028}",
        "0",
    ]);
    prop_oneof![prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat()), any::<String>()]
}

fn any_completed() -> impl Strategy<Value = CompletedTask> {
    let files = prop::collection::vec(text(), 0..4);
    (text(), text(), prop::option::of(text()), files).prop_map(|(number, name, commit, files)| CompletedTask {
        number,
        name,
        commit,
        files,
    })
}

fn any_handover() -> impl Strategy<Value = Handover> {
    let kind = prop::sample::select(vec![HandoverKind::Verify, HandoverKind::Decision, HandoverKind::Action]);
    let statuses = vec![HandoverStatus::Blocked, HandoverStatus::AwaitingVerification, HandoverStatus::AwaitingDecision];
    let current = (text(), text(), prop::sample::select(statuses), text())
        .prop_map(|(number, name, status, blocked_by)| CurrentTask { number, name, status, blocked_by });
    let completed = prop::collection::vec(any_completed(), 0..4);
    (kind, text(), any::<u32>(), any::<u32>(), completed, current, text(), text()).prop_map(
        |(kind, plan, done, total, completed, current, details, awaiting)| Handover {
            kind,
            plan,
            done,
            total,
            completed,
            current,
            options: options(kind, &details, &awaiting),
            details,
            awaiting,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_written_handover_round_trips(handover in any_handover()) {
        let text = render(&handover);
        prop_assert_eq!(parse(&text), Some(handover.clone()), "{}", text);
        let around = format!("Some words.\n\n{text}\n## And more\n\nwords");
        prop_assert_eq!(parse(&around), Some(handover), "{}", text);
    }

    #[test]
    fn any_text_is_parsed_without_failing(text in text()) {
        let _ = parse(&text);
    }
}
