//! The functions that scripts may call: files in the output directory, the log, and the agent.
//!
//! | function | returns |
//! | --- | --- |
//! | `readFile(path)` | the text; throws if there is no such file |
//! | `readFiles([path, …])` | an object with the text of each file by its path as given; `null` for a missing one |
//! | `writeFile(path, text)` | nothing; a value other than a string is written as indented JSON; parent directories are
//! created |
//! | `files_exist(path or [path, …])` | whether all of them exist |
//! | `contains_todos(path or [path, …])` | whether one of them contains TODO, FIXME, TBD or XXX; throws if one is missing |
//! | `analyzeFiles(dir)` | `{coverage, files}`: the percentage of expected files that exist and are not empty, and the paths of the files in a directory, by default the output directory |
//! | `identifyGaps([path, …])` | a line for each file that is missing, empty or contains such a marker; by default for the files that the phase expects |
//! | `thinkHard(prompt)` | the agent's reply as a string; with or without `await` |
//! | `log(…)`, `console.log(…)` and the like | nothing; the values become one line of the log |
//!
//! Instead of a path, each function also accepts an object with a `path` (a deliverable of the context).

use super::{
    AgentReply, FILE_LIMIT, Files, LOG_LINE_BYTES, LOG_LINES, MAX_AGENT_QUERIES, PROMPT_LIMIT,
    agent_queries::{AgentQueries, NoReply},
    exception::{cut, plain, show},
    gaps::{coverage, gaps, has_todo},
    globals::put,
    output_files::{Outcome, OutputFiles},
};
use rquickjs::{
    Ctx, Exception, Function, Object, Result, String as Text, Value,
    function::{Opt, Rest},
};
use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Instant,
};

/// The maximum number of reported names of written files.
const MAX_WRITTEN_NAMES: usize = 10_000;

/// What the functions of one evaluation use.
#[derive(Default)]
pub(super) struct ScriptHost {
    deadline: Cell<Option<Instant>>,
    is_late: Cell<bool>,
    folder: RefCell<Option<OutputFiles>>,
    pub(super) agent_queries: AgentQueries,
    log: RefCell<Vec<String>>,
    lines_left_out: Cell<usize>,
    wrote: RefCell<Vec<String>>,
}

impl ScriptHost {
    pub(super) fn start(&self, deadline: Option<Instant>, files: Option<Files>, agent_queries: Option<Vec<AgentReply>>) {
        self.deadline.set(deadline);
        self.folder.replace(files.map(OutputFiles::new));
        self.agent_queries.start(agent_queries);
    }

    /// Whether the script must stop, because it is out of time or waits for an agent.
    pub(super) fn is_over(&self) -> bool {
        self.agent_queries.needs_reply() || self.is_out_of_time()
    }

    /// Whether the deadline has passed. Once true, it stays true.
    pub(super) fn is_out_of_time(&self) -> bool {
        if !self.is_late.get() && self.deadline.get().is_some_and(|deadline| Instant::now() >= deadline) {
            self.is_late.set(true);
        }
        self.is_late.get()
    }

    /// The log and the written files.
    pub(super) fn finish(&self) -> (Vec<String>, Vec<String>) {
        let mut log = self.log.take();
        match self.lines_left_out.get() {
            0 => {}
            1 => log.push("… 1 more line omitted".into()),
            lines => log.push(format!("… {lines} more lines omitted")),
        }
        (log, self.wrote.take())
    }

    fn with_output_files<T>(&self, ctx: &Ctx<'_>, function: &str, act: impl FnOnce(&OutputFiles) -> Outcome<T>) -> Result<T> {
        if self.agent_queries.needs_reply() {
            return Err(wait_for_the_agent(ctx));
        }
        let folder = self.folder.borrow();
        let Some(folder) = &*folder else {
            return Err(Exception::throw_message(ctx, &format!("{function} is not available in a condition")));
        };
        act(folder).map_err(|why| Exception::throw_message(ctx, &format!("{function}: {why}")))
    }

    fn write_log(&self, values: Vec<Value<'_>>) {
        if self.agent_queries.needs_reply() {
            return;
        }
        if self.log.borrow().len() >= LOG_LINES {
            self.lines_left_out.set(self.lines_left_out.get() + 1);
            return;
        }
        let mut line = String::new();
        for value in values {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&show(value));
            if line.len() > LOG_LINE_BYTES {
                break;
            }
        }
        self.log.borrow_mut().push(cut(line, LOG_LINE_BYTES));
    }
}

/// Registers the functions in an engine.
pub(super) fn install(ctx: &Ctx<'_>, host: &Rc<ScriptHost>) -> Result<()> {
    let globals = ctx.globals();

    let at = Rc::clone(host);
    let read_file = move |ctx: Ctx<'_>, path: Opt<Value<'_>>| {
        let path = one_path(&ctx, "readFile", path.0)?;
        at.with_output_files(&ctx, "readFile", |folder| folder.read(&path))
    };
    globals.set("readFile", Function::new(ctx.clone(), read_file)?.with_name("readFile")?)?;

    globals.set("readFiles", Function::new(ctx.clone(), read_files(Rc::clone(host)))?.with_name("readFiles")?)?;

    let at = Rc::clone(host);
    let write_file = move |ctx: Ctx<'_>, path: Opt<Value<'_>>, content: Opt<Value<'_>>| {
        let path = one_path(&ctx, "writeFile", path.0)?;
        let content = content_of(&ctx, content.0)?;
        let name = at.with_output_files(&ctx, "writeFile", |folder| folder.write(&path, &content))?;
        let mut wrote = at.wrote.borrow_mut();
        if wrote.len() < MAX_WRITTEN_NAMES && !wrote.contains(&name) {
            wrote.push(name);
        }
        Result::Ok(())
    };
    globals.set("writeFile", Function::new(ctx.clone(), write_file)?.with_name("writeFile")?)?;

    let at = Rc::clone(host);
    let files_exist = move |ctx: Ctx<'_>, given: Opt<Value<'_>>| {
        let paths = paths(&ctx, "files_exist", given.0)?;
        at.with_output_files(&ctx, "files_exist", |folder| all(&paths, |path| folder.exists(path)))
    };
    globals.set("files_exist", Function::new(ctx.clone(), files_exist)?.with_name("files_exist")?)?;

    let at = Rc::clone(host);
    let contains_todos = move |ctx: Ctx<'_>, given: Opt<Value<'_>>| {
        let paths = paths(&ctx, "contains_todos", given.0)?;
        at.with_output_files(&ctx, "contains_todos", |folder| {
            let is_free = all(&paths, |path| folder.read(path).map(|text| !has_todo(&text)))?;
            Ok(!is_free)
        })
    };
    globals.set("contains_todos", Function::new(ctx.clone(), contains_todos)?.with_name("contains_todos")?)?;

    globals.set("analyzeFiles", Function::new(ctx.clone(), analyze_files(Rc::clone(host)))?.with_name("analyzeFiles")?)?;

    let at = Rc::clone(host);
    let identify_gaps = move |ctx: Ctx<'_>, given: Opt<Value<'_>>| {
        let paths = match given.0.filter(is_given) {
            Some(given) => Some(paths(&ctx, "identifyGaps", Some(given))?),
            None => None,
        };
        at.with_output_files(&ctx, "identifyGaps", |folder| gaps(folder, paths.as_deref().unwrap_or(folder.expected())))
    };
    globals.set("identifyGaps", Function::new(ctx.clone(), identify_gaps)?.with_name("identifyGaps")?)?;

    let at = Rc::clone(host);
    let think_hard = move |ctx: Ctx<'_>, prompt: Opt<Value<'_>>| {
        let prompt = prompt_of(&ctx, prompt.0)?;
        at.agent_queries.ask(prompt).map_err(|unanswered| match unanswered {
            NoReply::NotAvailable => Exception::throw_message(&ctx, "thinkHard is not available here"),
            NoReply::TooMany => {
                Exception::throw_range(&ctx, &format!("thinkHard may be called {MAX_AGENT_QUERIES} times in one script"))
            }
            NoReply::Wanted => wait_for_the_agent(&ctx),
        })
    };
    globals.set("thinkHard", Function::new(ctx.clone(), think_hard)?.with_name("thinkHard")?)?;

    let at = Rc::clone(host);
    let log = Function::new(ctx.clone(), move |values: Rest<Value<'_>>| at.write_log(values.0))?;
    let log = log.with_name("log")?;
    let console = Object::new(ctx.clone())?;
    for name in ["log", "info", "warn", "error", "debug"] {
        console.set(name, log.clone())?;
    }
    globals.set("log", log)?;
    globals.set("console", console)
}

/// Interrupts the script. If it catches the exception, further calls have no effect until it is interrupted.
fn wait_for_the_agent(ctx: &Ctx<'_>) -> rquickjs::Error {
    Exception::throw_internal(ctx, "the agent must be asked first")
}

fn prompt_of(ctx: &Ctx<'_>, value: Option<Value<'_>>) -> Result<String> {
    match value.as_ref().and_then(Value::as_string).map(plain) {
        Some(prompt) if prompt.trim().is_empty() => Err(Exception::throw_type(ctx, "thinkHard needs a prompt that is not empty")),
        Some(prompt) if prompt.len() <= PROMPT_LIMIT => Ok(prompt),
        Some(_) => Err(Exception::throw_range(ctx, &format!("thinkHard: the prompt is longer than {PROMPT_LIMIT} bytes"))),
        None => Err(Exception::throw_type(ctx, "thinkHard needs a prompt, which must be a string")),
    }
}

/// A separate function, because its result lives as long as the engine it was called from.
fn read_files(host: Rc<ScriptHost>) -> impl for<'js> Fn(Ctx<'js>, Opt<Value<'js>>) -> Result<Object<'js>> {
    move |ctx, given| {
        let files = Object::new(ctx.clone())?;
        for path in paths(&ctx, "readFiles", given.0)? {
            let text = host.with_output_files(&ctx, "readFiles", |folder| folder.read_if_present(&path))?;
            let value = match text {
                Some(text) => Text::from_str(ctx.clone(), &text)?.into_value(),
                None => Value::new_null(ctx.clone()),
            };
            put(&files, &path, value)?;
        }
        Ok(files)
    }
}

/// A separate function for the same reason.
fn analyze_files(host: Rc<ScriptHost>) -> impl for<'js> Fn(Ctx<'js>, Opt<Value<'js>>) -> Result<Object<'js>> {
    move |ctx, given| {
        let dir = match given.0.filter(is_given) {
            Some(given) => one_path(&ctx, "analyzeFiles", Some(given))?,
            None => ".".into(),
        };
        let (coverage, files) =
            host.with_output_files(&ctx, "analyzeFiles", |folder| Ok((coverage(folder)?, folder.list(&dir)?)))?;
        let analysis = Object::new(ctx)?;
        analysis.set("coverage", coverage)?;
        analysis.set("files", files)?;
        Ok(analysis)
    }
}

fn is_given(value: &Value<'_>) -> bool {
    !value.is_undefined() && !value.is_null()
}

/// Whether it holds for all paths, stopping at the first for which it does not.
fn all(paths: &[String], holds: impl Fn(&str) -> Outcome<bool>) -> Outcome<bool> {
    for path in paths {
        if !holds(path)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn one_path(ctx: &Ctx<'_>, function: &str, value: Option<Value<'_>>) -> Result<String> {
    let path = match value.as_ref().and_then(Value::as_object) {
        Some(object) if !object.is_array() => object.get::<_, Value<'_>>("path").ok(),
        Some(_) | None => value,
    };
    match path.as_ref().and_then(Value::as_string) {
        Some(text) => Ok(plain(text)),
        None => Err(Exception::throw_type(ctx, &format!("{function} needs a path, which must be a string"))),
    }
}

fn paths(ctx: &Ctx<'_>, function: &str, value: Option<Value<'_>>) -> Result<Vec<String>> {
    match value.as_ref().and_then(Value::as_array) {
        Some(list) => list.iter().map(|item| one_path(ctx, function, Some(item?))).collect(),
        None => Ok(vec![one_path(ctx, function, value)?]),
    }
}

fn content_of(ctx: &Ctx<'_>, value: Option<Value<'_>>) -> Result<String> {
    let content = match value {
        Some(value) => match value.as_string() {
            Some(text) => Some(plain(text)),
            None => {
                let at = value.ctx().clone();
                let json = at.json_stringify_replacer_space(value, Value::new_undefined(at.clone()), 2)?;
                json.map(|json| json.to_string()).transpose()?.map(|json| json + "\n")
            }
        },
        None => None,
    };
    match content {
        Some(content) if content.len() <= FILE_LIMIT => Ok(content),
        Some(_) => Err(Exception::throw_range(ctx, &format!("writeFile: more than {FILE_LIMIT} bytes"))),
        None => Err(Exception::throw_type(ctx, "writeFile needs a string, or a value that can be written as JSON")),
    }
}
