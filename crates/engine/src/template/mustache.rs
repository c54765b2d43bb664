//! Whole documents with `{{…}}` in them: the finalization's template, and prompts in files.
//!
//! They are lenient where [`super::render`] is strict: a path that does not exist renders as nothing. They also have loops and
//! conditions:
//!
//! | written | renders |
//! | --- | --- |
//! | `{{path}}`, `{{{path}}}`, `{{&path}}` | the value; never escaped, since documents are not web pages |
//! | `{{.}}`, `{{this}}`, `{{this.name}}` | the current item, or a member of it |
//! | `{{#path}}…{{/path}}` | once per item of a list; otherwise once if the value is not empty, with the value as the current item |
//! | `{{^path}}…{{/path}}`, `{{#unless path}}…{{/unless}}` | once if the value is empty |
//! | `{{#if path}}`, `{{#if (eq path "text")}}`, `(ne …)` | once if the condition is true |
//! | `{{#each path}}…{{/each}}` | once per item; `{{@index}}`, `{{@first}}` and `{{@last}}` give its position |
//! | `{{else}}`, `{{^}}`, `{{else if path}}` | the alternative |
//! | `{{! …}}`, `{{!-- … --}}` | nothing |
//! | `\{{` | a literal `{{` |
//!
//! A value is empty if it is absent, null, false, 0, or an empty text or list. A name is looked up in the current item, then in
//! the enclosing ones. A tag alone on its line removes the line, unless it renders a value.

mod parse;

use super::TemplateError;
use super::path::Found;
use parse::{Condition, Kind, Node, Operand, Section, Subject};
use serde_json::Value;
use std::ops::Range;

/// The maximum size of a rendered document.
pub const MAX_DOCUMENT_BYTES: usize = 64 << 20;
/// The maximum nesting depth of sections.
pub const MAX_NESTING: usize = 100;
/// The maximum number of parts and lookups in one document, because nested loops multiply.
const MAX_STEPS: usize = 10_000_000;

static TRUE: Value = Value::Bool(true);
static FALSE: Value = Value::Bool(false);

/// Renders a document. Paths that do not exist render as nothing.
pub fn render_document(template: &str, values: &Value) -> Result<String, TemplateError> {
    if !template.contains("{{") {
        return Ok(template.to_owned());
    }
    let (nodes, faults) = parse::parse(template);
    if let Some(fault) = faults.into_iter().next() {
        return Err(fault);
    }
    let mut renderer = Renderer {
        scopes: vec![Scope { value: Found::Value(values), place: None }],
        filled: String::with_capacity(template.len() + 256),
        steps: 0,
        section: 0..template.len(),
    };
    renderer.write_all(&nodes)?;
    Ok(renderer.filled)
}

/// All errors of a document that do not depend on the values, sorted by position.
pub fn check_document(template: &str) -> Vec<TemplateError> {
    parse::parse(template).1
}

/// The current item, within the enclosing ones.
#[derive(Clone, Copy)]
struct Scope<'v> {
    value: Found<'v>,
    /// Its position in the list.
    place: Option<Place>,
}

#[derive(Clone, Copy)]
struct Place {
    index: usize,
    count: usize,
}

struct Renderer<'v> {
    /// The last one is the innermost; the first one contains all values.
    scopes: Vec<Scope<'v>>,
    filled: String,
    steps: usize,
    /// The tag that opened the current section, for error messages.
    section: Range<usize>,
}

impl<'v> Renderer<'v> {
    fn write_all(&mut self, nodes: &[Node<'_>]) -> Result<(), TemplateError> {
        for node in nodes {
            self.take_step()?;
            match node {
                Node::Text(text) => self.filled.push_str(text),
                Node::Value(subject) => {
                    if let Some(found) = self.find(subject)? {
                        found.write(&mut self.filled);
                    }
                }
                Node::Section(section) => {
                    let outer = std::mem::replace(&mut self.section, section.span.clone());
                    self.write_section(section)?;
                    self.section = outer;
                }
            }
            if self.filled.len() > MAX_DOCUMENT_BYTES {
                let message = format!("the document is larger than {} MB", MAX_DOCUMENT_BYTES >> 20);
                return Err(self.too_much(message));
            }
        }
        Ok(())
    }

    fn write_section(&mut self, section: &Section<'_>) -> Result<(), TemplateError> {
        match &section.kind {
            Kind::Scope(subject) => match self.find(subject)? {
                Some(Found::Value(Value::Array(items))) => self.write_items(section, items.len(), items),
                found if !is_something(found) => self.write_all(&section.otherwise),
                // A boolean has no members and no text of its own.
                None | Some(Found::Value(Value::Bool(_))) => self.write_all(&section.body),
                Some(value) => self.write_item(section, Scope { value, place: None }),
            },
            Kind::Each(subject) => match self.find(subject)? {
                Some(Found::Value(Value::Array(items))) => self.write_items(section, items.len(), items),
                Some(Found::Value(Value::Object(members))) => self.write_items(section, members.len(), members.values()),
                Some(Found::Value(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | Found::Length(_))
                | None => self.write_all(&section.otherwise),
            },
            Kind::When { condition, holds } => {
                let branch = if self.judge(condition)? == *holds { &section.body } else { &section.otherwise };
                self.write_all(branch)
            }
        }
    }

    fn write_items(
        &mut self,
        section: &Section<'_>,
        count: usize,
        items: impl IntoIterator<Item = &'v Value>,
    ) -> Result<(), TemplateError> {
        if count == 0 {
            return self.write_all(&section.otherwise);
        }
        for (index, item) in items.into_iter().enumerate() {
            self.take_step()?;
            self.write_item(section, Scope { value: Found::Value(item), place: Some(Place { index, count }) })?;
        }
        Ok(())
    }

    fn write_item(&mut self, section: &Section<'_>, scope: Scope<'v>) -> Result<(), TemplateError> {
        self.scopes.push(scope);
        let written = self.write_all(&section.body);
        self.scopes.pop();
        written
    }

    fn judge(&mut self, condition: &Condition) -> Result<bool, TemplateError> {
        match condition {
            Condition::Something(subject) => Ok(is_something(self.find(subject)?)),
            Condition::Compared { left, right, are_same } => {
                let left = self.value_of(left)?;
                Ok(is_same(left, self.value_of(right)?) == *are_same)
            }
        }
    }

    fn value_of<'s>(&mut self, operand: &'s Operand) -> Result<Found<'s>, TemplateError>
    where
        'v: 's,
    {
        match operand {
            Operand::Literal(value) => Ok(Found::Value(value)),
            Operand::Subject(subject) => Ok(self.find(subject)?.unwrap_or(Found::Value(&Value::Null))),
        }
    }

    fn find(&mut self, subject: &Subject) -> Result<Option<Found<'v>>, TemplateError> {
        let this = self.scopes.last().map(|scope| scope.value);
        let place = || self.scopes.iter().rev().find_map(|scope| scope.place);
        let yes_or_no = |yes: bool| Found::Value(if yes { &TRUE } else { &FALSE });
        Ok(match subject {
            Subject::This => this,
            Subject::InThis(path) => match this {
                Some(Found::Value(value)) => path.find(value),
                Some(Found::Length(_)) | None => None,
            },
            Subject::Index => place().map(|place| Found::Length(place.index)),
            Subject::First => place().map(|place| yes_or_no(place.index == 0)),
            Subject::Last => place().map(|place| yes_or_no(place.index + 1 == place.count)),
            Subject::Path(path) => {
                for depth in (0..self.scopes.len()).rev() {
                    self.take_step()?;
                    // The innermost scope that has the first name is used, even if it lacks the rest of the path.
                    if let Found::Value(value) = self.scopes[depth].value
                        && path.starts_in(value)
                    {
                        return Ok(path.find(value));
                    }
                }
                None
            }
        })
    }

    fn take_step(&mut self) -> Result<(), TemplateError> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err(self.too_much("the document repeats too much".into()));
        }
        Ok(())
    }

    fn too_much(&self, message: String) -> TemplateError {
        let help = "nested loops multiply; refer to a list of the current item with {{#this.list}}";
        TemplateError { message, span: self.section.clone(), help: Some(help.into()) }
    }
}

/// Whether a value is not empty.
fn is_something(found: Option<Found<'_>>) -> bool {
    match found {
        None | Some(Found::Value(Value::Null)) => false,
        Some(Found::Length(length)) => length > 0,
        Some(Found::Value(Value::Bool(value))) => *value,
        Some(Found::Value(Value::Number(number))) => number.as_f64() != Some(0.0),
        Some(Found::Value(Value::String(text))) => !text.is_empty(),
        Some(Found::Value(Value::Array(items))) => !items.is_empty(),
        Some(Found::Value(Value::Object(_))) => true,
    }
}

fn is_same(left: Found<'_>, right: Found<'_>) -> bool {
    match (left, right) {
        (Found::Length(left), Found::Length(right)) => left == right,
        (Found::Length(length), Found::Value(value)) | (Found::Value(value), Found::Length(length)) => {
            value.as_f64() == Some(length as f64)
        }
        (Found::Value(left), Found::Value(right)) => match (left.as_f64(), right.as_f64()) {
            (Some(left), Some(right)) => left == right,
            (_, _) => left == right,
        },
    }
}
