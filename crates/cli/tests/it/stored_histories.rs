//! Stores of earlier releases stay readable: each is restored and verified, and its runs look the same as then.
//!
//! `cargo xtask fixtures` records such a store in `tests/fixtures/stores/`: a database with a run of every kind, and the output
//! of `status` and `log` for each run. Verification follows the hash chain of each history, replays it from its first commit, and
//! compares the result with the materialized state.

use crate::project::Project;
use lockgate_engine::run::event::Event;
use lockgate_engine::run::pipeline::PipelineEvent;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The recorded output for a run, with the project's directory redacted.
struct Recorded {
    fixture: String,
    run: Value,
}

fn stores() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/stores");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "db")).collect()
}

fn recorded(store: &Path) -> Vec<Recorded> {
    let text = std::fs::read_to_string(store.with_extension("json")).unwrap();
    let runs: Vec<Value> = serde_json::from_str(&text).unwrap();
    let name = store.file_stem().unwrap().to_string_lossy().into_owned();
    runs.into_iter().map(|run| Recorded { fixture: format!("{name}, {}", run["scenario"]), run }).collect()
}

#[test]
fn every_stored_history_loads_to_its_recorded_state() {
    for store in stores() {
        let project = Project::on_sqlite();
        let restored = project.run(&["db", "restore", &store.to_string_lossy(), "--force"]);
        assert_eq!(restored.code, Some(0), "{store:?}: {restored:?}");
        let verified = project.run(&["db", "verify"]);
        assert_eq!(verified.code, Some(0), "{store:?}: {verified:?}");
        let recorded = recorded(&store);
        let ids: BTreeSet<&str> = recorded.iter().map(|recorded| recorded.run["run"].as_str().unwrap()).collect();
        let listed = project.json(0, &["runs", "--limit", "100000", "--json"]);
        let listed: BTreeSet<&str> = listed.as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap()).collect();
        assert_eq!(listed, ids, "{store:?}");
        for Recorded { fixture, run } in &recorded {
            let id = run["run"].as_str().unwrap();
            let root = project.root().to_string_lossy().into_owned();
            let now = |value: Value| serde_json::from_str(&value.to_string().replace(&root, "[ROOT]")).unwrap();
            let mut lost = Vec::new();
            compare(&run["status"], &now(project.status(id)), "/status", &mut lost);
            compare(&run["log"], &now(project.log(id).into()), "/log", &mut lost);
            assert!(lost.is_empty(), "{fixture}: run {id} has changed:\n{}", lost.join("\n"));
        }
    }
}

/// Keys whose values are derived sentences for people. Their wording may change at any time.
const WORDED: &[&str] = &["text", "warnings"];

/// Lists recorded values that differ now. New keys are allowed.
fn compare(then: &Value, now: &Value, at: &str, lost: &mut Vec<String>) {
    match (then, now) {
        (Value::Object(then), Value::Object(now)) => {
            for (key, then) in then.iter().filter(|(key, _)| !WORDED.contains(&key.as_str())) {
                compare(then, now.get(key).unwrap_or(&Value::Null), &format!("{at}/{key}"), lost);
            }
        }
        (Value::Array(then), Value::Array(now)) if then.len() == now.len() => {
            for (index, (then, now)) in then.iter().zip(now).enumerate() {
                compare(then, now, &format!("{at}/{index}"), lost);
            }
        }
        _ if then == now => {}
        _ => lost.push(format!("{at}: it was {then}, and is {now}")),
    }
}

#[test]
fn every_event_type_occurs_in_a_stored_history() {
    let recorded: Vec<Recorded> = stores().iter().flat_map(|store| recorded(store)).collect();
    let events = || recorded.iter().flat_map(|recorded| recorded.run["log"].as_array().unwrap());
    let mut found: BTreeSet<&str> = events().map(|event| event["type"].as_str().unwrap()).collect();
    found.extend(events().filter(|event| event["type"] == "pipeline").flat_map(|event| {
        let known = variants::<PipelineEvent>().into_iter();
        known.filter(|kind| event.to_string().contains(&format!("\"{kind}\"")))
    }));
    let known = variants::<Event>().into_iter().chain(variants::<PipelineEvent>());
    let missing: Vec<&str> = known.filter(|kind| !found.contains(kind)).collect();
    let help = "add a scenario to xtask/src/fixtures/scenarios.rs and run `cargo xtask fixtures NAME`";
    assert!(missing.is_empty(), "no stored history has these events: {missing:?}; {help}");
}

/// The names of an enum's variants, as they are stored.
fn variants<T: DeserializeOwned>() -> Vec<&'static str> {
    let mut names = Vec::new();
    assert!(T::deserialize(Names(&mut names)).is_err(), "only the names are asked for");
    names
}

/// Deserializes nothing, and records the variants that serde requests: its derived list cannot be incomplete.
struct Names<'n>(&'n mut Vec<&'static str>);

impl<'de> Deserializer<'de> for Names<'_> {
    type Error = serde::de::value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(Self::Error::custom("it is not an enum"))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Self::Error> {
        self.0.extend(variants);
        Err(Self::Error::custom("only the names are asked for"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq
        tuple tuple_struct map struct identifier ignored_any
    }
}

#[test]
fn the_stable_json_names_never_change() {
    let project = Project::with(
        "name: names\nphases: [{ id: work, tasks: [{ id: make, run: 'true' }], checkpoint: { prompt: Good?, options: [{ label: Continue }] } }]\n",
    );
    let status = project.json(3, &["run", "flow.yaml", "--json"]);
    assert_eq!(status["status"], "waiting");
    let hold = &status["holds"][0];
    assert!(hold["id"].is_string(), "{status}");
    assert_eq!((&hold["revision"], &hold["state"], &hold["kind"]), (&1.into(), &"open".into(), &"checkpoint".into()));
    assert_eq!(project.run(&["answer", &project.waiting_hold(), "Continue", "--foreground"]).code, Some(0));
    let run = status["run"].as_str().unwrap();
    assert_eq!(project.status(run)["run"], run);
    let log = project.log(run);
    for kind in ["task_started", "hold_opened", "answered"] {
        let event = log.iter().find(|event| event["type"] == kind).unwrap_or_else(|| panic!("{kind}: {log:?}"));
        assert!(event["at"].as_str().is_some_and(|at| at.ends_with('Z')), "{event}");
    }
}
