//! Runaway scripts end within their limits, and the next call succeeds.

use super::{body, evaluator, expression, fails, json};
use lockgate_runner::script::{Call, Evaluator, Limits, ScriptError};
use std::time::Duration;

const TIME: Duration = Duration::from_millis(80);

fn short(call: Call) -> Call {
    Call { limits: Limits { time: TIME, ..call.limits }, ..call }
}

async fn all_run_out_of_time(evaluator: &Evaluator, sources: &[&str]) {
    for source in sources {
        assert_eq!(fails(evaluator, short(body(source))).await, ScriptError::Timeout(TIME), "{source}");
        assert_eq!(json(evaluator, body("return 'next'")).await, r#""next""#, "after {source}");
    }
}

#[tokio::test]
async fn endless_loops_run_out_of_time() {
    let sources = [
        "while (true);",
        "while (true) { try { while (true); } catch {} finally { continue } }",
        "const f = async () => { for (;;) await 0 }; return f()",
        "const again = () => Promise.resolve().then(again); await again()",
        "queueMicrotask(function again() { queueMicrotask(again) }); await new Promise(() => {})",
        "return {toJSON() { while (true); }}",
        "return {get a() { while (true); }}",
        "throw {toString() { while (true); }, toJSON() { throw 1 }}",
        "const e = new Error('x'); Object.defineProperty(e, 'message', {get() { while (true); }}); throw e",
        "log({toJSON() { while (true); }}); return 1",
        "return new Proxy({}, {ownKeys() { while (true); }})",
        "function* g() { while (true) yield 1 } for (const x of g());",
        "await {then() { while (true); }}",
        "const again = () => { try { again() } catch { again() } }; again()",
        "eval('while (true);')",
        "Error.prepareStackTrace = () => { while (true); }; null.x",
    ];
    let evaluator = evaluator();
    all_run_out_of_time(&evaluator, &sources).await;
    assert_eq!(fails(&evaluator, short(expression("(() => { while (true); })()"))).await, ScriptError::Timeout(TIME));
}

#[tokio::test]
async fn regular_expressions_and_big_numbers_run_out_of_time() {
    let sources = [
        "return /^(a+)+$/.test('a'.repeat(50) + '!')",
        "return /(x+x+)+y/.test('x'.repeat(60))",
        "return 'a'.repeat(100000).replace(/(a|a)*?$b/g, '')",
        "const x = (1n << 500000n) - 1n; for (;;) (x * x).toString()",
        "let x = 3n; for (;;) x = (x * x * x) % ((1n << 900000n) - 1n)",
    ];
    all_run_out_of_time(&evaluator(), &sources).await;
}

/// None of these checks for interrupts while it runs.
#[tokio::test]
async fn built_ins_that_ignore_interrupts_are_stopped_by_killing_the_worker() {
    let sources = [
        "[].reverse.call({length: 2 ** 53 - 1})",
        "[].splice.call({length: 2 ** 53 - 1}, 0, 1)",
        "const a = []; a.length = 2 ** 32 - 2; [].concat(a, a, a)",
        "JSON.stringify({}, new Array(2 ** 32 - 1))",
        "[].indexOf.call({length: 2 ** 53 - 1}, 1)",
        "[].copyWithin.call({length: 2 ** 53 - 1}, 0, 5)",
        "[].unshift.call({length: 2 ** 53 - 3}, 1)",
        "[].lastIndexOf.call({length: 2 ** 53 - 1}, 1)",
    ];
    all_run_out_of_time(&evaluator(), &sources).await;
}

#[tokio::test]
async fn memory_bombs_run_out_of_memory() {
    let evaluator = evaluator();
    let sources = [
        "const a = []; for (;;) a.push({})",
        "const a = []; for (;;) a.push(new Array(1000).fill(1))",
        "let s = 'x'; for (;;) { s += s; s.charCodeAt(0) }",
        "const s = []; for (;;) s.push('x'.repeat(1e6) + s.length)",
        "new ArrayBuffer(2 ** 30)",
        "const m = new Map(); for (let i = 0; ; i++) m.set(i, [i])",
        "return Array.from({length: 2 ** 31})",
        "let x = {}; for (;;) x = {x}",
        "for (;;) Promise.resolve().then(() => {})",
        "let a = [1]; for (;;) a = a.concat(a)",
    ];
    for source in sources {
        assert_eq!(fails(&evaluator, body(source)).await, ScriptError::Memory, "{source}");
        assert_eq!(json(&evaluator, body("return 'next'")).await, r#""next""#, "after {source}");
    }
    // Catching the error frees the memory but does not raise the limit.
    let catching =
        "for (let i = 0; i < 3; i++) { try { const a = []; for (;;) a.push(new Array(1000)) } catch {} } return 'here'";
    assert_eq!(json(&evaluator, body(catching)).await, r#""here""#);
    let kept = "globalThis.a = []; try { for (;;) a.push(new Array(100)) } catch (e) { throw new Error('x'.repeat(100)) }";
    let error = fails(&evaluator, body(kept)).await;
    assert!(matches!(error, ScriptError::Memory | ScriptError::Thrown { .. }), "{error:?}");
}

#[tokio::test]
async fn deep_recursion_is_an_error_and_not_a_crash() {
    let evaluator = evaluator();
    for source in [
        "const f = () => 1 + f(); return f()",
        "const f = async () => 1 + await f(); return f()",
        "const o = {get a() { return this.a }}; return o.a",
        "const o = {toJSON() { return JSON.stringify(this) }}; return o",
        "const p = new Proxy({}, {get(t, k, r) { return r[k] }}); return p.x",
        "return ('['.repeat(1e5) + ']'.repeat(1e5)).replace(/^/, '') && eval('['.repeat(1e5) + ']'.repeat(1e5))",
    ] {
        assert_eq!(fails(&evaluator, body(source)).await, ScriptError::Stack, "{source}");
    }
    for source in [
        "return JSON.parse('['.repeat(1e6) + ']'.repeat(1e6))",
        "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return String(a)",
        "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a",
        "return new RegExp('('.repeat(1e5) + ')'.repeat(1e5)).test('')",
        "let f = () => 1; for (let i = 0; i < 1e5; i++) f = f.bind(null); return f()",
        "let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); return p.x",
        "let p = Promise.resolve(); for (let i = 0; i < 1e5; i++) p = p.then(() => {}); return p",
        "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a.flat(Infinity)",
    ] {
        if let Err(ScriptError::Worker(what)) = evaluator.call(body(source)).await {
            panic!("{source}: {what}");
        }
    }
    let mut large = body("const f = () => 1 + f(); return f()");
    large.limits.stack = usize::MAX;
    large.limits.memory = 256 << 20;
    assert_eq!(fails(&evaluator, large).await, ScriptError::Stack);
    let mut nested = body("return 1");
    nested.source = format!("return {}1{}", "(".repeat(200_000), ")".repeat(200_000)).into();
    assert_eq!(fails(&evaluator, nested).await, ScriptError::Stack);
}

#[tokio::test]
async fn promises_that_never_settle_are_detected_immediately() {
    let evaluator = evaluator();
    for source in [
        "await new Promise(() => {})",
        "return new Promise(() => {})",
        "return {then() {}}",
        "await Promise.race([])",
        "for await (const x of {[Symbol.asyncIterator]: () => ({next: () => new Promise(() => {})})});",
    ] {
        assert_eq!(fails(&evaluator, body(source)).await, ScriptError::NeverSettles, "{source}");
    }
    assert_eq!(fails(&evaluator, expression("new Promise(() => {})")).await, ScriptError::NeverSettles);
}
