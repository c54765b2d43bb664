//! The messages in the frames: calls to a worker, and its replies.

use super::{
    AgentReply, Call, Failed, Files, Form, Limits, Returned, ScriptError,
    protocol::{Malformed, Reader, Writer},
    value_cache::CacheUpdate,
};
use lockgate_engine::digest::Digest;
use std::{ffi::OsStr, os::unix::ffi::OsStrExt, time::Duration};

pub(super) const CALL_LIMIT: usize = 512 << 20;
/// The longest reply: result, log and file names have much lower limits of their own.
pub(super) const ANSWER_LIMIT: usize = 64 << 20;
/// The message that a worker sends once when it is ready.
pub(super) const READY: u8 = b'R';

/// A call as the worker sees it, borrowed from the frame.
pub(super) struct Request<'a> {
    pub(super) form: Form,
    pub(super) source: &'a str,
    pub(super) globals: Vec<(&'a str, &'a str)>,
    /// Large values to drop from the cache.
    pub(super) forget: Vec<Digest>,
    pub(super) stored: Vec<StoredGlobal<'a>>,
    pub(super) files: Option<Files>,
    pub(super) agent_queries: Option<Vec<AgentReply>>,
    pub(super) limits: Limits,
}

/// A large value and its path; the text is included if the worker does not have it yet.
pub(super) struct StoredGlobal<'a> {
    pub(super) path: Vec<&'a str>,
    pub(super) digest: Digest,
    pub(super) json: Option<&'a str>,
}

/// The frame for a call; `None` if it is too long.
pub(super) fn write_call(call: &Call, cache_update: &CacheUpdate) -> Option<Vec<u8>> {
    let sent = |index: usize| cache_update.send.get(index).copied().unwrap_or(true);
    let estimate = call.source.len()
        + call.globals.iter().map(|(name, json)| name.len() + json.len() + 8).sum::<usize>()
        + call.stored.iter().enumerate().map(|(i, part)| if sent(i) { part.json.len() } else { 0 } + 128).sum::<usize>()
        + 256;
    let mut writer = Writer::with_capacity(estimate);
    writer.byte(match call.form {
        Form::Body => 0,
        Form::Expression => 1,
    });
    writer.long(u64::try_from(call.limits.time.as_micros()).unwrap_or(u64::MAX));
    writer.long(call.limits.memory as u64);
    writer.long(call.limits.stack as u64);
    writer.bytes(call.source.as_bytes());
    writer.count(call.globals.len());
    for (name, json) in &call.globals {
        writer.bytes(name.as_bytes());
        writer.bytes(json.as_bytes());
    }
    writer.count(cache_update.forget.len());
    for digest in &cache_update.forget {
        writer.digest(digest);
    }
    writer.count(call.stored.len());
    for (index, part) in call.stored.iter().enumerate() {
        writer.count(part.path.len());
        for step in &part.path {
            writer.bytes(step.as_bytes());
        }
        writer.digest(&part.digest);
        writer.byte(u8::from(sent(index)));
        if sent(index) {
            writer.bytes(part.json.as_bytes());
        }
    }
    writer.byte(u8::from(call.files.is_some()));
    if let Some(files) = &call.files {
        writer.bytes(files.output_dir.as_os_str().as_bytes());
        writer.byte(u8::from(files.feature.is_some()));
        if let Some(feature) = &files.feature {
            writer.bytes(feature.as_bytes());
        }
        writer.count(files.expected.len());
        for path in &files.expected {
            writer.bytes(path.as_bytes());
        }
    }
    writer.byte(u8::from(call.agent_queries.is_some()));
    if let Some(agent_queries) = &call.agent_queries {
        writer.count(agent_queries.len());
        for thought in agent_queries {
            writer.bytes(thought.prompt.as_bytes());
            writer.bytes(thought.text.as_bytes());
        }
    }
    writer.finish(CALL_LIMIT)
}

pub(super) fn read_call(frame: &[u8]) -> Result<Request<'_>, Malformed> {
    let mut reader = Reader(frame);
    let form = match reader.byte()? {
        0 => Form::Body,
        1 => Form::Expression,
        _ => return Err(Malformed),
    };
    let limits = Limits {
        time: Duration::from_micros(reader.long()?),
        memory: usize::try_from(reader.long()?).unwrap_or(usize::MAX),
        stack: usize::try_from(reader.long()?).unwrap_or(usize::MAX),
    };
    let source = reader.text()?;
    let globals = reader.list(|reader| Ok((reader.text()?, reader.text()?)))?;
    let forget = reader.list(Reader::digest)?;
    let stored = reader.list(|reader| {
        let path = reader.list(Reader::text)?;
        let digest = reader.digest()?;
        let json = if reader.flag()? { Some(reader.text()?) } else { None };
        Ok(StoredGlobal { path, digest, json })
    })?;
    let files = if reader.flag()? {
        let output_dir = OsStr::from_bytes(reader.bytes()?).into();
        let feature = if reader.flag()? { Some(reader.text()?.to_owned()) } else { None };
        let expected = reader.list(|reader| Ok(reader.text()?.to_owned()))?;
        Some(Files { output_dir, feature, expected })
    } else {
        None
    };
    let agent_queries = if reader.flag()? {
        Some(reader.list(|reader| Ok(AgentReply { prompt: reader.text()?.to_owned(), text: reader.text()?.to_owned() }))?)
    } else {
        None
    };
    reader.end()?;
    Ok(Request { form, source, globals, forget, stored, files, agent_queries, limits })
}

pub(super) fn write_answer(answer: &Result<Returned, Failed>) -> Option<Vec<u8>> {
    let (log, wrote) = match answer {
        Ok(Returned { log, wrote, .. }) | Err(Failed { log, wrote, .. }) => (log, wrote),
    };
    let mut writer = Writer::with_capacity(256);
    match answer {
        Ok(returned) => {
            writer.byte(0);
            writer.byte(u8::from(returned.truthy));
            writer.bytes(returned.json.as_bytes());
        }
        Err(failed) => write_error(&mut writer, &failed.error),
    }
    for list in [log, wrote] {
        writer.count(list.len());
        for text in list {
            writer.bytes(text.as_bytes());
        }
    }
    writer.finish(ANSWER_LIMIT)
}

fn write_error(writer: &mut Writer, error: &ScriptError) {
    match error {
        ScriptError::Thrown { message, line, column } => {
            writer.byte(1);
            writer.bytes(message.as_bytes());
            // Lines and columns count from 1, so 0 means none.
            writer.long(u64::from(line.unwrap_or(0)));
            writer.long(u64::from(column.unwrap_or(0)));
        }
        ScriptError::Timeout(limit) => {
            writer.byte(2);
            writer.long(u64::try_from(limit.as_micros()).unwrap_or(u64::MAX));
        }
        ScriptError::Memory => writer.byte(3),
        ScriptError::Stack => writer.byte(4),
        ScriptError::NeverSettles => writer.byte(5),
        ScriptError::NotJson(why) => {
            writer.byte(6);
            writer.bytes(why.as_bytes());
        }
        ScriptError::TooLarge => writer.byte(7),
        ScriptError::Worker(what) => {
            writer.byte(8);
            writer.bytes(what.as_bytes());
        }
        ScriptError::NeedsAgent { prompt } => {
            writer.byte(9);
            writer.bytes(prompt.as_bytes());
        }
    }
}

pub(super) fn read_answer(frame: &[u8]) -> Result<Result<Returned, Failed>, Malformed> {
    let mut reader = Reader(frame);
    let position = |value: u64| u32::try_from(value).ok().filter(|value| *value > 0);
    let outcome = match reader.byte()? {
        0 => Ok((reader.flag()?, reader.text()?.to_owned())),
        1 => Err(ScriptError::Thrown {
            message: reader.text()?.to_owned(),
            line: position(reader.long()?),
            column: position(reader.long()?),
        }),
        2 => Err(ScriptError::Timeout(Duration::from_micros(reader.long()?))),
        3 => Err(ScriptError::Memory),
        4 => Err(ScriptError::Stack),
        5 => Err(ScriptError::NeverSettles),
        6 => Err(ScriptError::NotJson(reader.text()?.to_owned())),
        7 => Err(ScriptError::TooLarge),
        8 => Err(ScriptError::Worker(reader.text()?.to_owned())),
        9 => Err(ScriptError::NeedsAgent { prompt: reader.text()?.to_owned() }),
        _ => return Err(Malformed),
    };
    let log = reader.list(|reader| Ok(reader.text()?.to_owned()))?;
    let wrote = reader.list(|reader| Ok(reader.text()?.to_owned()))?;
    reader.end()?;
    Ok(match outcome {
        Ok((truthy, json)) => Ok(Returned { json, truthy, log, wrote }),
        Err(error) => Err(Failed { error, log, wrote }),
    })
}

#[cfg(test)]
mod tests {
    use super::{super::StoredPart, *};
    use crate::script::protocol::PREFIX;

    #[test]
    fn a_call_round_trips() {
        let part = |text: &str| StoredPart {
            path: vec!["context".into(), "vars".into()],
            digest: Digest::of(text.as_bytes()),
            json: text.into(),
        };
        let call = Call {
            form: Form::Expression,
            source: "1 + 1".into(),
            globals: vec![("context".into(), "{}".into())],
            stored: vec![part("[1]"), part("[2]")],
            files: Some(Files {
                output_dir: "/somewhere/out".into(),
                feature: Some("login".into()),
                expected: vec!["plan.md".into()],
            }),
            agent_queries: Some(vec![AgentReply { prompt: "why?".into(), text: "so".into() }]),
            limits: Limits::CONDITION,
        };
        let cache_update = CacheUpdate { send: vec![true, false], forget: vec![Digest::ZERO] };
        let frame = write_call(&call, &cache_update).unwrap();
        let request = read_call(&frame[PREFIX..]).unwrap();
        assert_eq!(request.form, Form::Expression);
        assert_eq!(request.source, "1 + 1");
        assert_eq!(request.globals, [("context", "{}")]);
        assert_eq!(request.forget, [Digest::ZERO]);
        assert_eq!(request.stored[0].json, Some("[1]"));
        assert_eq!(request.stored[1].json, None);
        assert_eq!(request.stored[1].digest, Digest::of(b"[2]"));
        assert_eq!(request.stored[1].path, ["context", "vars"]);
        assert_eq!(request.files, call.files);
        assert_eq!(request.agent_queries, call.agent_queries);
        assert_eq!(request.limits, call.limits);
        for end in PREFIX..frame.len() - 1 {
            assert!(read_call(&frame[PREFIX..end]).is_err());
        }
    }

    #[test]
    fn every_reply_round_trips() {
        let errors = [
            ScriptError::Thrown { message: "Error: no".into(), line: Some(3), column: Some(7) },
            ScriptError::Thrown { message: "no".into(), line: None, column: None },
            ScriptError::Timeout(Duration::from_millis(5)),
            ScriptError::Memory,
            ScriptError::Stack,
            ScriptError::NeverSettles,
            ScriptError::NotJson("a function".into()),
            ScriptError::TooLarge,
            ScriptError::Worker("broken".into()),
            ScriptError::NeedsAgent { prompt: "why?".into() },
        ];
        let (log, wrote) = (vec!["a".to_owned()], vec!["b".to_owned(), "c".to_owned()]);
        let mut answers: Vec<_> =
            errors.into_iter().map(|error| Err(Failed { error, log: log.clone(), wrote: wrote.clone() })).collect();
        answers.push(Ok(Returned { json: "[1]".into(), truthy: true, log, wrote }));
        for answer in answers {
            let frame = write_answer(&answer).unwrap();
            assert_eq!(read_answer(&frame[PREFIX..]), Ok(answer));
            assert_eq!(read_answer(&frame[PREFIX..frame.len() - 1]), Err(Malformed));
        }
    }
}
