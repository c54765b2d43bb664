//! One engine: prepared in advance, used for one evaluation, then discarded.

use super::{
    Failed, Form, RESULT_DEPTH, RESULT_LIMIT, Returned, ScriptError,
    exception::{self, FILE_NAME},
    functions::{self, ScriptHost},
    globals::{CachedValue, set_globals, set_stored},
    message::Request,
};
use lockgate_engine::digest::Digest;
use rquickjs::{Coerced, Context, Ctx, Error, Persistent, Promise, Runtime, Value, context::EvalOptions, promise::PromiseState};
use std::{
    collections::HashMap,
    rc::Rc,
    time::{Duration, Instant},
};

/// The upper limit for the stack of a call.
const MAX_STACK: usize = 4 << 20;
/// With less stack, the engine's own functions would not work.
const MIN_STACK: usize = 64 << 10;
/// Extra memory for describing an error, because the memory of the call may be used up.
const MEMORY_TO_DESCRIBE: usize = 8 << 20;
/// Globals that could block the worker or share memory, removed from every engine.
const REMOVED: [&str; 2] = ["Atomics", "SharedArrayBuffer"];

/// An engine with only the language and the functions for scripts.
pub(super) struct Sandbox {
    runtime: Runtime,
    context: Context,
    host: Rc<ScriptHost>,
}

/// Why an evaluation stopped: for a known reason, or by a thrown value that is still to be described.
enum Stop {
    Known(ScriptError),
    Thrown(Persistent<Value<'static>>),
}

/// The actual limit is filled in later.
const OUT_OF_TIME: Stop = Stop::Known(ScriptError::Timeout(Duration::ZERO));

/// A settled value: whether it is truthy, and its JSON text.
type Settled = (bool, String);

impl Sandbox {
    pub(super) fn prepare() -> Result<Self, ScriptError> {
        Self::make().map_err(|error| ScriptError::Worker(format!("cannot create an engine: {error}")))
    }

    fn make() -> rquickjs::Result<Self> {
        let runtime = Runtime::new()?;
        // The full context: one without promises can abort the process.
        let context = Context::full(&runtime)?;
        let host = Rc::<ScriptHost>::default();
        let watch = Rc::clone(&host);
        runtime.set_interrupt_handler(Some(Box::new(move || watch.is_over())));
        context.with(|ctx| {
            for name in REMOVED {
                ctx.globals().remove(name)?;
            }
            functions::install(&ctx, &host)
        })?;
        Ok(Self { runtime, context, host })
    }

    /// Evaluates one call, the only one of this engine.
    pub(super) fn evaluate(&self, request: Request<'_>, value_cache: &HashMap<Digest, CachedValue>) -> Result<Returned, Failed> {
        let Request { form, source, globals, forget: _, stored, files, agent_queries, limits } = request;
        self.host.start(Instant::now().checked_add(limits.time), files, agent_queries);
        self.runtime.set_memory_limit(limits.memory);
        self.runtime.set_max_stack_size(limits.stack.clamp(MIN_STACK, MAX_STACK));

        let outcome = self.context.with(|ctx| {
            set_globals(&ctx, &globals).map_err(|error| self.stop(&ctx, error))?;
            set_stored(&ctx, &stored, value_cache).map_err(|error| self.stop(&ctx, error))?;
            let settled = self.settle(&ctx, form, source)?;
            // The log may have run the value's own code, which may have been interrupted.
            if self.host.is_out_of_time() { Err(OUT_OF_TIME) } else { Ok(settled) }
        });
        // Whatever the script made of the exception, it has not continued past the query.
        let outcome = match self.host.agent_queries.wanted() {
            Some(prompt) => Err(ScriptError::NeedsAgent { prompt }),
            None => outcome.map_err(|stop| self.explain(stop, form, source, limits.time, limits.memory)),
        };
        let (log, wrote) = self.host.finish();
        match outcome {
            Ok((truthy, json)) => Ok(Returned { json, truthy, log, wrote }),
            Err(error) => Err(Failed { error, log, wrote }),
        }
    }

    /// Runs the source and its pending jobs until its promise is settled.
    fn settle(&self, ctx: &Ctx<'_>, form: Form, source: &str) -> Result<Settled, Stop> {
        let mut options = EvalOptions::default();
        options.strict = false;
        options.filename = Some(FILE_NAME.into());
        let promise: Promise<'_> = ctx.eval_with_options(wrap(form, source), options).map_err(|error| self.stop(ctx, error))?;
        while promise.state() == PromiseState::Pending {
            // If it waits for the agent, the caller reports that instead.
            if self.host.is_over() {
                return Err(OUT_OF_TIME);
            }
            if !ctx.execute_pending_job() {
                return Err(Stop::Known(ScriptError::NeverSettles));
            }
        }
        let value: Value<'_> = match promise.result() {
            Some(result) => result.map_err(|error| self.stop(ctx, error))?,
            None => return Err(Stop::Known(ScriptError::NeverSettles)),
        };
        let truthy = value.get::<Coerced<bool>>().map_err(|error| self.stop(ctx, error))?.0;
        let json = self.json(ctx, value);
        match (form, json) {
            (_, Ok(json)) => Ok((truthy, json)),
            (Form::Expression, Err(_)) if !self.host.is_out_of_time() => Ok((truthy, "null".into())),
            (Form::Body | Form::Expression, Err(stop)) => Err(stop),
        }
    }

    fn json<'js>(&self, ctx: &Ctx<'js>, value: Value<'js>) -> Result<String, Stop> {
        let not_json = |why: &str| Err(Stop::Known(ScriptError::NotJson(why.into())));
        if value.is_undefined() || value.is_null() {
            return Ok("null".into());
        }
        if value.is_function() {
            return not_json("it is a function");
        }
        if value.is_symbol() {
            return not_json("it is a symbol");
        }
        if value.is_big_int() {
            return not_json("it is a BigInt; use Number(…) or String(…)");
        }
        let text = match ctx.json_stringify(value) {
            Ok(Some(text)) => text,
            Ok(None) => return not_json("its toJSON returns nothing"),
            Err(error) => {
                return Err(match self.stop(ctx, error) {
                    Stop::Thrown(thrown) => match exception::engine_says_not_json(ctx, &thrown) {
                        Some(why) => Stop::Known(ScriptError::NotJson(why)),
                        None => Stop::Thrown(thrown),
                    },
                    known @ Stop::Known(_) => known,
                });
            }
        };
        let text = text.to_string().map_err(|error| self.stop(ctx, error))?;
        if text.len() > RESULT_LIMIT {
            return Err(Stop::Known(ScriptError::TooLarge));
        }
        if depth(&text) > RESULT_DEPTH {
            return not_json(&format!("it is nested deeper than {RESULT_DEPTH} levels"));
        }
        Ok(without_lone_surrogates(text))
    }

    fn stop(&self, ctx: &Ctx<'_>, error: Error) -> Stop {
        if self.host.is_out_of_time() {
            return OUT_OF_TIME;
        }
        match error {
            Error::Exception => Stop::Thrown(Persistent::save(ctx, ctx.catch())),
            Error::Allocation => Stop::Known(ScriptError::Memory),
            // The engine fails to return a string only if it is out of memory.
            Error::Unknown => Stop::Known(ScriptError::Memory),
            other => Stop::Known(ScriptError::Thrown { message: format!("SyntaxError: {other}"), line: None, column: None }),
        }
    }

    fn explain(&self, stop: Stop, form: Form, source: &str, time: Duration, memory: usize) -> ScriptError {
        let error = match stop {
            Stop::Known(error) => error,
            Stop::Thrown(thrown) => {
                self.runtime.set_memory_limit(memory.saturating_add(MEMORY_TO_DESCRIBE));
                self.context.with(|ctx| match thrown.restore(&ctx) {
                    Ok(value) => exception::describe(value, prefix(form), source),
                    Err(error) => ScriptError::Worker(error.to_string()),
                })
            }
        };
        if self.host.is_out_of_time() || matches!(error, ScriptError::Timeout(_)) {
            return ScriptError::Timeout(time);
        }
        error
    }
}

fn prefix(form: Form) -> &'static str {
    match form {
        Form::Body => "(async function () {",
        Form::Expression => "(async () => (",
    }
}

/// Wraps the source in an async function and calls it. The prefix stays on the first line, so that line numbers are kept; the
/// suffix starts a new line, so that a trailing comment stays a comment.
fn wrap(form: Form, source: &str) -> String {
    let (source, suffix) = match form {
        Form::Body => (source, "\n})()"),
        // A statement may end with a semicolon, but an expression must not.
        Form::Expression => (source.trim_end_matches(|c: char| c == ';' || c.is_whitespace()), "\n))()"),
    };
    [prefix(form), source, suffix].concat()
}

/// The nesting depth of arrays and objects in a JSON text.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest, mut in_text, mut bytes) = (0_usize, 0, false, json.bytes());
    while let Some(byte) = bytes.next() {
        match (byte, in_text) {
            (b'"', _) => in_text = !in_text,
            (b'\\', true) => drop(bytes.next()),
            (b'[' | b'{', false) => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            (b']' | b'}', false) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Replaces lone surrogates with replacement characters. The engine escapes only unpaired surrogates, and other JSON parsers
/// reject them.
pub(super) fn without_lone_surrogates(json: String) -> String {
    if !json.contains("\\ud") {
        return json;
    }
    let mut clean = String::with_capacity(json.len());
    let mut rest = json.as_str();
    while let Some(at) = rest.find('\\') {
        clean.push_str(&rest[..at]);
        let is_half = rest[at..].starts_with("\\ud") && rest[at + 3..].starts_with(|c| matches!(c, '8'..='9' | 'a'..='f'));
        // Every other escape is a backslash and one character.
        let length = if is_half { 6 } else { 2 };
        clean.push_str(if is_half { "\\ufffd" } else { &rest[at..at + length] });
        rest = &rest[at + length..];
    }
    clean.push_str(rest);
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_brackets_outside_strings() {
        assert_eq!(depth("1"), 0);
        assert_eq!(depth(r#"{"a[[":["]\"[",{}]}"#), 3);
    }

    #[test]
    fn only_lone_surrogates_are_replaced() {
        let clean = |text: &str| without_lone_surrogates(text.to_owned());
        assert_eq!(clean(r#""\ud800x""#), r#""\ufffdx""#);
        assert_eq!(clean(r#""\\ud800""#), r#""\\ud800""#);
        assert_eq!(clean(r#""\n\udfff\\""#), r#""\n\ufffd\\""#);
        assert_eq!(clean(r#""\ud7ff""#), r#""\ud7ff""#);
    }
}
