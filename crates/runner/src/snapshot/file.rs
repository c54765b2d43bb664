//! The file of a snapshot: its text form, and reading it without trusting it.

use super::SnapshotError;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{RunId, SnapshotId};
use lockgate_engine::run::Run;
use lockgate_engine::snapshot::Trigger;
use lockgate_engine::snapshot::document::{self, IndexEntry};
use lockgate_engine::spec::workflow::Workflow;
use lockgate_engine::time::Timestamp;
use rustix::fs::OFlags;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// More than any snapshot has; a compressed file may not grow beyond it either.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// The forms in which a snapshot may be stored; the first one is written.
pub(super) const ENDINGS: [&str; 4] = ["yaml", "yaml.zst", "json", "json.zst"];

/// A snapshot that was read and whose hash was checked.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub id: SnapshotId,
    pub path: PathBuf,
    /// The whole content.
    pub content: Map<String, Value>,
    pub trigger: Trigger,
    pub created_at: Timestamp,
    pub phase: Option<String>,
    pub can_resume: bool,
    /// The size of the file.
    pub bytes: u64,
    /// The part that Lockgate continues from; `None` if another tool wrote the file.
    pub engine: Option<EnginePart>,
}

/// The part of a snapshot that Lockgate continues from.
#[derive(Clone, Debug, Deserialize)]
pub struct EnginePart {
    pub format: u64,
    pub run: RunId,
    pub workflow: String,
    pub seq: u64,
    pub history: HistoryHead,
    pub definition: Digest,
    pub prerequisites: Prerequisites,
    /// The stored values that the state refers to.
    pub values: Vec<Digest>,
    pub(super) state: StatePart,
}

/// The last commit that a snapshot includes completely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct HistoryHead {
    pub version: u64,
    pub head: Digest,
}

/// What must be there for a run to continue from a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Prerequisites {
    pub branch: Option<String>,
    /// The commit that was checked out.
    pub commit: Option<String>,
    /// The programs of agents.
    pub agents: Vec<String>,
    /// The names of environment variables.
    pub environment: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StatePart {
    Inline(Value),
    Stored(Digest),
}

/// The parts of the readable content that lists need.
#[derive(Deserialize)]
struct Readable {
    checkpoint_id: SnapshotId,
    created_at: Timestamp,
    #[serde(default = "manual")]
    trigger: Trigger,
    workflow_state: WorkflowState,
    recovery_info: RecoveryInfo,
}

#[derive(Deserialize)]
struct WorkflowState {
    current_phase: Option<String>,
}

#[derive(Deserialize)]
struct RecoveryInfo {
    can_resume: bool,
}

/// Files of other tools do not say what caused them.
fn manual() -> Trigger {
    Trigger::Manual
}

impl Snapshot {
    /// Reads a file and checks its hash.
    pub fn read(path: &Path) -> Result<Self, SnapshotError> {
        let (text, bytes) = read_text(path)?;
        let content = parse(&text, path)?;
        let damaged = |error: serde_json::Error| SnapshotError::Damaged { path: path.to_path_buf(), detail: error.to_string() };
        let readable: Readable = serde_json::from_value(Value::Object(content.clone())).map_err(damaged)?;
        let engine = content.get("lockgate").map(|part| engine_part(part, path)).transpose()?;
        if engine.is_some() {
            check_hash(&readable.checkpoint_id, &content, path)?;
        }
        Ok(Self {
            id: readable.checkpoint_id,
            path: path.to_path_buf(),
            trigger: readable.trigger,
            created_at: readable.created_at,
            phase: readable.workflow_state.current_phase,
            can_resume: readable.recovery_info.can_resume && engine.is_some(),
            bytes,
            engine,
            content,
        })
    }

    /// The part that Lockgate continues from.
    pub fn engine(&self) -> Result<&EnginePart, SnapshotError> {
        self.engine.as_ref().ok_or_else(|| SnapshotError::NoState { path: self.path.clone() })
    }

    /// The state of the run, with its definition and everything else from the directory of the snapshot.
    pub fn state(&self) -> Result<Run, SnapshotError> {
        let engine = self.engine()?;
        let damaged = |detail: String| SnapshotError::Damaged { path: self.path.clone(), detail };
        let state = match &engine.state {
            StatePart::Inline(state) => state.clone(),
            StatePart::Stored(digest) => {
                let bytes = self.checked(&super::dir::state_file(&self.path, &self.id), *digest)?;
                serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?
            }
        };
        let mut run: Run = serde_json::from_value(state).map_err(|error| damaged(error.to_string()))?;
        if run.id != engine.run || run.definition != engine.definition {
            return Err(damaged("its state belongs to another run or definition".to_owned()));
        }
        let definition = Workflow::from_bytes(&self.value(engine.definition)?).map_err(|error| damaged(error.to_string()))?;
        run.attach(Arc::new(definition)).map_err(|error| damaged(error.to_string()))?;
        Ok(run)
    }

    /// A stored value from the directory of the snapshot.
    pub fn value(&self, digest: Digest) -> Result<Vec<u8>, SnapshotError> {
        self.checked(&super::dir::value_file(self.dir(), digest), digest)
    }

    fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    fn checked(&self, path: &Path, digest: Digest) -> Result<Vec<u8>, SnapshotError> {
        let missing = || SnapshotError::ValueMissing { id: self.id.clone(), digest, dir: self.dir().to_path_buf() };
        let bytes = match read_bytes(path) {
            Ok(bytes) => bytes,
            Err(SnapshotError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Err(missing()),
            Err(error) => return Err(error),
        };
        if Digest::of(&bytes) != digest {
            return Err(SnapshotError::ValueDamaged { path: path.to_path_buf() });
        }
        Ok(bytes)
    }

    /// The entry of the snapshot in the index.
    pub fn index_entry(&self) -> IndexEntry {
        IndexEntry {
            checkpoint_id: self.id.clone(),
            created_at: self.created_at,
            trigger: self.trigger,
            phase: self.phase.clone(),
            can_resume: self.can_resume,
            seq: self.engine.as_ref().map_or(0, |engine| engine.seq),
            bytes: self.bytes,
            run: self.engine.as_ref().map(|engine| engine.run.clone()),
        }
    }
}

fn engine_part(part: &Value, path: &Path) -> Result<EnginePart, SnapshotError> {
    let format = part.get("format").and_then(Value::as_u64).unwrap_or(0);
    let (path_buf, supported) = (path.to_path_buf(), document::FORMAT);
    // Checked first, because other formats have other keys.
    if format > supported {
        return Err(SnapshotError::Newer { path: path_buf, format, supported });
    }
    if format < supported {
        return Err(SnapshotError::Older { path: path_buf, format, supported });
    }
    let damaged = |error: serde_json::Error| SnapshotError::Damaged { path: path_buf, detail: error.to_string() };
    EnginePart::deserialize(part).map_err(damaged)
}

/// The hash in the id must be that of the content, and the file must be named after the id.
fn check_hash(id: &SnapshotId, content: &Map<String, Value>, path: &Path) -> Result<(), SnapshotError> {
    let found = document::content_hash(content);
    let expected = id.as_str().rsplit('-').next().unwrap_or_default();
    if found != expected {
        return Err(SnapshotError::HashMismatch { path: path.to_path_buf(), expected: expected.to_owned(), found });
    }
    if id_of_file(path).as_deref() != Some(id.as_str()) {
        let detail = format!("its name is not that of the snapshot in it, which is {id}");
        return Err(SnapshotError::Damaged { path: path.to_path_buf(), detail });
    }
    Ok(())
}

/// The id of the snapshot that a file name says it is.
pub(super) fn id_of_file(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let id = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)?.strip_suffix('.'))?;
    is_safe_id(id).then(|| id.to_owned())
}

/// Whether an id can be a file name: no separators, no control characters, no leading dot.
pub(super) fn is_safe_id(id: &str) -> bool {
    let safe = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.');
    id.starts_with("CP-") && id.len() <= 200 && id.chars().all(safe)
}

/// The text of a snapshot.
pub fn text(content: &Map<String, Value>) -> String {
    let mut text = String::new();
    // Folding long lines would change texts that contain spaces at the ends of lines.
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    serde_saphyr::to_fmt_writer_with_options(&mut text, content, options).expect("JSON always serializes to YAML");
    text
}

fn parse(text: &str, path: &Path) -> Result<Map<String, Value>, SnapshotError> {
    let damaged = |detail: String| SnapshotError::Damaged { path: path.to_path_buf(), detail };
    if path.to_str().is_some_and(|path| path.contains(".json")) {
        return serde_json::from_str(text).map_err(|error| damaged(error.to_string()));
    }
    // We write neither anchors nor aliases, and with them a small file could become a huge value.
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_anchors: 0, max_aliases: 0, max_events: 50_000_000, max_nodes: 50_000_000 },
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let detail = error.to_string();
        damaged(detail.lines().next().unwrap_or_default().to_owned())
    })
}

/// The text of a file, decompressed, and the size of the file.
fn read_text(path: &Path) -> Result<(String, u64), SnapshotError> {
    let bytes = read_bytes(path)?;
    let size = bytes.len() as u64;
    let damaged = |detail: String| SnapshotError::Damaged { path: path.to_path_buf(), detail };
    let bytes = if path.extension().is_some_and(|ending| ending == "zst") {
        let stream = ruzstd::decoding::StreamingDecoder::new(bytes.as_slice()).map_err(|error| damaged(error.to_string()))?;
        limited(stream, path)?
    } else {
        bytes
    };
    let text = String::from_utf8(bytes).map_err(|_| damaged("it is not UTF-8 text".to_owned()))?;
    Ok((text, size))
}

/// The bytes of a regular file. Symlinks are not followed, and a pipe is not waited for.
pub(super) fn read_bytes(path: &Path) -> Result<Vec<u8>, SnapshotError> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path);
    let file: File = match opened {
        Ok(file) => file,
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            return Err(SnapshotError::NotAFile { path: path.to_path_buf() });
        }
        Err(error) => return Err(SnapshotError::io(path)(error)),
    };
    let metadata = file.metadata().map_err(SnapshotError::io(path))?;
    if !metadata.is_file() {
        return Err(SnapshotError::NotAFile { path: path.to_path_buf() });
    }
    limited(file, path)
}

fn limited(source: impl Read, path: &Path) -> Result<Vec<u8>, SnapshotError> {
    let mut bytes = Vec::new();
    let read = source.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| match error.kind() {
        // A compressed stream that ends early, or is not one.
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::Other => {
            SnapshotError::Damaged { path: path.to_path_buf(), detail: error.to_string() }
        }
        _ => SnapshotError::io(path)(error),
    })?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(SnapshotError::TooLarge { path: path.to_path_buf(), limit_mb: MAX_BYTES / 1024 / 1024 });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Texts that YAML could take for something else, or change.
    const DIFFICULT: [&str; 22] = [
        "",
        " ",
        "yes",
        "null",
        "~",
        "1e3",
        "0x10",
        "1_000",
        "2026-01-01",
        "- a",
        "a: b",
        "# c",
        "&a",
        "*a",
        "!t",
        "|",
        "'\"",
        "a\n b \n\n",
        "trailing  \nspace \n",
        "tab\there",
        "\u{1}\u{7f}\u{85}\u{2028}\u{feff}",
        "😀 ä",
    ];

    #[test]
    fn every_value_survives_the_text_form() {
        let long = "word ".repeat(100);
        let mut content = Map::new();
        for (index, text) in DIFFICULT.iter().chain([&long.as_str()]).enumerate() {
            content.insert(format!("v{index}"), json!({ *text: [text, { "in": text }] }));
        }
        let numbers = json!([0, -1, u64::MAX, i64::MIN, 0.1, 1e300, -0.5, null, true, false, [], {}]);
        content.insert("numbers".into(), numbers);
        assert_eq!(parse(&text(&content), Path::new("CP-a.yaml")).unwrap(), content);
        let hash = document::content_hash(&content);
        let json = Value::Object(content).to_string();
        assert_eq!(document::content_hash(&parse(&json, Path::new("CP-a.json")).unwrap()), hash, "the forms have the same hash");
    }

    #[test]
    fn aliases_are_refused() {
        let bomb = "a: &a [x, x]\nb: [*a, *a]\n";
        assert!(matches!(parse(bomb, Path::new("CP-a.yaml")), Err(SnapshotError::Damaged { .. })));
    }

    #[test]
    fn only_plain_ids_name_files() {
        assert_eq!(id_of_file(Path::new("x/CP-a-1.yaml.zst")).as_deref(), Some("CP-a-1"));
        for name in ["CP-a.tmp", "index.yaml", ".CP-a.yaml", "CP-a b.yaml", "CP-ä.yaml"] {
            assert_eq!(id_of_file(Path::new(name)), None, "{name}");
        }
        assert!(!is_safe_id("CP-../x") && !is_safe_id("") && is_safe_id("CP-build-20250114T103000Z-9f"));
    }
}
