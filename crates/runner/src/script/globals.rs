//! Puts JSON values into an engine.

use super::message::StoredGlobal;
use lockgate_engine::digest::Digest;
use rquickjs::{Array, Ctx, Exception, Function, Object, Result, String as Text, Value, object::Property};
use serde_json::Value as Json;
use std::collections::HashMap;

/// A large value as a worker caches it: parsed once, built anew in each engine.
pub(super) enum CachedValue {
    /// The usual case: building from a tree is several times faster than parsing in the engine.
    Tree(Json),
    /// A text that only the engine's own parser accepts (lone surrogates, very deep nesting), or none.
    Text(Box<str>),
}

impl CachedValue {
    pub(super) fn new(json: &str) -> Self {
        serde_json::from_str(json).map_or_else(|_| Self::Text(json.into()), Self::Tree)
    }

    fn to_js<'js>(&self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        match self {
            Self::Tree(tree) => build(ctx, tree),
            Self::Text(text) => ctx.json_parse(&**text),
        }
    }
}

fn build<'js>(ctx: &Ctx<'js>, json: &Json) -> Result<Value<'js>> {
    Ok(match json {
        Json::Null => Value::new_null(ctx.clone()),
        Json::Bool(value) => Value::new_bool(ctx.clone(), *value),
        Json::Number(number) => match number.as_i64().and_then(|value| i32::try_from(value).ok()) {
            Some(value) => Value::new_int(ctx.clone(), value),
            None => Value::new_float(ctx.clone(), number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Text::from_str(ctx.clone(), text)?.into_value(),
        Json::Array(items) => {
            let array = Array::new(ctx.clone())?;
            for (index, item) in items.iter().enumerate() {
                array.set(index, build(ctx, item)?)?;
            }
            array.into_value()
        }
        Json::Object(members) => {
            let object = Object::new(ctx.clone())?;
            for (name, member) in members {
                put(&object, name, build(ctx, member)?)?;
            }
            object.into_value()
        }
    })
}

/// Sets an own property of the object, as `JSON.parse` does: even one named `__proto__`.
pub(super) fn put<'js>(object: &Object<'js>, name: &str, value: Value<'js>) -> Result<()> {
    if name == "__proto__" {
        object.prop(name, Property::from(value).writable().enumerable().configurable())
    } else {
        object.set(name, value)
    }
}

pub(super) fn set_globals(ctx: &Ctx<'_>, globals: &[(&str, &str)]) -> Result<()> {
    for (name, json) in globals {
        put(&ctx.globals(), name, ctx.json_parse(*json)?)?;
    }
    Ok(())
}

/// Puts the large values at their paths. The script has not run yet, so the engine's built-ins can be trusted.
pub(super) fn set_stored(ctx: &Ctx<'_>, parts: &[StoredGlobal<'_>], value_cache: &HashMap<Digest, CachedValue>) -> Result<()> {
    if parts.is_empty() {
        return Ok(());
    }
    // A phase may be named `constructor`, so only own properties count on the way.
    let has_own: Function<'_> = ctx.globals().get::<_, Object<'_>>("Object")?.get("hasOwn")?;
    for part in parts {
        let Some((last, way)) = part.path.split_last() else { continue };
        let Some(seed) = value_cache.get(&part.digest) else {
            return Err(Exception::throw_internal(ctx, "a stored value was not sent"));
        };
        let mut place = ctx.globals();
        for step in way {
            let next = if has_own.call((place.clone(), *step))? { place.get::<_, Value<'_>>(*step)?.into_object() } else { None };
            place = match next {
                Some(object) => object,
                None => {
                    let object = Object::new(ctx.clone())?;
                    put(&place, step, object.clone().into_value())?;
                    object
                }
            };
        }
        put(&place, last, seed.to_js(ctx)?)?;
    }
    Ok(())
}
