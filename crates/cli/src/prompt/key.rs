//! Decodes keys from the bytes that a terminal sends.

/// Longer pasted text is truncated.
const LONGEST_PASTE: usize = 64 * 1024;

const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Character(char),
    /// Pasted text.
    Paste(String),
    /// Submits the input.
    Enter,
    NewLine,
    /// Deletes the character before the cursor.
    Backspace,
    /// Deletes the character under the cursor.
    Delete,
    DeleteWord,
    DeleteAll,
    Left,
    Right,
    /// Moves to the start of the input.
    Home,
    /// Moves to the end of the input.
    LineEnd,
    /// Chooses the previous option.
    Up,
    /// Chooses the next option.
    Down,
    Escape,
    /// Ctrl+C.
    Interrupt,
    /// Ctrl+Z.
    Suspend,
    /// The window was resized, or the terminal was returned; everything must be drawn again.
    Redraw,
    /// Ctrl+O: show the files.
    Files,
    /// Ctrl+G: open an editor.
    Editor,
    /// Ctrl+D: the end of input.
    End,
}

/// Decodes keys from bytes that arrive in arbitrary chunks.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    waiting: Vec<u8>,
}

impl Decoder {
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
    }

    /// Whether the bytes of an incomplete key are buffered.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The next key, once it is complete. With `at_last`, no more bytes are expected, and incomplete ones are decoded as they are.
    pub(crate) fn next(&mut self, at_last: bool) -> Option<Key> {
        while !self.waiting.is_empty() {
            let (key, used) = match decode(&self.waiting) {
                Decoded::Key(key, used) => (Some(key), used),
                Decoded::Nothing(used) => (None, used),
                Decoded::Incomplete if at_last => {
                    let key = (self.waiting[0] == 0x1b).then_some(Key::Escape);
                    // An unfinished paste is discarded; otherwise only the first byte is dropped.
                    (key, if self.waiting.starts_with(PASTE_BEGINS) { self.waiting.len() } else { 1 })
                }
                Decoded::Incomplete => return None,
            };
            self.waiting.drain(..used);
            if key.is_some() {
                return key;
            }
        }
        None
    }
}

enum Decoded {
    Key(Key, usize),
    Nothing(usize),
    Incomplete,
}

fn decode(bytes: &[u8]) -> Decoded {
    match bytes[0] {
        0x03 => Decoded::Key(Key::Interrupt, 1),
        0x04 => Decoded::Key(Key::End, 1),
        0x07 => Decoded::Key(Key::Editor, 1),
        0x0f => Decoded::Key(Key::Files, 1),
        0x1a => Decoded::Key(Key::Suspend, 1),
        b'\r' => Decoded::Key(Key::Enter, 1),
        b'\n' => Decoded::Key(Key::NewLine, 1),
        0x08 | 0x7f => Decoded::Key(Key::Backspace, 1),
        0x15 => Decoded::Key(Key::DeleteAll, 1),
        0x17 => Decoded::Key(Key::DeleteWord, 1),
        0x10 => Decoded::Key(Key::Up, 1),
        0x0e => Decoded::Key(Key::Down, 1),
        0x01 => Decoded::Key(Key::Home, 1),
        0x02 => Decoded::Key(Key::Left, 1),
        0x05 => Decoded::Key(Key::LineEnd, 1),
        0x06 => Decoded::Key(Key::Right, 1),
        0x1b => escape(bytes),
        b'\t' => Decoded::Key(Key::Character(' '), 1),
        0x00..=0x1f => Decoded::Nothing(1),
        _ => character(bytes),
    }
}

fn character(bytes: &[u8]) -> Decoded {
    let length = match bytes[0] {
        0x00..=0x7f => 1,
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        0x80..=0xbf | 0xf8..=0xff => return Decoded::Nothing(1),
    };
    let Some(piece) = bytes.get(..length) else { return Decoded::Incomplete };
    match std::str::from_utf8(piece).ok().and_then(|text| text.chars().next()) {
        Some(character) => Decoded::Key(Key::Character(character), length),
        None => Decoded::Nothing(1),
    }
}

fn escape(bytes: &[u8]) -> Decoded {
    match bytes.get(1) {
        None => Decoded::Incomplete,
        Some(b'\r' | b'\n') => Decoded::Key(Key::NewLine, 2),
        Some(b'[') => control_sequence(bytes),
        Some(b'O') => match bytes.get(2) {
            None => Decoded::Incomplete,
            Some(b'M') => Decoded::Key(Key::Enter, 3),
            Some(last) => moving(*last).map_or(Decoded::Nothing(3), |key| Decoded::Key(key, 3)),
        },
        Some(_) => Decoded::Key(Key::Escape, 1),
    }
}

fn control_sequence(bytes: &[u8]) -> Decoded {
    if bytes.starts_with(PASTE_BEGINS) {
        return paste(bytes);
    }
    let Some(last) = bytes[2..].iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
        return if bytes.len() > 32 { Decoded::Nothing(bytes.len()) } else { Decoded::Incomplete };
    };
    let used = last + 3;
    match (&bytes[2..used - 1], bytes[used - 1]) {
        ([], last) => moving(last).map_or(Decoded::Nothing(used), |key| Decoded::Key(key, used)),
        (b"1" | b"7", b'~') => Decoded::Key(Key::Home, used),
        (b"4" | b"8", b'~') => Decoded::Key(Key::LineEnd, used),
        (b"3", b'~') => Decoded::Key(Key::Delete, used),
        _ => Decoded::Nothing(used),
    }
}

/// The cursor key with this final byte.
fn moving(last: u8) -> Option<Key> {
    match last {
        b'A' => Some(Key::Up),
        b'B' => Some(Key::Down),
        b'C' => Some(Key::Right),
        b'D' => Some(Key::Left),
        b'H' => Some(Key::Home),
        b'F' => Some(Key::LineEnd),
        _ => None,
    }
}

fn paste(bytes: &[u8]) -> Decoded {
    let text = &bytes[PASTE_BEGINS.len()..];
    match text.windows(PASTE_ENDS.len()).position(|window| window == PASTE_ENDS) {
        Some(end) => {
            let pasted = String::from_utf8_lossy(&text[..end.min(LONGEST_PASTE)]).replace("\r\n", "\n").replace('\r', "\n");
            Decoded::Key(Key::Paste(pasted), PASTE_BEGINS.len() + end + PASTE_ENDS.len())
        }
        None if text.len() > 16 * LONGEST_PASTE => Decoded::Nothing(bytes.len()),
        None => Decoded::Incomplete,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        let mut decoder = Decoder::default();
        decoder.take(bytes);
        let mut keys: Vec<Key> = std::iter::from_fn(|| decoder.next(false)).collect();
        keys.extend(std::iter::from_fn(|| decoder.next(true)));
        keys
    }

    #[test]
    fn keys_are_recognized() {
        use Key::{
            Backspace, Character, Delete, DeleteAll, Down, Editor, End, Enter, Files, Home, Interrupt, Left, LineEnd, NewLine,
            Paste, Right, Suspend, Up,
        };
        assert_eq!(keys("aé日\r".as_bytes()), [Character('a'), Character('é'), Character('日'), Enter]);
        assert_eq!(keys(b"\x1b[A\x1b[B\x1bOA\x1bOB"), [Up, Down, Up, Down]);
        assert_eq!(keys(b"\x1b[D\x1b[C\x1b[H\x1b[F\x1bOD\x1bOF"), [Left, Right, Home, LineEnd, Left, LineEnd]);
        assert_eq!(keys(b"\x1b[1~\x1b[4~\x1b[3~\x01\x05\x02\x06"), [Home, LineEnd, Delete, Home, LineEnd, Left, Right]);
        assert_eq!(keys(b"\x7f\x15\x03\x04"), [Backspace, DeleteAll, Interrupt, End]);
        assert_eq!(keys(b"\x0f\x07\x1a"), [Files, Editor, Suspend]);
        assert_eq!(keys(b"\x1b[200~one\r\ntwo\x03\x1b[201~\r"), [Paste("one\ntwo\x03".into()), Enter]);
        assert_eq!(keys(b"\x1b\r\n"), [NewLine, NewLine]);
    }

    #[test]
    fn unknown_sequences_and_invalid_bytes_are_skipped() {
        assert_eq!(keys(b"\x1b[5~\x1b[1;5Cx"), [Key::Character('x')]);
        assert_eq!(keys(b"\xff\x80x\x0b"), [Key::Character('x')]);
        assert_eq!(keys(b"\xc3x"), [Key::Character('x')]);
    }

    #[test]
    fn a_lone_escape_is_recognized_when_nothing_follows() {
        assert_eq!(keys(b"\x1b"), [Key::Escape]);
    }

    #[test]
    fn keys_may_arrive_in_any_chunks() {
        let whole = "é\x1b[A\x1b[200~日\x1b[201~x".as_bytes();
        let mut decoder = Decoder::default();
        let mut found = Vec::new();
        for byte in whole {
            decoder.take(&[*byte]);
            found.extend(std::iter::from_fn(|| decoder.next(false)));
        }
        assert_eq!(found, keys(whole));
        assert!(!decoder.is_waiting());
    }

    #[test]
    fn reading_any_bytes_terminates() {
        let mut state = 7_u32;
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .take(20_000)
        .collect();
        assert!(!keys(&bytes).is_empty());
    }
}
