//! Secrets are sent through every key and every kind of output, in every form, and must not appear in anything that Lockgate
//! stores, shows or passes on. A value that is not declared as a secret takes the same paths and must appear in each of them.

use crate::project::Project;
use crate::screen::Screen;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const TOKEN: &str = "s3cr/t'ä 9Zq";
const AGENT_KEY: &str = "k3yo/f'ä 5Xv";
/// Not declared as a secret.
const CONTROL: &str = "c0nt/l'ä 7Wk";

const FLOW: &str = r#"
name: taint
secrets: { TOKEN: { env: TAINT_TOKEN } }
agents:
  default: { command: ./agent.sh, secrets: [AGENT_KEY] }
  argued: { command: ./argued.sh, prompt: argument }
phases:
  - id: make
    tasks:
      - { id: copy, run: 'cp forms.txt "$LOCKGATE_OUTPUT_DIR/forms.txt"', outputs: [forms.txt] }
      - id: print
        needs: copy
        secrets: [TOKEN]
        run: |
          cat forms.txt
          while read -r line; do printf '%s' "${line%?}"; sleep 0.01; printf '%s\n' "${line#"${line%?}"}"; done < forms.txt
          bash -xc ': "$TOKEN" "$CONTROL"'
          printf '%q\n' "$TOKEN" "$CONTROL"
          exit 1
        continue_on_error: true
      - { id: inherited, needs: copy, run: 'env; test -z "${AGENT_KEY-}${TOKEN-}${TAINT_TOKEN-}"' }
      - { id: result, needs: copy, script: "const t = readFile('forms.txt'); console.log(t); return { t, [t]: [t] }" }
      - { id: throw, needs: copy, script: "throw new Error(readFile('forms.txt'))", continue_on_error: true }
      - { id: when, needs: copy, when: "context.outputs.make.nothing.at.all + readFile('forms.txt')", pass: true, continue_on_error: true }
      - { id: agent, needs: result, prompt: "{{outputs.make.result.t}}", output_path: agent.md }
      - { id: argued, agent: argued, needs: result, prompt: "{{outputs.make.result.t}}" }
      - { id: think, needs: copy, script: "return await thinkHard(readFile('forms.txt'))" }
      - id: each
        needs: copy
        for_each: { script: "return readFile('items.txt').split('\\n').filter(line => line)" }
        worktree: true
        run: 'printf "%s\n" "$LOCKGATE_ITEM" > item.txt'
      - id: commits
        needs: copy
        for_each: { script: "return readFile('items.txt').split('\\n').filter(line => line)", max_parallel: 1 }
        commit: true
        run: 'printf "%s\n" "$LOCKGATE_ITEM" > "made-$(printf %s "$LOCKGATE_ITEM" | cksum | cut -d " " -f 1).txt"'
      - { id: lines, needs: copy, for_each: { lines: forms.txt }, pass: true }
      - id: again
        needs: copy
        run: 'cp forms.txt "$LOCKGATE_OUTPUT_DIR/again.txt"; printf "%s" "$LOCKGATE_FEEDBACK" | cat'
        until: { run: 'cat forms.txt; exit 1', limit: 2 }
        continue_on_error: true
    gap_check: { script: "const t = readFile('forms.txt'); return { status: 'complete', message: t, gaps: [] }" }
    gates: [{ id: gate, run: 'cat forms.txt; exit 1', on_fail: ask }]
    checkpoint: { prompt: "{{outputs.make.result.t}}", show_files: [forms.txt, "{{output_dir}}/agent.md"] }
finalization: { template: "{{outputs.make.result.t}} {{outputs.make.agent}}", output: final.md }
"#;

/// The forms in which a value is printed.
fn forms(value: &str) -> Vec<String> {
    let hex = |between: &str| value.bytes().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(between);
    let percent: String = value.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let some_percent = value.replace('/', "%2f").replace('\'', "%27").replace('ä', "%c3%A4").replace(' ', "%20");
    let unicode: String = value.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
    let entities = value.replace('\'', "&#39;").replace('/', "&#x2F;");
    let quoted = value.replace('\'', r"'\''");
    let escaped = value.replace('\'', r"\'").replace(' ', r"\ ").replace('ä', r"\303\244");
    vec![value.to_owned(), hex(""), hex(":"), percent, some_percent, unicode, entities, quoted, escaped, base64(value)]
}

fn base64(value: &str) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits: String = value.bytes().map(|byte| format!("{byte:08b}")).collect();
    let sixes = bits.as_bytes().chunks(6).map(|six| format!("{:0<6}", String::from_utf8_lossy(six)));
    sixes.map(|six| char::from(ALPHABET[usize::from_str_radix(&six, 2).unwrap()])).collect()
}

/// The search patterns: each form, plain and as JSON.
fn needles(value: &str) -> Vec<String> {
    let mut needles = forms(value);
    let json: Vec<String> = needles.iter().map(|form| serde_json::to_string(form).unwrap()).collect();
    needles.extend(json.iter().map(|json| json[1..json.len() - 1].to_owned()));
    needles.sort();
    needles.dedup();
    needles
}

fn holds(bytes: &[u8], needle: &str) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle.as_bytes())
}

/// Everything that was collected, by location.
type Places = BTreeMap<&'static str, Vec<(String, Vec<u8>)>>;

fn project() -> Project {
    let project = Project::on_sqlite();
    let lines = |values: &[String]| values.iter().map(|value| format!("{value}\n")).collect::<String>();
    let all: Vec<String> = [TOKEN, AGENT_KEY, CONTROL].iter().flat_map(|value| forms(value)).collect();
    let items: Vec<String> = [TOKEN, AGENT_KEY, CONTROL].iter().flat_map(|value| forms(value).into_iter().take(2)).collect();
    project.write("forms.txt", lines(&all));
    project.write("items.txt", lines(&items));
    project.write("agent.sh", "#!/bin/sh\ncat\ncat forms.txt\nprintf '%s\\n' \"$AGENT_KEY\" \"$CONTROL\"\n");
    project.write("argued.sh", "#!/bin/sh\nuntil test -e sampled; do sleep 0.05; done\nprintf '%s\\n' \"$1\"\n");
    for script in ["agent.sh", "argued.sh"] {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(project.path(script), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    project.write(
        "flow.yaml",
        FLOW.replace("copy, run: 'cp forms.txt", "copy, run: 'cp items.txt \"$LOCKGATE_OUTPUT_DIR\"; cp forms.txt"),
    );
    project.init_git();
    let ignored = [".lockgate/", ".gitignore", "forms.txt", "items.txt", "*.sh", "flow.yaml", "sampled"];
    project.write(".gitignore", ignored.join("\n"));
    project.git(&["commit", "--quiet", "--allow-empty", "-m", "first"]);
    project
}

/// Samples the arguments of all processes until stopped, and reports when the control value was seen.
fn sample(project: &Project, stop: &Arc<AtomicBool>) -> std::thread::JoinHandle<Vec<(String, Vec<u8>)>> {
    let (stop, seen) = (stop.clone(), project.path("sampled"));
    std::thread::spawn(move || {
        let mut found: BTreeMap<Vec<u8>, String> = BTreeMap::new();
        while !stop.load(Ordering::Relaxed) {
            for process in std::fs::read_dir("/proc").unwrap().flatten() {
                let arguments = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
                if holds(&arguments, CONTROL) {
                    std::fs::write(&seen, "").unwrap();
                }
                found.entry(arguments).or_insert_with(|| process.path().display().to_string());
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        found.into_iter().map(|(arguments, process)| (process, arguments)).collect()
    })
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| match entry.file_type().unwrap() {
            kind if kind.is_dir() => files(&entry.path()),
            kind if kind.is_file() => vec![entry.path()],
            _ => Vec::new(),
        })
        .collect()
}

/// The output of every read-only command, as text and as JSON.
fn read_all(project: &Project, run: &str) -> Vec<(String, Vec<u8>)> {
    let steps = ["make/print", "make/result", "make/throw", "make/agent", "make/gate", "make/again"];
    let mut commands: Vec<Vec<&str>> = steps.iter().map(|step| vec!["logs", run, step]).collect();
    for command in [&["status", run][..], &["log", run], &["summary", run], &["why", run], &["runs"], &["inbox"], &["worktrees"]]
    {
        commands.push(command.to_vec());
        commands.push(command.iter().copied().chain(["--json"]).collect());
    }
    commands.push(vec!["graph", "--run", run]);
    let said = commands.iter().map(|arguments| {
        let output = project.command(arguments).output().unwrap();
        (arguments.join(" "), [output.stdout, output.stderr].concat())
    });
    said.collect()
}

fn database(project: &Project) -> Vec<(String, Vec<u8>)> {
    let connection = rusqlite::Connection::open(project.path(".lockgate/lockgate.db")).unwrap();
    let mut tables = connection.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").unwrap();
    let names: Vec<String> = tables.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let mut found = Vec::new();
    for name in names {
        let mut all = connection.prepare(&format!("SELECT * FROM \"{name}\"")).unwrap();
        let columns = all.column_count();
        let mut rows = all.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            for column in 0..columns {
                match row.get_ref(column).unwrap() {
                    rusqlite::types::ValueRef::Text(bytes) | rusqlite::types::ValueRef::Blob(bytes) => {
                        found.push((format!("table {name}"), bytes.to_vec()));
                    }
                    rusqlite::types::ValueRef::Null
                    | rusqlite::types::ValueRef::Integer(_)
                    | rusqlite::types::ValueRef::Real(_) => {}
                }
            }
        }
    }
    found
}

fn everywhere(project: &Project, terminal: Vec<u8>, arguments: Vec<(String, Vec<u8>)>) -> Places {
    let run = project.newest();
    let git = |arguments: &[&str]| vec![(arguments.join(" "), project.git(arguments).into_bytes())];
    let all = files(&project.path(".lockgate"));
    // Files that the task itself wrote are excluded.
    let kept = all
        .iter()
        .filter(|path| !path.ends_with("out/forms.txt") && !path.ends_with("out/items.txt") && !path.ends_with("out/again.txt"));
    let names = all.iter().map(|path| (path.display().to_string(), path.display().to_string().into_bytes())).collect();
    let content = |path: &PathBuf| (path.display().to_string(), std::fs::read(path).unwrap_or_default());
    let is = |path: &&PathBuf, part: &str| path.to_string_lossy().contains(part);
    BTreeMap::from([
        ("terminal", vec![("terminal".to_owned(), terminal)]),
        ("process arguments", arguments),
        ("tables", database(project)),
        ("database files", kept.clone().filter(|path| is(path, "lockgate.db")).map(content).collect()),
        ("logs", kept.clone().filter(|path| is(path, "/logs/")).map(content).collect()),
        ("written outputs", kept.clone().filter(|path| is(path, "/out/")).map(content).collect()),
        ("all other files", kept.map(content).collect()),
        ("file and worktree names", names),
        ("branches", git(&["for-each-ref", "--format=%(refname)"])),
        ("worktrees", git(&["worktree", "list"])),
        ("commit messages", git(&["log", "--all", "--format=%B"])),
        ("reading commands", read_all(project, &run)),
    ])
}

#[test]
fn secrets_appear_nowhere_and_a_control_value_appears_everywhere() {
    let project = project();
    let stop = Arc::new(AtomicBool::new(false));
    let sampler = sample(&project, &stop);
    let script = "\"$LOCKGATE\" run flow.yaml --answer 'make/gate=Count as done' --answer make=Continue";
    // Log everything, so that the terminal also shows the log.
    let set = [("TAINT_TOKEN", TOKEN), ("AGENT_KEY", AGENT_KEY), ("CONTROL", CONTROL), ("LOCKGATE_LOG", "trace")];
    let mut screen = Screen::shell(&project, (200, 50), script, &set);
    let code = screen.end();
    stop.store(true, Ordering::Relaxed);
    let arguments = sampler.join().unwrap();
    let shown = screen.history().join("\n");
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("process ended"), "nothing was logged: {shown}");
    let mut terminal = screen.bytes.clone();
    terminal.extend(shown.into_bytes());
    let places = everywhere(&project, terminal, arguments);
    for (secret, name) in [(TOKEN, "TOKEN"), (AGENT_KEY, "AGENT_KEY")] {
        for needle in needles(secret) {
            for (place, found) in &places {
                for (what, bytes) in found {
                    assert!(!holds(bytes, &needle), "{name} as {needle:?} is in {place}: {what}");
                }
            }
        }
    }
    for (place, found) in &places {
        let sees = |needle: &String| found.iter().any(|(_, bytes)| holds(bytes, needle));
        assert!(needles(CONTROL).iter().any(sees), "the control value is missing in {place}");
    }
}

#[test]
fn an_earlier_value_of_a_changed_secret_stays_masked() {
    let flow = r#"
name: rotating
secrets: { TOKEN: { command: 'n=$(cat n); echo $((n + 1)) > n; echo "rotating-value-$n-end"' } }
phases:
  - id: p
    behavior: sequential
    tasks:
      - { id: one, secrets: [TOKEN], run: 'echo "$TOKEN" >> seen' }
      - { id: two, secrets: [TOKEN], run: 'echo "$TOKEN" >> seen' }
      - { id: three, run: 'cat seen' }
"#;
    let project = Project::with(flow);
    project.write("n", "1\n");
    let run = project.run(&["run", "flow.yaml"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(project.read("seen").lines().count(), 2);
    let log = project.run(&["logs", &project.newest(), "p/three"]);
    assert_eq!(log.stdout, "***TOKEN***\n***TOKEN***\n", "{log:?}");
    let found = Command::new("grep").args(["-rlaF", "rotating-value-1-end"]).arg(project.path(".lockgate")).output().unwrap();
    assert!(found.stdout.is_empty(), "{found:?}");
}
