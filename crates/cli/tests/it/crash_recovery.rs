//! Durability: Lockgate is killed with SIGKILL at random times in a workflow with parallel shell tasks and a checkpoint, and
//! resumed immediately. `LOCKGATE_KILLS` sets the number of kills (50 by default), `LOCKGATE_SOAK_MINUTES` limits the time.

use crate::project::{Project, without_terminal};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Each task holds an exclusive lock while any of its processes is alive, and records when it starts and ends.
const WORKFLOW: &str = r#"
name: to be killed
phases:
  - id: build
    tasks:
      - { id: a, on_interrupt: rerun, run: &work 'sh "$TRACE/work.sh"' }
      - { id: b, on_interrupt: rerun, run: *work }
      - { id: c, on_interrupt: rerun, needs: [a], run: *work }
      - { id: d, on_interrupt: rerun, needs: [a, b], run: *work }
    gates:
      - { id: check, run: 'sh "$TRACE/work.sh"' }
    checkpoint:
      prompt: Go on?
      show_files: [notes.md]
      options:
        - { label: Continue, on_select: { action: continue } }
  - id: ship
    tasks:
      - { id: e, on_interrupt: rerun, run: *work }
      - { id: f, on_interrupt: rerun, run: *work }
"#;

const WORK: &str = r#"
me="$LOCKGATE_RUN-$LOCKGATE_PHASE-$LOCKGATE_TASK"
exec 9>"$TRACE/$me.lock"
flock -n 9 || echo "$me" >> "$TRACE/overlaps"
echo "start $LOCKGATE_PHASE/$LOCKGATE_TASK $LOCKGATE_ATTEMPT" >> "$TRACE/$LOCKGATE_RUN.trace"
sleep 0.03
echo "end $LOCKGATE_PHASE/$LOCKGATE_TASK $LOCKGATE_ATTEMPT" >> "$TRACE/$LOCKGATE_RUN.trace"
"#;

pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// Starts a command, and kills it after a while unless it exits first.
fn killed_after(command: &mut Command, life: Duration) -> bool {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let until = Instant::now() + life;
    while Instant::now() < until {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    true
}

#[test]
#[expect(clippy::print_stdout, reason = "soak shows how much was done")]
fn random_kills_lose_nothing_and_run_nothing_twice() {
    let kills = number("LOCKGATE_KILLS").unwrap_or(50);
    let until = number("LOCKGATE_SOAK_MINUTES").map(|minutes| Instant::now() + Duration::from_secs(minutes * 60));
    let seed = number("LOCKGATE_SEED").or_else(|| number("LOCKGATE_FIRST_SEED")).unwrap_or(20_261_115);
    let mut random = SmallRng::seed_from_u64(seed);
    let (mut done, mut runs) = (0, 0);
    while done < kills && until.is_none_or(|until| Instant::now() < until) {
        done += one_run(&mut random, kills - done, seed);
        runs += 1;
    }
    println!("{done} kills in {runs} runs, seed {seed}");
}

/// Kills a run repeatedly until it is complete or the limit is reached, then lets it finish. Returns the number of kills.
fn one_run(random: &mut SmallRng, most: u64, seed: u64) -> u64 {
    let project = Project::with(WORKFLOW);
    project.write("notes.md", "as shown\n");
    project.write("work.sh", WORK);
    let command = |arguments: &[&str]| {
        let mut command = project.command(arguments);
        without_terminal(&mut command);
        command.env("TRACE", project.root());
        command
    };
    let mut killed = 0;
    let mut answers = 0;
    loop {
        let life = match killed < most {
            true => Duration::from_millis(random.random_range(0..250)),
            false => Duration::from_secs(60),
        };
        let listed = project.run(&["runs", "--json"]);
        let runs: Value = serde_json::from_str(&listed.stdout).unwrap_or(Value::Null);
        let run = runs.get(0).map(|run| run["run"].as_str().unwrap().to_owned());
        let Some(run) = run else {
            killed += u64::from(killed_after(&mut command(&["run", "flow.yaml"]), life));
            continue;
        };
        match runs[0]["status"].as_str().unwrap() {
            "complete" => {
                check(&project, &run, answers, seed);
                return killed.max(1);
            }
            "waiting" => {
                let answered = project.run(&["answer", &project.waiting_hold(), "Continue", "--no-resume"]);
                assert_eq!(answered.code, Some(0), "{answered:?}");
                answers += 1;
            }
            _ => killed += u64::from(killed_after(&mut command(&["resume", &run]), life)),
        }
    }
}

fn check(project: &Project, run: &str, answers: usize, seed: u64) {
    let reported = |claim: &str| format!("{claim} (LOCKGATE_SEED={seed})");
    assert!(!project.path("overlaps").exists(), "{}", reported("a task ran alongside an orphan of itself"));
    let events = project.log(run);
    let answered = events.iter().filter(|event| event["type"] == "answered");
    assert_eq!(answered.count(), answers, "{}", reported("every answer is recorded"));

    let address = |event: &Value| format!("{}/{}", event["phase"].as_str().unwrap(), event["task"].as_str().unwrap());
    let mut finished = BTreeMap::new();
    for event in &events {
        match event["type"].as_str().unwrap() {
            "task_finished" => {
                let again = finished.insert(address(event), event["attempt"].as_u64().unwrap());
                assert!(again.is_none(), "{}", reported("a task finished twice"));
            }
            "task_started" => {
                assert!(!finished.contains_key(&address(event)), "{}", reported("finished work ran again"));
            }
            _ => {}
        }
    }
    assert_eq!(finished.len(), 6, "{}", reported("every task finished"));

    let trace = project.read(&format!("{run}.trace"));
    let lines: Vec<&str> = trace.lines().collect();
    let once: BTreeSet<&&str> = lines.iter().collect();
    assert_eq!(once.len(), lines.len(), "{}", reported("an attempt ran twice"));
    for (task, attempt) in &finished {
        assert!(
            lines.contains(&format!("end {task} {attempt}").as_str()),
            "{}",
            reported("a finished attempt ran to completion")
        );
        let later =
            lines.iter().filter_map(|line| line.strip_prefix(&format!("start {task} "))).map(|text| text.parse::<u64>().unwrap());
        assert_eq!(later.max(), Some(*attempt), "{}", reported("nothing of a task ran after the attempt that finished"));
    }
    let verified = project.run(&["db", "verify", run]);
    assert_eq!(verified.code, Some(0), "{}: {verified:?}", reported("the history verifies"));
}
