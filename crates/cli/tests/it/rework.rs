//! Repeated work: because a person found issues, changed an answer, or accepted a changed file.

use crate::project::Project;
use serde_json::json;

const SHIP: &str = "
name: ship
phases:
  - id: one
    tasks:
      - { id: build, run: 'echo build >> order.txt' }
      - id: mid
        needs: [build]
        decision: { question: Which?, options: [{ id: a }, { id: b }] }
      - id: look
        needs: [mid]
        verify: { built: the page, redo: [build] }
      - { id: ship, needs: [look], run: 'echo ship >> order.txt' }
";

fn answer(project: &Project, option: &str, more: &[&str]) -> Option<i32> {
    let hold = project.waiting_hold();
    project.run(&[&["answer", &hold, option, "--foreground"], more].concat()).code
}

#[test]
fn later_tasks_do_not_start_while_earlier_work_is_redone() {
    let project = Project::with(SHIP);
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(3));
    assert_eq!(answer(&project, "b", &[]), Some(3));
    assert_eq!(answer(&project, "issues", &["--feedback", "too red"]), Some(3));
    let waiting = project.json(0, &["inbox", "--json"]);
    assert_eq!((&waiting[0]["kind"], waiting.as_array().map(Vec::len)), (&json!("decision"), Some(1)), "{waiting}");
    assert_eq!(project.read("order.txt"), "build\nbuild\n");
    let hold = &project.status(&project.newest())["holds"][0];
    assert_eq!((&hold["previous_answer"]["option"], &hold["answer"]), (&json!("b"), &json!(null)), "{hold}");
    let reported = project.run(&["why", &project.newest()]).stdout;
    assert!(reported.contains("previously answered \"b\""), "{reported}");
    assert_eq!(answer(&project, "a", &[]), Some(3));
    assert_eq!(answer(&project, "approved", &[]), Some(0));
    assert_eq!(project.read("order.txt"), "build\nbuild\nship\n");
    assert_eq!(project.run(&["db", "verify"]).code, Some(0));
}

const SKIPS: &str = "
name: skips
phases:
  - id: plan
    tasks:
      - { id: draft, run: 'false', continue_on_error: true }
      - id: way
        decision: { question: Which?, options: [{ id: a }, { id: b }] }
        blocking: false
      - { id: use, needs: [way], run: 'echo {{outputs.plan.way.option}} >> used.txt' }
      - { id: never, needs: [draft], run: 'echo never >> used.txt' }
    checkpoint:
      prompt: Go on?
      blocking: false
      options:
        - { label: Go, on_select: { action: continue } }
        - { label: Skip, on_select: { action: skip_phases, phases: build } }
  - { id: build, tasks: [{ id: make, run: 'echo make >> made.txt' }] }
  - { id: last, tasks: [{ id: end, run: 'echo end >> made.txt' }] }
";

#[test]
fn an_answer_that_a_fork_inherited_can_be_changed_there() {
    let project = Project::with(SKIPS);
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(0));
    let parent = project.newest();
    let answered = project.events(&parent, "answered");
    let holds: Vec<&str> = answered.iter().map(|event| event["hold"].as_str().unwrap()).collect();
    let [way, go] = holds[..] else { panic!("{answered:?}") };
    let changed = project.json(0, &["change", go, "Skip", "--yes", "--json"]);
    assert_eq!((&changed["skipped"], &changed["phase"]), (&json!(["build"]), &json!("last")), "{changed}");
    let fork = changed["run"].as_str().unwrap().to_owned();
    assert_eq!(project.run(&["resume", &fork]).code, Some(0));
    assert_eq!(project.read("made.txt"), "make\nend\nend\n");
    let summary = project.json(0, &["summary", &fork, "--json"]);
    let decided = &summary["decisions"][0];
    assert_eq!((&decided["hold"], &decided["answer"]), (&json!(go), &json!("Skip")), "{summary}");

    let changed = project.json(0, &["change", way, "b", "--run", &fork, "--yes", "--json"]);
    let second = changed["run"].as_str().unwrap().to_owned();
    assert_eq!(project.events(&second, "created")[0]["origin"]["forked"]["parent"], fork.as_str());
    assert_eq!(project.run(&["resume", &second]).code, Some(0));
    assert_eq!(project.read("used.txt"), "a\nb\n", "an omitted task stays omitted");
    let summary = project.json(0, &["summary", &second, "--json"]);
    let plan = &summary["phases"][0];
    let status = |task: &str| {
        let tasks = plan["tasks"].as_array().unwrap();
        tasks.iter().find(|known| known["id"] == task).map(|known| known["status"].clone())
    };
    assert_eq!(status("way"), Some(json!("done")), "{plan}");
    assert_eq!((status("draft"), status("never")), (Some(json!("tolerated")), Some(json!("omitted"))), "{plan}");
    assert_eq!(summary["decisions"][0]["answer"], "b", "{summary}");
    let reason = &summary["omitted"][0]["reason"];
    assert_eq!(reason, "it depends on draft, which did not succeed", "{summary}");
    let late = project.run(&["change", go, "Go", "--run", &second, "--yes"]);
    assert_eq!(late.code, Some(3), "{late:?}");
    assert!(late.stderr.contains("error[hold-closed]") && late.stderr.contains("no longer counts"), "{}", late.stderr);
}

#[test]
fn answering_a_voided_question_explains_why_it_was_voided() {
    let project = Project::with(
        "
name: both
phases:
  - id: one
    tasks:
      - { id: build, run: 'true' }
      - { id: left, needs: [build], verify: { built: it, redo: [build] } }
      - { id: right, needs: [build], verify: { built: it, redo: [build] } }
",
    );
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(3));
    let inbox = project.json(0, &["inbox", "--json"]);
    let of = |task: &str| {
        let holds = inbox.as_array().unwrap();
        holds.iter().find(|hold| hold["tasks"][0] == task).unwrap()["id"].as_str().unwrap().to_owned()
    };
    let (left, right) = (of("one/left"), of("one/right"));
    assert_eq!(project.run(&["answer", &left, "issues", "--feedback", "no", "--foreground"]).code, Some(3));
    let late = project.run(&["answer", &right, "approved", "--no-resume"]);
    assert_eq!(late.code, Some(3), "{late:?}");
    assert!(late.stderr.contains("was voided at"), "{}", late.stderr);
    assert!(late.stderr.contains("the work that it is about is redone"), "{}", late.stderr);
    assert!(late.stderr.contains("asks the same question now"), "{}", late.stderr);
}

#[test]
fn accepting_a_definition_without_the_failed_task_lets_the_run_continue() {
    let flow = "name: x\nphases:\n  - id: one\n    tasks:\n      - { id: bild, run: 'false', on_fail: ask }\n";
    let project = Project::with(flow);
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(3));
    let hold = project.waiting_hold();
    project.write("flow.yaml", flow.replace("bild, run: 'false'", "build, run: 'echo built > built.txt'"));
    let run = project.newest();
    assert_eq!(project.run(&["resume", &run, "--changed", "accept"]).code, Some(0));
    assert_eq!(project.read("built.txt"), "built\n");
    let late = project.run(&["answer", &hold, "rerun", "--no-resume"]);
    assert!(late.stderr.contains("the changed definition has no task bild"), "{late:?}");
    assert_eq!(project.run(&["db", "verify"]).code, Some(0));
}
