//! Rendering of templates, in text and in shell commands.

use lockgate_engine::template::{Escape, check, check_shell, render, roots};
use serde_json::{Value, json};

fn values() -> Value {
    json!({
        "vars": {"name": "it's", "list": [1, "two"], "map": {"a b": 5}, "nothing": null, "yes": true, "evil": "$(touch x) `y` \\ \"z\" 'w'\n;"},
        "outputs": {"phase.one": {"task": {"text": "done"}}},
        "output_dir": "out/x",
        "feature": {"name": "login", "flags": ["a", "b"]},
    })
}

fn text(template: &str) -> Result<String, String> {
    render(template, &values(), Escape::None).map_err(|error| error.to_string())
}

fn shell(template: &str) -> Result<String, String> {
    render(template, &values(), Escape::Shell).map_err(|error| error.to_string())
}

#[test]
fn paths_are_replaced_by_their_values() {
    assert_eq!(text("no braces { here } }}"), Ok("no braces { here } }}".into()));
    assert_eq!(text("{{output_dir}}/plan.md"), Ok("out/x/plan.md".into()));
    assert_eq!(text("{{ feature.name }}{{vars.yes}}-{{vars.nothing}}-"), Ok("logintrue--".into()));
    assert_eq!(text("{{vars.list}} {{vars.map}} {{vars.list[1]}} {{vars.list.0}}"), Ok(r#"[1,"two"] {"a b":5} two 1"#.into()));
    assert_eq!(
        text("{{vars.map['a b']}} {{outputs['phase.one'].task.text}} {{outputs[\"phase.one\"]['task'].text}}"),
        Ok("5 done done".into())
    );
    assert_eq!(text("{{vars.list.length}} {{vars.name.length}}"), Ok("2 4".into()));
    assert_eq!(text(r"\{{vars.name}} is {{vars.name}}"), Ok("{{vars.name}} is it's".into()));
}

#[test]
fn an_unknown_path_is_an_error_that_names_it() {
    let error = render("a {{vars.nmae}}", &values(), Escape::None).expect_err("an error");
    assert_eq!(
        (error.message.as_str(), error.span, error.help.as_deref()),
        ("`vars.nmae` is not defined here", 2..15, Some("did you mean `vars.name`?"))
    );
    for template in
        ["{{nobody}}", "{{vars.list[2]}}", "{{vars.name.x}}", "{{vars.map.length}}", "{{vars.yes.length}}", "{{vars.length.x}}"]
    {
        assert!(text(template).is_err(), "{template}");
        assert!(shell(&template.replace("nobody", "phase")).is_err(), "{template}");
    }
}

#[test]
fn an_error_lists_the_known_names_without_a_near_match() {
    let error = |template: &str| text(template).expect_err(template);
    assert_eq!(error("{{vars.nmae}}"), "`vars.nmae` is not defined here: did you mean `vars.name`?");
    assert_eq!(error("{{feature.banana}}"), "`feature.banana` is not defined here: `feature` has `name`, `flags`");
    let empty = render("{{vars.x}}", &json!({"vars": {}}), Escape::None).expect_err("an error");
    assert_eq!(empty.to_string(), "`vars.x` is not defined here: `vars` is empty");
    let many: serde_json::Map<String, Value> = (0..12).map(|number| (format!("name{number:02}"), json!(1))).collect();
    let many = render("{{vars.x}}", &json!({"vars": many}), Escape::None).expect_err("an error");
    assert!(many.to_string().ends_with("`name06`, `name07` and 4 more"), "{many}");
}

#[test]
fn an_optional_value_is_empty_if_absent() {
    let values = json!({"phase": {"id": "plan"}, "feature": {"flags": []}});
    let filled = |template: &str, escape| render(template, &values, escape).expect(template);
    assert_eq!(filled("[{{phase.feedback}}{{phase.description}}{{feature.name}}]", Escape::None), "[]");
    assert_eq!(filled("echo {{phase.feedback}} \"{{feature.name}}\"", Escape::Shell), "echo '' \"\"");
    assert!(render("{{phase.feedbak}}", &values, Escape::None).is_err());
    assert!(render("{{phase.feedback.x}}", &values, Escape::None).is_err());
}

#[test]
fn a_malformed_path_is_found_before_rendering() {
    for template in [
        "{{",
        "{{}}",
        "{{ }}",
        "{{a b}}",
        "{{#if x}}",
        "{{{vars.x}}}",
        "{{vars.}}",
        "{{.}}",
        "{{vars[}}",
        "{{vars['a}}",
        "{{!x}}",
        "{{nobody.x}}",
    ] {
        assert!(check(template).is_err(), "{template}");
    }
    for template in ["", "x", "{{vars.x}}", r"\{{ anything", "{{ context.phases.current }}", "{{run}}", "{{task.id}} {{flags}}"] {
        assert_eq!(check(template), Ok(()), "{template}");
    }
    assert!(check_shell("{{vars.}}").is_err());
    assert_eq!(check_shell("{{.Names}} {{nobody}} {{vars x}} {{"), Ok(()));
}

#[test]
fn the_roots_of_a_template_are_listed() {
    assert_eq!(roots("{{vars.a}} {{feature}} {{vars.b}}", Escape::None), ["feature".to_owned(), "vars".to_owned()].into());
    assert_eq!(roots("{{.Names}} {{vars.a}}", Escape::Shell), ["vars".to_owned()].into());
}

#[test]
fn in_a_command_each_value_is_quoted_as_one_word() {
    assert_eq!(shell("echo {{vars.name}} {{vars.list}} {{vars.nothing}}"), Ok(r#"echo 'it'\''s' '[1,"two"]' ''"#.into()));
    assert_eq!(
        shell("echo '{{vars.name}}' \"{{vars.evil}}\""),
        Ok("echo 'it'\\''s' \"\\$(touch x) \\`y\\` \\\\ \\\"z\\\" 'w'\n;\"".into())
    );
    assert_eq!(shell("a{{output_dir}}/b"), Ok("a'out/x'/b".into()));
}

#[test]
fn in_a_command_templates_of_other_programs_stay_unchanged() {
    for command in [
        "docker ps --format '{{.Names}}'",
        "echo ${{x}} {{",
        "{{range .}}",
        "{{nobody}}",
        r"\{{",
        "a {{vars x}}",
        "# {{vars.evil}}",
    ] {
        assert_eq!(shell(command), Ok(command.into()), "{command}");
    }
    assert_eq!(shell("echo {{.x}}{{{output_dir}}}"), Ok("echo {{.x}}{'out/x'}".into()));
}

#[test]
fn a_command_is_refused_where_a_value_cannot_be_quoted() {
    for command in [
        "cat <<END\n{{vars.evil}}\nEND\n",
        "cat <<-'END'\n\t{{vars.evil}}\n\tEND\n",
        "echo `echo {{vars.evil}}`",
        "echo \"`echo {{vars.evil}}`\"",
        "echo \"$(echo {{vars.evil}})\"",
        "echo $'it\\'s' {{vars.evil}}",
        r"echo \{{vars.evil}}",
        "echo \"${x:-'a'}\" {{vars.evil}}",
        "echo \"$(case a in a) echo;; esac)\" {{vars.evil}}",
        "echo $(({{vars.evil}}))",
        "((x = {{vars.evil}}))",
        "echo $[{{vars.evil}}]",
        "cat <<E\"F G\" {{vars.evil}}",
        "cat <<{{vars.evil}}",
        "echo $()#<<E\n{{vars.evil}}\nE",
        "x=(a {{vars.evil}})",
        "echo ${{vars.evil}}",
        "echo ${x:-{{vars.evil}}}",
        "echo ${x:-a #'}\n{{vars.evil}}'}",
        "echo ${x:-<<E}\n{{vars.evil}}\nE",
        "echo ${x:-$(echo })} # '\n{{vars.evil}}",
        "echo \"$[ {{vars.evil}} ]\"",
        "echo >#'\n{{vars.evil}}'",
        "echo a\\\n#'\n{{vars.evil}}",
        "((cat <<E))\nit's\nE\necho {{vars.evil}}",
        "(( a # b )) {{vars.evil}}",
        "echo \"$(echo ${x:-)}; echo {{vars.evil}})\"",
        "echo \"$(echo ${x:-(}) {{vars.evil}})\"",
    ] {
        let error = shell(command).expect_err(command);
        assert!(error.contains("cannot be quoted safely"), "{error}");
        assert!(check_shell(command).is_err(), "{command}");
    }
}

#[test]
fn only_shell_whitespace_starts_a_comment() {
    for space in ["\u{a0}", "\r", "\u{b}", "\u{2028}"] {
        // The quote is open for the shell, so the value must be inside it.
        assert_eq!(shell(&format!("echo a{space}#'\n{{{{output_dir}}}}'")), Ok(format!("echo a{space}#'\nout/x'")));
    }
}

#[test]
fn an_escaped_space_does_not_start_a_comment() {
    for escaped in [r"\ ", r"\;", r"\&", r"\|", r"\("] {
        let command = format!("echo a{escaped}#'\n{{{{output_dir}}}}'");
        assert_eq!(shell(&command), Ok(format!("echo a{escaped}#'\nout/x'")));
    }
}

#[test]
fn quoting_is_tracked_through_ordinary_commands() {
    for command in [
        "echo \"$(date)\" ",
        "# don't\n",
        "echo ${#x} ${x#y} 'a' \"b\" \\' ",
        "cat <<END\nit's\nEND\n",
        "cat <<-'A B' ; cat <<'E'\nit's\n\tAB\n\"\nE\n",
        "cat <<< word ",
        "echo `date` \"`date`\" ",
        "echo \"$(ls ${x} ${x:-y})\" ",
        "echo a\\ #'it is' ",
        "x=\"${HOME}/a\" ; echo \"\\\"\" ",
        "echo $(echo 'a)b') ",
        "echo \"a'b\" ",
        "echo $((1 << 2)) $(( (1 + 2) * 3 )) $((16#ff)) ",
        "echo ${x:-'}'} ${x:-y # z} ${#} # it's\n",
        "if [ a = b ]; then c & fi # it's\n",
    ] {
        let command = command.replace("'A B'", "AB");
        let rendered = shell(&format!("{command}{{{{output_dir}}}}")).expect(&command);
        assert_eq!(rendered, format!("{command}'out/x'"));
    }
}
