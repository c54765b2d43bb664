//! Which large values a worker already has.
//!
//! Kept on this side only: the worker holds what it was sent until it is told to forget it, so the two cannot disagree.

use super::StoredPart;
use lockgate_engine::digest::Digest;
use std::collections::HashMap;

/// A worker keeps large values up to this many bytes of JSON text.
const SHELF_BYTES: usize = 32 << 20;

/// What is on a worker's shelf.
#[derive(Default)]
pub(super) struct Shelf {
    held: HashMap<Digest, Held>,
    bytes: usize,
    calls: u64,
}

struct Held {
    bytes: usize,
    last_used: u64,
}

/// What to send with a call: for each part whether its text goes along, and what the worker shall forget first.
#[derive(Default)]
pub(super) struct Delivery {
    pub(super) send: Vec<bool>,
    pub(super) forget: Vec<Digest>,
}

impl Shelf {
    /// Plans the delivery for a call that uses these parts, and takes note of it.
    pub(super) fn deliver(&mut self, parts: &[StoredPart]) -> Delivery {
        self.calls += 1;
        let mut delivery = Delivery::default();
        for part in parts {
            let held = self.held.entry(part.digest).or_insert(Held { bytes: part.json.len(), last_used: 0 });
            let is_new = held.last_used == 0;
            held.last_used = self.calls;
            if is_new {
                self.bytes += held.bytes;
            }
            delivery.send.push(is_new);
        }
        while self.bytes > SHELF_BYTES {
            let idle = self.held.iter().filter(|(_, held)| held.last_used < self.calls);
            let Some((digest, _)) = idle.min_by_key(|(_, held)| held.last_used) else { break };
            let digest = *digest;
            self.bytes -= self.held.remove(&digest).map_or(0, |held| held.bytes);
            delivery.forget.push(digest);
        }
        delivery
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(letter: &str, bytes: usize) -> StoredPart {
        StoredPart { path: vec!["x".into()], digest: Digest::of(letter.as_bytes()), json: letter.repeat(bytes).into() }
    }

    #[test]
    fn a_value_is_sent_once() {
        let mut shelf = Shelf::default();
        let (a, b) = (part("a", 10), part("b", 10));
        assert_eq!(shelf.deliver(&[a.clone(), a.clone()]).send, [true, false]);
        assert_eq!(shelf.deliver(&[b, a]).send, [true, false]);
    }

    #[test]
    fn the_value_used_longest_ago_is_forgotten_and_sent_again_when_needed() {
        let mut shelf = Shelf::default();
        let half = SHELF_BYTES / 2;
        let (a, b, c) = (part("a", half), part("b", half), part("c", half));
        shelf.deliver(std::slice::from_ref(&a));
        shelf.deliver(std::slice::from_ref(&b));
        shelf.deliver(std::slice::from_ref(&a));
        let delivery = shelf.deliver(std::slice::from_ref(&c));
        assert_eq!((delivery.send, delivery.forget), (vec![true], vec![b.digest]));
        assert_eq!(shelf.deliver(&[a]).send, [false]);
        assert_eq!(shelf.deliver(&[b]).send, [true]);
    }

    #[test]
    fn what_the_call_itself_uses_is_never_forgotten() {
        let mut shelf = Shelf::default();
        let (a, b) = (part("a", SHELF_BYTES), part("b", SHELF_BYTES));
        let delivery = shelf.deliver(&[a.clone(), b.clone()]);
        assert_eq!((delivery.send, delivery.forget), (vec![true, true], vec![]));
        assert_eq!(shelf.deliver(std::slice::from_ref(&b)).forget, [a.digest]);
    }
}
