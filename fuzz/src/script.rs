//! Scripts and conditions: any text is checked at its position in a file, and reaches the workflow unchanged.

use crate::spec::checked;
use lockgate_engine::spec::workflow::Work;
use std::fmt::Write as _;

/// Reads a condition if the first byte is even, otherwise a script.
pub fn run(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let quoted = quoted(text);
    let before = "name: n\nphases:\n  - id: p\n    ";
    if kind % 2 == 0 {
        let source = format!("{before}tasks: [{{id: t, pass: true}}]\n    checkpoint: {{condition: {quoted}, prompt: q}}\n");
        let Some(workflow) = checked(&source) else { return };
        let condition = workflow.phases[0].checkpoint.as_ref().and_then(|checkpoint| checkpoint.condition.as_ref());
        assert_eq!(condition.map(|script| script.source.as_str()), Some(text));
    } else {
        let source = format!("{before}tasks: [{{id: t, script: {quoted}}}]\n");
        let Some(workflow) = checked(&source) else { return };
        let Work::Script(script) = &workflow.phases[0].tasks[0].work else { panic!("not a script") };
        assert_eq!(script.source, text);
    }
}

/// Scripts that use many features of the language.
pub fn seeds() -> Vec<Vec<u8>> {
    [
        "0context.vars.count > 3 && !context.feature.flags.includes('frontend')",
        "0context.outputs['build'].result[0]?.name === `x${context.vars.y}`",
        "0/^a[b-d]+(?<name>x)$/u.test(context.feature.name)",
        "1const {a = 1, ...rest} = context.vars; return [a, ...Object.keys(rest)].map(x => x ** 2)",
        "1for (const name of ['a', 'b']) { if (context.outputs[name]) continue; log(name) } return null",
        "1class A { #x = 1; static { this.y = 2 } get x() { return this.#x } } return await Promise.resolve(new A().x)",
        "1try { return eval('context') } catch ({message}) { return message } finally { label: while (true) break label }",
        "1function* g() { yield* [1, 2] } return [...g()].at(-1) ?? (() => ({}))()",
        "1return globalThis.BigInt(10n)",
    ]
    .iter()
    .map(|seed| seed.as_bytes().to_vec())
    .collect()
}

/// A text in YAML double quotes.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            ' '..='~' => quoted.push(character),
            other => {
                let _ = write!(quoted, "\\U{:08x}", other as u32);
            }
        }
    }
    quoted.push('"');
    quoted
}
