//! Templates: a value written into a shell command is always data, whatever it contains and whatever surrounds it.

use crate::shell::{self, Token};
use crate::spec::can_be_shown;
use lockgate_engine::template::mustache::{MAX_DOCUMENT_BYTES, check_document, render_document};
use lockgate_engine::template::{Escape, TemplateError, check, check_shell, render, roots};
use serde_json::json;

/// A placeholder for a value; inputs that contain it are skipped.
const MARK: char = '\u{e000}';

/// A member of every list and map: a value inside one of these is written as JSON, not literally.
const WHOLE: char = '\u{e001}';

/// Renders a template; the bytes are a value, a zero byte, and the template.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Some((value, template)) = text.split_once('\0') else { return };
    if text.contains([MARK, WHOLE]) {
        return;
    }
    for checked in [check(template), check_shell(template)] {
        checked.err().iter().for_each(|error| has_a_position(template, error));
    }
    document(value, template);
    let filled = |value: &str, escape| {
        let v = value;
        let whole = &WHOLE.to_string();
        let values = json!({"vars": {"v": v, "list": [v, whole], whole: 1}, "feature": {"name": v, whole: 1}, "output_dir": v});
        let filled = render(template, &values, escape);
        filled.as_ref().err().iter().for_each(|error| has_a_position(template, error));
        filled.ok()
    };
    if let Some(text) = filled(value, Escape::None) {
        assert!(check(template).is_ok(), "{template:?} is refused by the check, but can be rendered");
        assert!(!text.is_empty() || template.is_empty() || !roots(template, Escape::None).is_empty());
    }
    let (Some(with_value), Some(with_mark)) = (filled(value, Escape::Shell), filled(&MARK.to_string(), Escape::Shell)) else {
        return;
    };
    assert!(check_shell(template).is_ok(), "{template:?} is refused by the check, but can be rendered");
    // The length of a value is a number in the command, and differs between values.
    if with_mark.contains(WHOLE) || template.contains("length") {
        return;
    }
    let mut expected = Vec::new();
    for token in shell::read(&with_mark) {
        match token {
            Token::Quoted(MARK) => expected.extend(value.chars().map(Token::Quoted)),
            other => {
                let character = match other {
                    Token::Bare(character) | Token::Quoted(character) | Token::Expanded(character) => character,
                    Token::Backquoted(character) | Token::Comment(character) | Token::Document(character) => character,
                };
                assert_ne!(character, MARK, "the value is {other:?} in {with_mark:?}");
                expected.push(other);
            }
        }
    }
    assert_eq!(shell::read(&with_value), expected, "the value changes how {with_value:?} is read");
}

/// A document that is not refused can be rendered, and one without tags stays unchanged.
fn document(value: &str, template: &str) {
    let faults = check_document(template);
    faults.iter().for_each(|error| has_a_position(template, error));
    assert!(faults.is_sorted_by_key(|fault| fault.span.start), "{faults:?}");
    let item = json!({"v": value, "list": [value, value], "yes": true, "no": null});
    let values = json!({"vars": item, "v": value, "list": [item, item, 1, [], ""], "n": 2});
    match render_document(template, &values) {
        Ok(text) => {
            assert!(faults.is_empty(), "{template:?} is refused, but can be rendered");
            assert!(text.len() <= MAX_DOCUMENT_BYTES);
        }
        Err(error) => {
            has_a_position(template, &error);
            // Nested repeated sections may be too large although each one is valid.
            assert!(faults.first() == Some(&error) || (faults.is_empty() && template.contains("{{#")), "{error:?}");
        }
    }
}

fn has_a_position(template: &str, error: &TemplateError) {
    assert!(template.get(error.span.clone()).is_some(), "{error:?} is outside of the template");
    assert!(!error.message.contains(char::is_control) || template.contains(char::is_control), "{error:?}");
    can_be_shown(&error.message);
    error.help.iter().for_each(|help| can_be_shown(help));
}

/// Values that broke other tools, in commands of all kinds.
pub fn seeds() -> Vec<Vec<u8>> {
    let values = ["a b", "it's", "$(id) `id` \\ \" '\n; #", "", "x\ny"];
    let templates = [
        "echo {{vars.v}} '{{vars.v}}' \"{{vars.v}}\" # {{vars.v}}\necho {{ vars.list[0] }}{{vars.list.length}}",
        "cat <<EOF {{vars.v}}\n$x 'y\nEOF\necho {{vars.v}}",
        "cat <<-'E'\n\t'\n\tE\n[ \"${x:-y}\" = {{feature.name}} ] && echo \"$(ls) {{output_dir}}\"",
        "x=$((1 + 2)) ; (echo a;echo {{vars.v}})|cat `ls` ${x#y} >{{vars.v}}.txt",
        "docker ps --format '{{.Names}}' \\{{vars.v}} a\\\n{{vars.v}}",
        "{{#list}}\n- {{v}} {{.}} {{@index}}{{#if (eq v \"a b\")}}=\n{{else if @last}}{{{v}}}{{else}}{{&no}}{{/if}}\n{{/list}}\n",
        "{{#each vars.list}}{{this}}{{^@last}}, {{/@last}}{{else}}none{{/each}} {{! x }} {{!-- }} --}}\n {{#vars}} {{^}} {{/vars}} \n",
        "{{#unless (ne n 2)}}\\{{ {{list.length}}{{/unless}} {{#a}}{{#b}}{{/a}}{{/b}} {{> x}} {{{v}} {{",
        "{{vars.v}} and {{outputs['a.b'].c}} {{{vars.v}}}",
    ];
    let pairs = values.iter().flat_map(|value| templates.iter().map(move |template| format!("{value}\0{template}")));
    pairs.map(String::into_bytes).collect()
}
