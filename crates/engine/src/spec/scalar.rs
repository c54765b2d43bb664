//! The meaning of a scalar by the core schema of YAML 1.2: text, a number, a boolean or null.

use super::syntax::{Content, Node, Scalar};
use serde_json::{Number, Value};
use std::ops::Range;

impl Scalar<'_> {
    pub fn is_null(&self) -> bool {
        self.plain && matches!(&*self.text, "" | "~" | "null" | "Null" | "NULL")
    }

    /// The boolean, if it is one.
    pub fn boolean(&self) -> Option<bool> {
        match &*self.text {
            "true" | "True" | "TRUE" if self.plain => Some(true),
            "false" | "False" | "FALSE" if self.plain => Some(false),
            _ => None,
        }
    }

    /// The whole number, if it is one and not negative.
    pub(crate) fn count(&self) -> Option<u64> {
        match self.number() {
            Some(Ok(number)) => number.as_u64(),
            Some(Err(NotJson)) | None => None,
        }
    }

    /// The whole number, if it is one.
    pub(crate) fn integer(&self) -> Option<i64> {
        match self.number() {
            Some(Ok(number)) => number.as_i64(),
            Some(Err(NotJson)) | None => None,
        }
    }

    /// The number, if it is one. JSON has no infinity.
    fn number(&self) -> Option<Result<Number, NotJson>> {
        if !self.plain {
            return None;
        }
        let text = &*self.text;
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        for (prefix, radix) in [("0x", 16), ("0o", 8)] {
            if let Some(rest) = text.strip_prefix(prefix) {
                return u64::from_str_radix(rest, radix).ok().map(|number| Ok(number.into()));
            }
        }
        if matches!(digits, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
            return Some(Err(NotJson));
        }
        if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            let whole = text.strip_prefix('+').unwrap_or(text);
            if let Ok(number) = whole.parse::<u64>() {
                return Some(Ok(number.into()));
            }
            if let Ok(number) = whole.parse::<i64>() {
                return Some(Ok(number.into()));
            }
        } else if !is_decimal(digits) {
            return None;
        }
        let number = text.parse::<f64>().ok()?;
        Some(Number::from_f64(number).ok_or(NotJson))
    }
}

/// A number that JSON cannot represent.
struct NotJson;

/// Digits with a point or an exponent, as in YAML 1.2. `1_000`, `1e` and `infinity` are text.
fn is_decimal(digits: &str) -> bool {
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (digits, None),
    };
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    all_digits(whole)
        && all_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| !exponent.is_empty() && all_digits(exponent))
}

/// How to write a boolean instead of this text.
pub(crate) fn boolean_help(text: &str) -> &'static str {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "on" | "y" | "true" | "1" => "write `true`, without quotes",
        "no" | "off" | "n" | "false" | "0" => "write `false`, without quotes",
        _ => "write `true` or `false`",
    }
}

/// How to write a duration instead of this text.
pub(crate) fn duration_help(text: &str) -> String {
    match text.trim().parse::<u64>() {
        Ok(number) => format!("add a unit: `{number}s`, `{number}m` or `{number}h`"),
        Err(_) => "write it as `30s`, `5m`, `1h 30m` or `PT30M`".into(),
    }
}

/// The value as JSON. Positions of numbers that JSON cannot represent are collected.
pub(crate) fn to_json(node: &Node<'_>, refused: &mut Vec<Range<usize>>) -> Value {
    match &*node.content {
        Content::Scalar(scalar) if scalar.is_null() => Value::Null,
        Content::Scalar(scalar) => match (scalar.boolean(), scalar.number()) {
            (Some(boolean), _) => Value::Bool(boolean),
            (None, Some(Ok(number))) => Value::Number(number),
            (None, Some(Err(NotJson))) => {
                refused.push(node.span.clone());
                Value::Null
            }
            (None, None) => Value::String(scalar.text.to_string()),
        },
        Content::List(items) => items.iter().map(|item| to_json(item, refused)).collect(),
        Content::Map(entries) => {
            Value::Object(entries.iter().map(|entry| (entry.key.to_string(), to_json(&entry.value, refused))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{problem::Report, syntax};
    use super::*;
    use serde_json::json;

    fn value(text: &str) -> Value {
        let node = syntax::parse(text, &mut Report::default()).expect("YAML");
        let mut refused = Vec::new();
        let value = to_json(&node, &mut refused);
        assert!(refused.is_empty());
        value
    }

    #[test]
    fn scalars_are_resolved_as_in_yaml_1_2() {
        assert_eq!(value("[1, -2, +3, 0x1F, 0o17, 1.5, 1e3, -.5, 6.]"), json!([1, -2, 3, 31, 15, 1.5, 1000.0, -0.5, 6.0]));
        assert_eq!(value("[true, False, ~, null, '']"), json!([true, false, null, null, ""]));
        assert_eq!(value("[yes, no, on, off, 1_000, 1e, 0x, '5', \"true\", infinity, 12:30]"), {
            json!(["yes", "no", "on", "off", "1_000", "1e", "0x", "5", "true", "infinity", "12:30"])
        });
        assert_eq!(value("[18446744073709551615, -9223372036854775808]"), json!([u64::MAX, i64::MIN]));
        assert_eq!(value("!!str 5"), json!("5"));
        assert_eq!(value("{b: {c: [1]}, a: 2}").to_string(), r#"{"b":{"c":[1]},"a":2}"#);
    }

    #[test]
    fn a_number_that_json_cannot_represent_is_reported_with_its_position() {
        let node = syntax::parse("[1, .inf, .nan]", &mut Report::default()).expect("YAML");
        let mut refused = Vec::new();
        to_json(&node, &mut refused);
        assert_eq!(refused, [4..8, 10..14]);
    }
}
