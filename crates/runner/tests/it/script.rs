//! Scripts and conditions in their workers. The worker is this test program itself.

mod agent_queries;
mod files;
mod limits;
mod workers;

use lockgate_engine::digest::Digest;
use lockgate_runner::script::{
    Call, Evaluator, Form, LOG_LINE_BYTES, LOG_LINES, Limits, RESULT_LIMIT, Returned, ScriptError, StoredPart, WorkerCommand,
    worker_main,
};
use std::{ffi::OsString, time::Duration};

const WORKER_VARIABLE: &str = "LOCKGATE_TEST_WORKER";

/// Not a test: the entry point of the workers.
#[test]
fn worker_entry() {
    if std::env::var_os(WORKER_VARIABLE).is_some() {
        worker_main();
    }
}

fn command(mark: &str) -> WorkerCommand {
    WorkerCommand {
        program: std::env::current_exe().unwrap(),
        args: ["--exact", "script::worker_entry", "--nocapture"].map(OsString::from).to_vec(),
        env: vec![(WORKER_VARIABLE.into(), mark.into())],
    }
}

pub(crate) fn evaluator() -> Evaluator {
    Evaluator::new(command("1"))
}

fn body(source: &str) -> Call {
    Call {
        form: Form::Body,
        source: source.into(),
        globals: Vec::new(),
        stored: Vec::new(),
        files: None,
        agent_queries: None,
        limits: Limits { time: Duration::from_secs(20), memory: 32 << 20, stack: 256 << 10 },
    }
}

fn expression(source: &str) -> Call {
    Call { form: Form::Expression, ..body(source) }
}

async fn json(evaluator: &Evaluator, call: Call) -> String {
    let source = call.source.clone();
    evaluator.call(call).await.unwrap_or_else(|error| panic!("{source}: {error:?}")).json
}

async fn fails(evaluator: &Evaluator, call: Call) -> ScriptError {
    let source = call.source.clone();
    match evaluator.call(call).await {
        Ok(returned) => panic!("{source} gave {returned:?}"),
        Err(error) => error,
    }
}

fn thrown(message: &str, place: Option<(u32, u32)>) -> ScriptError {
    ScriptError::Thrown { message: message.into(), line: place.map(|at| at.0), column: place.map(|at| at.1) }
}

#[tokio::test]
async fn truthiness_follows_javascript() {
    let evaluator = evaluator();
    let table = [
        ("true", true),
        ("false", false),
        ("0", false),
        ("-0", false),
        ("0n", false),
        ("1n", true),
        ("NaN", false),
        ("null", false),
        ("undefined", false),
        ("''", false),
        ("'0'", true),
        ("'false'", true),
        ("[]", true),
        ("{}", true),
        ("new Boolean(false)", true),
        ("() => false", true),
        ("Symbol()", true),
        ("Promise.resolve(0)", false),
        ("await 1", true),
        ("1, 0", false),
        ("context.feature.flags.includes('frontend') && phase.iteration > 1", true),
        ("context.absent?.more", false),
        ("1 // a comment", true),
        ("1;", true),
        ("\n  0\n  ;\n", false),
        ("(function () { const self = {}; self.self = self; return self })()", true),
    ];
    for (source, truth) in table {
        let mut call = expression(source);
        call.globals = vec![
            ("context".into(), r#"{"feature":{"flags":["frontend"]}}"#.into()),
            ("phase".into(), r#"{"iteration":2}"#.into()),
        ];
        assert_eq!(evaluator.call(call).await.map(|returned| returned.truthy), Ok(truth), "{source}");
    }
}

#[tokio::test]
async fn a_script_body_returns_its_value_as_json() {
    let evaluator = evaluator();
    let table = [
        ("return null", "null"),
        ("", "null"),
        ("return undefined", "null"),
        ("return NaN", "null"),
        ("return 'é\\n'", r#""é\n""#),
        ("return {b: 1, a: [true, undefined, {c: 1.5}]}", r#"{"b":1,"a":[true,null,{"c":1.5}]}"#),
        ("return new Date(0)", r#""1970-01-01T00:00:00.000Z""#),
        ("return await Promise.all([1, Promise.resolve(2)])", "[1,2]"),
        ("const wait = async (n) => n ? await wait(n - 1) : 'done'; return wait(50)", r#""done""#),
        ("for await (const x of (async function* () { yield 7 })()) return x", "7"),
        ("return {then(settle) { settle(3) }}", "3"),
        ("return 1 // the end", "1"),
        ("return '\\ud83d\\ude00' + '\\ud83d'", "\"😀\\ufffd\""),
        ("return typeof this", r#""object""#),
        ("'use strict'; return typeof this", r#""undefined""#),
        ("return eval('1 + 1') + new Function('return 1')()", "3"),
    ];
    for (source, expected) in table {
        assert_eq!(json(&evaluator, body(source)).await, expected, "{source}");
    }
}

#[tokio::test]
async fn an_error_has_its_position_in_the_script() {
    let evaluator = evaluator();
    let table = [
        (body("foo()"), "ReferenceError: foo is not defined", Some((1, 1))),
        (body("let x = 1;\n  x.foo.bar()"), "TypeError: cannot read property 'bar' of undefined", Some((2, 3))),
        (body("await null;\nnull.x"), "TypeError: cannot read property 'x' of null", Some((2, 1))),
        (body("const f = () => {\n  throw new Error('no')\n}\nf()"), "Error: no", Some((2, 13))),
        (body("return Promise.reject(new RangeError('far'))"), "RangeError: far", Some((1, 27))),
        (body("throw 'text'"), "text", None),
        (body("throw {code: 7}"), r#"{"code":7}"#, None),
        (body("throw null"), "null", None),
        (body("throw undefined"), "undefined", None),
        (body("let = = 3"), "SyntaxError: unexpected token in expression: '='", Some((1, 7))),
        (body("return (1"), "SyntaxError: Unexpected token '}'", Some((1, 10))),
        (expression("phase.x"), "ReferenceError: phase is not defined", Some((1, 1))),
        (expression("1 +"), "SyntaxError: unexpected token in expression: ')'", Some((1, 4))),
    ];
    for (call, message, place) in table {
        let source = call.source.clone();
        assert_eq!(fails(&evaluator, call).await, thrown(message, place), "{source}");
    }
    let error = fails(&evaluator, body("\n\nfoo()")).await;
    assert_eq!(error.to_string(), "ReferenceError: foo is not defined (line 3, column 1)");
}

#[tokio::test]
async fn a_failed_script_keeps_its_log() {
    let failed = evaluator().evaluate(&body("log('before'); foo()")).await.unwrap_err();
    assert_eq!(failed.log, ["before"]);
    assert_eq!(failed.error, thrown("ReferenceError: foo is not defined", Some((1, 16))));
}

#[tokio::test]
async fn globals_and_stored_values_are_available() {
    let evaluator = evaluator();
    let text = format!(r#"{{"list":[1,-2.5,12345678901,true,null,"é"],"__proto__":{{"x":1}},"long":"{}"}}"#, "y".repeat(2000));
    let part = |path: &[&str], text: &str| StoredPart {
        path: path.iter().map(|step| (*step).to_owned()).collect(),
        digest: Digest::of(text.as_bytes()),
        json: text.into(),
    };
    let mut call = body(
        "const {vars, outputs} = context;
         return [vars.big.list, vars.big.long.length, vars.small, Object.keys(vars.big), vars.big.x,
                 outputs.constructor.toString, outputs.constructor.__proto__, lone.length, typeof Function.prototype.call]",
    );
    call.globals = vec![("context".into(), r#"{"vars":{"small":1},"outputs":{}}"#.into())];
    call.stored = vec![
        part(&["context", "vars", "big"], &text),
        part(&["context", "outputs", "constructor", "toString"], "7"),
        part(&["context", "outputs", "constructor", "__proto__"], "8"),
        part(&["lone"], r#""\ud800x""#),
    ];
    let expected = r#"[[1,-2.5,12345678901,true,null,"é"],2000,1,["list","__proto__","long"],null,7,8,2,"function"]"#;
    // From the second call of each worker on, the values are in its cache.
    for _ in 0..12 {
        assert_eq!(json(&evaluator, call.clone()).await, expected);
    }
    let mut broken = body("return 1");
    broken.globals = vec![("context".into(), "{".into())];
    assert!(matches!(fails(&evaluator, broken).await, ScriptError::Thrown { .. }));
}

#[tokio::test]
async fn scripts_do_not_share_global_state() {
    let evaluator = evaluator();
    let mut call = body(
        "const before = [typeof spoilt, ({}).spoilt, [].map.call([1], x => x)[0], context.n, typeof JSON.stringify, vars.list.length];
         globalThis.spoilt = 1; Object.prototype.spoilt = 1; Array.prototype.map = () => [9];
         Promise.prototype.then = null; JSON.stringify = null; context.n = 2; vars.list.push(1);
         Object.prototype.toJSON = undefined; console.log = null; delete globalThis.Object;
         return before",
    );
    let stored = "[1,2,3]";
    call.globals = vec![("context".into(), r#"{"n":1}"#.into())];
    call.stored =
        vec![StoredPart { path: vec!["vars".into(), "list".into()], digest: Digest::of(stored.as_bytes()), json: stored.into() }];
    for _ in 0..12 {
        assert_eq!(json(&evaluator, call.clone()).await, r#"["undefined",null,1,1,"function",3]"#);
    }
}

#[tokio::test]
async fn scripts_have_no_io_and_no_blocking_functions() {
    let evaluator = evaluator();
    let absent = "Atomics SharedArrayBuffer WebAssembly setTimeout setInterval fetch XMLHttpRequest require process Deno
        std os print load read import_ Worker navigator gc scriptArgs __loadScript bjson";
    let source = format!("return `{absent}`.split(/\\s+/).filter(name => name in globalThis)");
    assert_eq!(json(&evaluator, body(&source)).await, "[]");
    for source in ["return import('os')", "return import('/etc/passwd')", "return import('./x.js', {with: {type: 'json'}})"] {
        assert!(matches!(fails(&evaluator, body(source)).await, ScriptError::Thrown { .. }), "{source}");
    }
    for source in ["return import.meta", "import x from 'os'"] {
        let error = fails(&evaluator, body(source)).await;
        assert!(matches!(&error, ScriptError::Thrown { message, .. } if message.starts_with("SyntaxError")), "{error:?}");
    }
}

#[tokio::test]
async fn a_value_that_json_cannot_represent_is_refused() {
    let evaluator = evaluator();
    let deep = "let x = []; for (let i = 0; i < 101; i++) x = [x]; return x";
    for (source, why) in [
        ("return () => 1", "a function"),
        ("return Symbol()", "a symbol"),
        ("return 1n", "a BigInt"),
        ("return {a: 1n}", "a BigInt"),
        ("const a = {}; a.a = a; return a", "contains itself"),
        ("return {toJSON() { return undefined }}", "toJSON"),
        (deep, "nested"),
    ] {
        match fails(&evaluator, body(source)).await {
            ScriptError::NotJson(text) => assert!(text.contains(why), "{source}: {text}"),
            other => panic!("{source}: {other:?}"),
        }
    }
    assert_eq!(json(&evaluator, body("let x = []; for (let i = 0; i < 99; i++) x = [x]; return x")).await.len(), 200);
}

#[tokio::test]
async fn hostile_results_are_script_errors() {
    let evaluator = evaluator();
    for (source, message) in [
        ("return {get a() { throw new Error('from getter') }}", "Error: from getter"),
        ("return {toJSON() { throw new Error('from toJSON') }}", "Error: from toJSON"),
        ("return new Proxy({}, {ownKeys() { throw new Error('from proxy') }})", "Error: from proxy"),
        ("throw {toString() { throw 1 }, toJSON() { throw 2 }}", "[object]"),
        ("const e = new Error('x'); Object.defineProperty(e, 'message', {get() { throw 1 }}); throw e", "Error"),
        ("const e = new Error('x'); e.name = {toString() { throw 1 }}; throw e", "x"),
        ("const e = new Error('x'); e.stack = 'at y (script:0:99999999999)'; throw e", "Error: x"),
        ("const e = new Error('\\ud800!'); throw e", "Error: \u{fffd}!"),
    ] {
        match fails(&evaluator, body(source)).await {
            ScriptError::Thrown { message: text, .. } => assert_eq!(text, message, "{source}"),
            other => panic!("{source}: {other:?}"),
        }
    }
    let long = fails(&evaluator, body("throw new Error('x'.repeat(1e6))")).await;
    assert!(matches!(&long, ScriptError::Thrown { message, .. } if message.len() <= 2048), "{}", long.to_string().len());
}

#[tokio::test]
async fn results_and_logs_are_limited() {
    let evaluator = evaluator();
    assert_eq!(fails(&evaluator, body(&format!("return 'x'.repeat({RESULT_LIMIT})"))).await, ScriptError::TooLarge);
    let fits = json(&evaluator, body(&format!("return 'x'.repeat({})", RESULT_LIMIT - 2))).await;
    assert_eq!(fits.len(), RESULT_LIMIT);

    let call = body("for (let i = 0; i < 3000; i++) log('é'.repeat(2000)); return 1");
    let Returned { log, .. } = evaluator.call(call).await.unwrap();
    assert_eq!(log.len(), LOG_LINES + 1);
    assert!(log[..LOG_LINES].iter().all(|line| line.len() <= LOG_LINE_BYTES && line.ends_with("é…")));
    assert_eq!(log[LOG_LINES], "… 2000 more lines omitted");
}

#[tokio::test]
async fn logged_values_are_readable() {
    let source = "const self = {}; self.self = self;
        log('a', 1, true, null, undefined, {b: [2]}, 3n); console.log(new TypeError('no')); console.warn(self, () => 1, Symbol('s'));
        log({toJSON() { throw 1 }, toString() { throw 2 }}); log('\\ud800'); log()";
    let returned = evaluator().call(body(source)).await.unwrap();
    let expected = [
        "a 1 true null undefined {\"b\":[2]} 3",
        "TypeError: no",
        "[object Object] () => 1 [symbol]",
        "[object]",
        "\u{fffd}",
        "",
    ];
    assert_eq!(returned.log, expected);
    assert_eq!(returned.json, "null");
}
