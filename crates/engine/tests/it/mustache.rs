//! Rendering of documents: loops, conditions and errors.

use lockgate_engine::template::mustache::{MAX_DOCUMENT_BYTES, MAX_NESTING, check_document, render_document};
use serde_json::{Value, json};

fn values() -> Value {
    json!({
        "feature": {"name": "login <&> \"x\"", "flags": []},
        "phases": {"completed": ["plan", "build"]},
        "checkpoints": [
            {"phase": "plan", "decision": "approve", "feedback": null},
            {"phase": "build", "decision": "repeat", "feedback": "more tests"},
        ],
        "count": 2, "zero": 0, "yes": true, "no": false, "empty": "", "map": {"a b": 5, "length": "own"}, "rows": [[1, 2], [3]],
    })
}

fn document(template: &str) -> String {
    render_document(template, &values()).unwrap_or_else(|error| panic!("{template}: {error}"))
}

fn all_give(table: &[(&str, &str)]) {
    for (template, expected) in table {
        assert_eq!(document(template), *expected, "{template}");
        assert_eq!(check_document(template), [], "{template}");
    }
}

#[test]
fn values_are_inserted_verbatim_and_absent_ones_omitted() {
    all_give(&[
        ("no tags } }} {", "no tags } }} {"),
        ("{{feature.name}} {{{feature.name}}} {{& feature.name }}", "login <&> \"x\" login <&> \"x\" login <&> \"x\""),
        ("[{{nobody}}{{feature.nobody.more}}{{phases.completed[7]}}{{empty}}]", "[]"),
        ("{{count}} {{yes}} {{phases.completed}} {{map['a b']}}", "2 true [\"plan\",\"build\"] 5"),
        (
            "{{phases.completed[0]}} {{phases.completed.1}} {{phases.completed.length}} {{checkpoints[1].decision}}",
            "plan build 2 repeat",
        ),
        ("{{feature.name.length}} {{map.length}}", "13 own"),
        (r"\{{feature}} \{{{x}}} {{count}}", "{{feature}} {{{x}}} 2"),
        ("a {{! nothing }}b{{!-- {{count}} --}}c {{!-- d }}e", "a bc e"),
        ("é{{count}}}ü", "é2}ü"),
    ]);
}

#[test]
fn an_unknown_helper_returns_its_first_argument() {
    all_give(&[
        ("{{formatDate count \"YYYY\"}} {{json feature.flags}}", "2 []"),
        ("{{#checkpoints}}{{../count}}{{@root.count}}{{/checkpoints}}", "2222"),
    ]);
}

#[test]
fn a_list_repeats_its_section_for_each_item() {
    all_give(&[
        ("{{#phases.completed}}<{{.}}{{this}}>{{/phases.completed}}", "<planplan><buildbuild>"),
        ("{{#checkpoints}}{{phase}}={{decision}};{{/checkpoints}}", "plan=approve;build=repeat;"),
        ("{{#each checkpoints}}{{@index}}{{this.phase}}{{#unless @last}}, {{/unless}}{{/each}}", "0plan, 1build"),
        ("{{#phases.completed}}{{#if @first}}first {{/if}}{{.}} {{/phases.completed}}", "first plan build "),
        ("{{#rows}}({{#.}}{{.}},{{/.}}){{length}}{{this.length}}{{/rows}}", "(1,2,)2(3,)1"),
        ("{{#each map}}{{.}} {{/each}}", "5 own "),
    ]);
}

#[test]
fn a_section_of_a_single_value_is_rendered_once_if_present() {
    all_give(&[
        ("{{#yes}}y{{/yes}}{{#no}}n{{/no}}{{#zero}}z{{/zero}}{{#empty}}e{{/empty}}{{#feature.flags}}f{{/feature.flags}}", "y"),
        ("{{#nobody}}x{{/nobody}}{{#feature.nobody.x}}x{{/feature.nobody.x}}", ""),
        ("{{^yes}}y{{/yes}}{{^no}}n{{/no}}{{^zero}}z{{/zero}}{{^empty}}e{{/empty}}{{^nobody}}a{{/nobody}}", "nzea"),
        ("{{#feature}}{{name}}{{/feature}}", "login <&> \"x\""),
        ("{{#count}}{{.}}{{/count}} {{#phases.completed.length}}{{.}} done{{/phases.completed.length}}", "2 2 done"),
        ("{{#map['a b']}}{{.}}{{/map['a b']}}", "5"),
        // As people write it: the text is the current item, and its name is found in the enclosing one.
        ("{{#checkpoints}}{{#feedback}}{{feedback}}={{.}}{{/feedback}}{{/checkpoints}}", "more tests=more tests"),
    ]);
}

#[test]
fn names_resolve_to_the_innermost_scope_that_has_them() {
    all_give(&[
        ("{{#checkpoints}}{{count}}{{feature.name.length}} {{/checkpoints}}", "213 213 "),
        ("{{#checkpoints}}[{{this.count}}]{{/checkpoints}}", "[][]"),
        // A null value hides the enclosing one.
        ("{{#map}}{{#checkpoints}}{{feedback}}|{{/checkpoints}}{{/map}}", "|more tests|"),
        ("{{#if feature}}{{name}}{{/if}}", ""),
    ]);
    let hiding = json!({"a": {"b": 1, "c": 2}, "items": [{"a": {"b": 3}}]});
    assert_eq!(render_document("{{#items}}{{a.b}}{{a.c}}{{/items}}", &hiding), Ok("3".into()));
}

#[test]
fn conditions_compare_values_and_select_branches() {
    all_give(&[
        ("{{#checkpoints}}{{#if (eq decision \"approve\")}}yes{{else}}no{{/if}} {{/checkpoints}}", "yes no "),
        ("{{#if (ne count 2)}}a{{^}}b{{/if}}{{#unless (eq count 2.0)}}c{{else}}d{{/unless}}", "bd"),
        (
            "{{#if (eq phases.completed.length count)}}a{{/if}}{{#if (eq nobody null)}}b{{/if}}{{#if (eq yes true)}}c{{/if}}",
            "abc",
        ),
        ("{{#if (eq count '2')}}a{{else if (eq map['a b'] 5)}}b{{else}}c{{/if}}", "b"),
        ("{{#if no}}a{{else if zero}}b{{else if yes}}c{{else}}d{{/if}}!", "c!"),
        ("{{#if no}}a{{else if zero}}b{{else}}d{{/if}}!", "d!"),
        (
            "{{#feature.flags}}a{{else}}none{{/feature.flags}}{{#each nobody}}a{{else}}none{{/each}}{{^yes}}a{{else}}b{{/yes}}",
            "nonenoneb",
        ),
    ]);
}

#[test]
fn a_standalone_tag_removes_its_line() {
    all_give(&[
        ("Done:\n{{#phases.completed}}\n- {{.}}\n{{/phases.completed}}\nEnd\n", "Done:\n- plan\n- build\nEnd\n"),
        ("Done:\r\n  {{#phases.completed}} \t\r\n- {{.}}\r\n{{/phases.completed}}", "Done:\r\n- plan\r\n- build\r\n"),
        ("{{#checkpoints}}\n{{#feedback}}\n- {{feedback}}\n{{/feedback}}\n{{/checkpoints}}\n\nEnd", "- more tests\n\nEnd"),
        ("a\n{{! a\n comment }}\nb\n{{#if no}}\nc\n{{else}}\nd\n{{/if}}\n", "a\nb\nd\n"),
        ("a\n {{#yes}}b{{/yes}} \nc {{#yes}}\nd{{/yes}}\n", "a\n b \nc \nd\n"),
        ("a\n{{nobody}}\nb", "a\n\nb"),
    ]);
}

#[test]
fn syntax_errors_are_reported_with_their_position() {
    let table = [
        ("a {{#x}} b", 2..8, "`{{#x}}` is not closed: close it with {{/x}}"),
        ("{{/x}}", 0..6, "`{{/x}}` closes nothing: no section is open here; remove it, or open one before it"),
        ("{{#if a}}{{/a}}{{/if}}", 9..15, "`{{/a}}` closes nothing: the open section closes with {{/if}}"),
        ("{{> other}}", 0..11, "`> other` is not a path: a document cannot include another; insert its text here"),
        ("{{=<% %>=}}", 0..11, "`=<% %>=` is not a path: the braces cannot be changed"),
        (
            "{{#list a}}{{/list}}",
            0..11,
            "`list` is not defined here: a section starts with {{#path}}, or with one of if, unless, each",
        ),
        (
            "{{#if eq a 'b'}}{{/if}}",
            0..16,
            "`eq a 'b'` is not a path: put a comparison into parentheses: {{#if (eq path \"text\")}}",
        ),
        (
            "{{#if (gt a 1)}}{{/if}}",
            0..16,
            "`(gt a 1)` is not a valid condition: a condition is a path, (eq path \"text\") or (ne path \"text\")",
        ),
        ("{{#each}}{{/each}}", 0..9, "`` is not a path: a path is missing here"),
        ("{{@key}}", 0..8, "`@key` is not a path: only @index, @first and @last are supported"),
        (
            "{{else}}",
            0..8,
            "`{{else}}` is outside of a section: it belongs between a tag such as {{#if path}} and the one that closes it",
        ),
        ("{{a", 0..2, "`{{` is not closed: close it with `}}`, or write `\\{{` for literal braces"),
        ("{{a {{b}}", 0..2, "`{{` is not closed: close it with `}}`, or write `\\{{` for literal braces"),
        ("{{{a}}", 0..2, "`{{` is not closed: close it with `}}}`"),
        ("{{!-- a", 0..2, "`{{` is not closed: close it with `}}`, or write `\\{{` for literal braces"),
    ];
    for (template, span, diagnostics) in table {
        let faults = check_document(template);
        let faults: Vec<_> = faults.iter().map(|fault| (fault.span.clone(), fault.to_string())).collect();
        assert_eq!(faults, [(span, diagnostics.to_owned())], "{template}");
        assert_eq!(
            render_document(template, &values()).map_err(|error| error.to_string()),
            Err(diagnostics.into()),
            "{template}"
        );
    }
}

#[test]
fn all_errors_are_reported_in_order() {
    let faults = check_document("{{#a}}{{#b}}{{> c}}{{/a}}{{else}}{{#if}}{{else}}{{else}}{{/if}}{{/d}}");
    let places: Vec<_> = faults.iter().map(|fault| fault.span.clone()).collect();
    assert_eq!(places, [6..12, 12..19, 25..33, 33..40, 48..56, 63..69], "{faults:#?}");
}

#[test]
fn nesting_and_repetition_have_limits() {
    let nested = |depth: usize| "{{#yes}}".repeat(depth) + &"{{/yes}}".repeat(depth);
    assert_eq!(document(&nested(MAX_NESTING)), "");
    let faults = check_document(&nested(100_000));
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert_eq!((faults[0].message.as_str(), faults[0].span.start), ("sections are nested more than 100 levels deep", 800));

    let multiplying = "{{#list}}".repeat(50) + &"{{/list}}".repeat(50);
    let error = render_document(&multiplying, &json!({"list": [1, 2]})).expect_err("too much");
    assert_eq!(error.message, "the document repeats too much");

    let long = json!({"list": vec!["x".repeat(1 << 20); 65]});
    let error = render_document("{{#list}}{{.}}{{/list}}", &long).expect_err("too long");
    assert_eq!((error.message.as_str(), error.span), ("the document is larger than 64 MB", 0..9));
    let fits = json!({"list": vec!["x".repeat(1 << 20); 64]});
    assert_eq!(render_document("{{#list}}{{.}}{{/list}}", &fits).map(|text| text.len()), Ok(MAX_DOCUMENT_BYTES));
}

#[test]
fn hostile_documents_are_parsed_in_linear_time() {
    for part in
        ["{{", "{{{", "{{!--", "{{!-- }}", "{{ ", "}}", "{{a}}", "{{/a}}", "{{#a}}{{/b}}{{/a}}", "  {{!}}", "\\{{", "{{else}}"]
    {
        let template = part.repeat(200_000 / part.len());
        drop(check_document(&template));
    }
}
