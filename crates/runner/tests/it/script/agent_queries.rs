//! Agent queries of a script: answered from recorded replies, or the end of the evaluation.

use super::{body, evaluator, expression, fails, json, thrown};
use lockgate_runner::script::{AgentReply, Call, Evaluator, Failed, Files, MAX_AGENT_QUERIES, PROMPT_LIMIT, ScriptError};
use tempfile::TempDir;

fn remembering(agent_queries: &[(&str, &str)], call: Call) -> Call {
    let agent_queries = agent_queries.iter().map(|(prompt, text)| AgentReply { prompt: (*prompt).into(), text: (*text).into() });
    Call { agent_queries: Some(agent_queries.collect()), ..call }
}

fn wants(prompt: &str) -> ScriptError {
    ScriptError::NeedsAgent { prompt: prompt.into() }
}

/// Evaluates until there are no more queries; the agent replies with the number of the query and the prompt.
async fn with_an_agent(evaluator: &Evaluator, source: &str) -> (Result<String, ScriptError>, Vec<String>) {
    let mut call = Call { agent_queries: Some(Vec::new()), ..body(source) };
    let mut asked = Vec::new();
    loop {
        match evaluator.call(call.clone()).await {
            Err(ScriptError::NeedsAgent { prompt }) => {
                asked.push(prompt.clone());
                let text = format!("{} {prompt}", asked.len());
                call.agent_queries.get_or_insert_default().push(AgentReply { prompt, text });
            }
            outcome => return (outcome.map(|returned| returned.json), asked),
        }
    }
}

#[tokio::test]
async fn the_agent_reply_is_returned_with_and_without_await() {
    let evaluator = evaluator();
    let agent_queries = [("why?", "because"), ("how?", "like \"this\"\né"), ("why?", "I said so")];
    let table = [
        ("return thinkHard('why?')", r#""because""#),
        ("return await thinkHard('why?')", r#""because""#),
        ("return thinkHard('why?') + '!'", r#""because!""#),
        ("return [thinkHard('why?'), thinkHard('why?')]", r#"["because","I said so"]"#),
        ("return Promise.all(['how?', 'why?'].map(thinkHard))", r#"["like \"this\"\né","because"]"#),
        ("const ask = async p => await thinkHard(p); await ask('why?'); return ask('why?')", r#""I said so""#),
        ("return 'nothing asked'", r#""nothing asked""#),
    ];
    for (source, expected) in table {
        assert_eq!(json(&evaluator, remembering(&agent_queries, body(source))).await, expected, "{source}");
    }
    let condition = expression("thinkHard('why?') === 'because'");
    assert!(evaluator.call(remembering(&agent_queries, condition)).await.unwrap().truthy);
}

#[tokio::test]
async fn an_unanswered_agent_query_ends_the_evaluation() {
    let evaluator = evaluator();
    let table = [
        ("return thinkHard('new?')", "new?"),
        ("return thinkHard('why?') + thinkHard('why?')", "why?"),
        ("const say = thinkHard('why?'); return thinkHard(say + ' éé')", "because éé"),
        ("return Promise.all(['why?', 'b', 'c'].map(async prompt => thinkHard(prompt)))", "b"),
        ("await null; await thinkHard('later')", "later"),
        ("return {toJSON() { return thinkHard('in JSON') }}", "in JSON"),
    ];
    for (source, prompt) in table {
        assert_eq!(fails(&evaluator, remembering(&[("why?", "because")], body(source))).await, wants(prompt), "{source}");
    }
}

#[tokio::test]
async fn catching_the_pending_query_changes_nothing() {
    let evaluator = evaluator();
    let table = [
        "try { thinkHard('a') } catch { return 'caught' }",
        "try { thinkHard('a') } catch { while (true); }",
        "try { thinkHard('a') } catch { try { thinkHard('b') } catch { throw new Error('other') } }",
        "try { thinkHard('a') } finally { return 1 }",
        "return Promise.resolve().then(() => thinkHard('a')).catch(() => 1)",
        "try { thinkHard('a') } catch { await new Promise(() => {}) }",
        "try { thinkHard('a') } catch { const f = () => f() + 1; f() }",
        "for (;;) try { thinkHard('a') } catch {}",
        "try { thinkHard('a') } catch { for (;;) await null }",
        "(async () => thinkHard('a'))(); return 'not awaited'",
    ];
    for source in table {
        assert_eq!(fails(&evaluator, remembering(&[], body(source))).await, wants("a"), "{source}");
    }
    assert_eq!(json(&evaluator, body("return 'the worker is well'")).await, r#""the worker is well""#);
}

#[tokio::test]
async fn nothing_runs_after_a_pending_query() {
    let folder = TempDir::new().unwrap();
    let source = "log('before'); writeFile('before', '1');
        try { thinkHard('a') } catch { log('after'); writeFile('after', '1') }";
    let mut call = remembering(&[], body(source));
    call.files = Some(Files { output_dir: folder.path().into(), feature: None, expected: Vec::new() });
    let failed = evaluator().evaluate(&call).await.unwrap_err();
    assert_eq!(failed, Failed { error: wants("a"), log: vec!["before".into()], wrote: vec!["before".into()] });
    assert!(!folder.path().join("after").exists());
}

#[tokio::test]
async fn each_reply_advances_a_script_to_its_next_query() {
    let evaluator = evaluator();
    let source = "const first = thinkHard('a'); const again = thinkHard('a'); return [first, again, await thinkHard(again)]";
    let (outcome, asked) = with_an_agent(&evaluator, source).await;
    assert_eq!(outcome, Ok(r#"["1 a","2 a","3 2 a"]"#.into()));
    assert_eq!(asked, ["a", "a", "2 a"]);
}

#[tokio::test]
async fn agent_queries_are_limited() {
    let evaluator = evaluator();
    let too_many = "RangeError: thinkHard may be called 100 times in one script";
    let many =
        |count: usize| format!("let all = 0; for (let i = 0; i < {count}; i++) all += thinkHard('p' + i).length; return all");
    let (outcome, asked) = with_an_agent(&evaluator, &many(MAX_AGENT_QUERIES)).await;
    assert!(outcome.is_ok(), "{outcome:?}");
    assert_eq!(asked.len(), MAX_AGENT_QUERIES);
    // A script that never asks the same question twice also ends.
    let fickle = "let x = ''; try { x = thinkHard('' + Math.random()) } catch (error) { throw error.message }";
    for source in [many(MAX_AGENT_QUERIES + 1).as_str(), fickle] {
        let (outcome, asked) = with_an_agent(&evaluator, source).await;
        match outcome {
            Err(ScriptError::Thrown { message, .. }) => assert!(too_many.ends_with(&message) || message == too_many, "{message}"),
            other => panic!("{source}: {other:?}"),
        }
        assert_eq!(asked.len(), MAX_AGENT_QUERIES, "{source}");
    }
    let table = [
        ("thinkHard()".to_owned(), "TypeError: thinkHard needs a prompt, which must be a string"),
        ("thinkHard({prompt: 'x'})".into(), "TypeError: thinkHard needs a prompt, which must be a string"),
        ("thinkHard(' \\n')".into(), "TypeError: thinkHard needs a prompt that is not empty"),
        (
            format!("thinkHard('x'.repeat({}))", PROMPT_LIMIT + 1),
            "RangeError: thinkHard: the prompt is longer than 1048576 bytes",
        ),
    ];
    for (source, expected) in table {
        match fails(&evaluator, remembering(&[], body(&source))).await {
            ScriptError::Thrown { message, .. } => assert_eq!(message, expected, "{source}"),
            other => panic!("{source}: {other:?}"),
        }
    }
    let longest = fails(&evaluator, remembering(&[], body(&format!("thinkHard('x'.repeat({PROMPT_LIMIT}))")))).await;
    assert_eq!(longest, wants(&"x".repeat(PROMPT_LIMIT)));
}

#[tokio::test]
async fn an_agent_query_without_an_agent_throws() {
    let evaluator = evaluator();
    assert_eq!(
        fails(&evaluator, expression("thinkHard('a')")).await,
        thrown("Error: thinkHard is not available here", Some((1, 1)))
    );
    assert_eq!(json(&evaluator, body("try { thinkHard('a') } catch { return 'caught' }")).await, r#""caught""#);
}
