use super::*;
use lockgate_engine::hold::{HoldQuestion, Topic};
use lockgate_engine::spec::workflow::Question;
use lockgate_engine::spec::workflow::question::Decision;
use proptest::prelude::*;

fn option(id: &str, name: &str, pros: Option<&str>, cons: Option<&str>) -> DecisionOption {
    DecisionOption { id: OptionId::from(id), name: name.into(), pros: pros.map(str::to_owned), cons: cons.map(str::to_owned) }
}

fn databases() -> [DecisionOption; 2] {
    [
        option("sqlite", "SQLite", Some("simple"), Some("one machine")),
        option("postgres", "PostgreSQL", Some("scales"), Some("a server")),
    ]
}

fn names(details: &str) -> Vec<(String, String)> {
    read(details, "").into_iter().map(|option| (option.id.to_string(), option.name)).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(id, name)| ((*id).to_owned(), (*name).to_owned())).collect()
}

#[test]
fn options_are_parsed_from_a_table() {
    let table = "**Decision needed:** Which database?\n\n**Context:**\nIt stays.\n\n**Options:**\n\n\
                 | ID | Option | Pros | Cons |\n|----|--------|------|------|\n| `sqlite` | SQLite | simple | one machine |\n\
                 | postgres | **PostgreSQL** | scales | a server |\n\nRecommendation: sqlite";
    assert_eq!(read(table, ""), databases());
    let by_name =
        "| Option | Pros | Cons |\n| --- | --- | --- |\n| SQLite | simple | one machine |\n| Postgres \\| Citus | scales | |";
    assert_eq!(
        read(by_name, ""),
        [
            option("SQLite", "SQLite", Some("simple"), Some("one machine")),
            option("postgres-citus", "Postgres | Citus", Some("scales"), None)
        ]
    );
    let lettered = "| Option | Approach | Tradeoffs |\n|---|---|---|\n| A | Keep the table | slow |\n| B | Split it | risky |";
    assert_eq!(
        read(lettered, ""),
        [option("A", "Keep the table", None, Some("slow")), option("B", "Split it", None, Some("risky"))]
    );
}

#[test]
fn options_are_parsed_from_lists() {
    let source = "Decision needed: Which?\n\nOptions:\n1. sqlite: SQLite\n   Pros: simple\n   Cons: one machine\n\n\
                  2. postgres: PostgreSQL\n   Pros: scales\n   Cons: a server\n\n---\nYOUR ACTION: Select: option-id\n---";
    assert_eq!(read(source, ""), databases());
    let points = "#### Options\n\n- **sqlite**: SQLite\n  - Pros:\n    - simple\n  - **Cons:** one machine\n- `postgres`: PostgreSQL — Pros: scales. Cons: a server.";
    assert_eq!(read(points, ""), databases());
    let by_name = "**Options**\n1. **Keep the old table** - nothing to migrate\n- Pros: quick\n2. **Split it**\n- Cons: slow\n\n**Recommendation:** 1";
    assert_eq!(
        read(by_name, ""),
        [
            option("keep-the-old-table", "Keep the old table - nothing to migrate", Some("quick"), None),
            option("split-it", "Split it", None, Some("slow"))
        ]
    );
    let headings =
        "#### Option A: SQLite\nA file.\n\n**Pros:** simple\n**Cons:** one machine\n\n#### Option B (PostgreSQL)\nA server.";
    assert_eq!(
        read(headings, ""),
        [option("option-a", "SQLite", Some("simple"), Some("one machine")), option("option-b", "PostgreSQL", None, None)]
    );
    assert_eq!(names("**Option A:** Red\n\n**Option B:** Blue\n"), pairs(&[("option-a", "Red"), ("option-b", "Blue")]));
    assert_eq!(names("- [ ] red: Red\n- [ ] blue: Blue"), pairs(&[("red", "Red"), ("blue", "Blue")]));
}

#[test]
fn options_are_parsed_from_prose() {
    let expected = pairs(&[("option-a", "use SQLite"), ("option-b", "run PostgreSQL")]);
    assert_eq!(names("I can go two ways. Option A: use SQLite. It is simple. Option B: run PostgreSQL, or"), expected);
    assert_eq!(names("We could (a) keep the table, or (b) split it."), pairs(&[("a", "keep the table"), ("b", "split it")]));
    assert_eq!(
        names("Options: red, dark blue or green"),
        pairs(&[("red", "red"), ("dark-blue", "dark blue"), ("green", "green")])
    );
    assert_eq!(names("Shall the queue be in `redis`, `sqlite` or `postgres`?").len(), 3);
    assert_eq!(
        names("I need you to decide between SQLite and PostgreSQL."),
        pairs(&[("SQLite", "SQLite"), ("PostgreSQL", "PostgreSQL")])
    );
    assert_eq!(
        names("Please choose either Redis or a plain table."),
        pairs(&[("Redis", "Redis"), ("a-plain-table", "a plain table")])
    );
}

#[test]
fn options_are_parsed_from_the_awaited_input() {
    let ids = |awaiting: &str| read("Which?", awaiting).iter().map(|option| option.id.to_string()).collect::<Vec<_>>();
    assert_eq!(ids("Select: [option-a | option-b | ...]"), ["option-a", "option-b"]);
    assert_eq!(ids("\nOne of: red, blue\n\nAnswer with: lockgate answer x OPTION"), ["red", "blue"]);
    assert_eq!(ids("Reply with `red` or `blue`."), ["red", "blue"]);
    assert!(ids("Which colour?").is_empty());
    let table = "| Option | Pros |\n|---|---|\n| Keep the table | quick |\n| Split the table | clean |";
    let asked = read(table, "Select: keep | split");
    assert_eq!(
        asked,
        [option("keep", "Keep the table", Some("quick"), None), option("split", "Split the table", Some("clean"), None)]
    );
    let other_order = read("| Option |\n|---|\n| SQLite |\n| Postgres |", "Select: postgres | sqlite");
    assert_eq!(other_order, [option("SQLite", "SQLite", None, None), option("Postgres", "Postgres", None, None)]);
}

#[test]
fn text_without_options_gives_no_options() {
    for details in [
        "Which colour do you like?",
        "I looked at this:\n1. Open the page\n2. Look at it",
        "- It is red\n- It is blue",
        "| File | Lines |\n|---|---|\n| a.rs | 3 |",
        "## Notes\n\nSee the table above.",
        "",
    ] {
        assert_eq!(read(details, "Tell me."), [], "{details}");
    }
}

#[test]
fn every_option_has_a_unique_id() {
    let ids = |details: &str| names(details).into_iter().map(|(id, _)| id).collect::<Vec<_>>();
    assert_eq!(ids("Options:\n1. red: Red\n2. RED: Other\n3. 1: One\n4. ***\n5. red: Red"), ["red", "RED-2", "option-1"]);
    let many: String = (0..50).map(|number| format!("- o{number}: x\n")).collect();
    assert_eq!(ids(&many).len(), MAX_OPTIONS);
    let hostile = names("Options:\n- \u{1b}[2Jred: \u{1b}[31mRed\u{7}\r\n");
    assert!(hostile.iter().all(|(id, name)| !format!("{id}{name}").contains(char::is_control)), "{hostile:?}");
}

/// Texts without line breaks, some of which look like Markdown markers.
fn words() -> impl Strategy<Value = String> {
    let piece =
        prop::sample::select(vec!["red", "- ", "1. ", "#", "|", "(a)", ":", "é", "Option B", "or", "x_y", "?", "options"]);
    prop::collection::vec(piece, 1..5).prop_map(|pieces| format!("x{}", pieces.concat()).trim().to_owned())
}

fn any_options() -> impl Strategy<Value = Vec<DecisionOption>> {
    let option = (words(), prop::option::of(words()), prop::option::of(words()));
    prop::collection::vec(option, 1..6).prop_map(|options| {
        let numbered = options.into_iter().enumerate();
        numbered
            .map(|(index, (name, pros, cons))| DecisionOption { id: OptionId::new(format!("way-{index}")), name, pros, cons })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn options_printed_by_lockgate_round_trip(options in any_options()) {
        let decision = Decision { question: "Which?".into(), context: None, options: options.clone() };
        let topic = Topic::Question(Question::Decision(decision));
        let asked = HoldQuestion { task: "Deploy".into(), done: 2, total: 8, topic, signal: None };
        prop_assert_eq!(read(&asked.details(), &asked.awaiting()), options, "{}", asked.details());
    }

    #[test]
    fn any_text_gives_valid_options(details in any::<String>(), awaiting in any::<String>()) {
        let options = read(&details, &awaiting);
        prop_assert!(options.len() <= MAX_OPTIONS);
        for (index, option) in options.iter().enumerate() {
            prop_assert!(is_id(option.id.as_str()) && !option.name.is_empty(), "{:?}", option);
            prop_assert!(!options[..index].iter().any(|before| before.id == option.id));
        }
    }
}
