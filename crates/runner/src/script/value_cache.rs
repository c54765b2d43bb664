//! Which large values a worker already has.
//!
//! The cache is tracked on this side only: the worker keeps everything it was sent until it is asked to forget it, so the two
//! cannot disagree.

use super::StoredPart;
use lockgate_engine::digest::Digest;
use std::collections::HashMap;

/// How many bytes of JSON text a worker caches.
const CACHE_BYTES: usize = 32 << 20;

/// The cached values of a worker.
#[derive(Default)]
pub(super) struct ValueCache {
    held: HashMap<Digest, Held>,
    bytes: usize,
    calls: u64,
}

struct Held {
    bytes: usize,
    last_used: u64,
}

/// What to send with a call: whether each part's text is included, and which values the worker must forget first.
#[derive(Default)]
pub(super) struct CacheUpdate {
    pub(super) send: Vec<bool>,
    pub(super) forget: Vec<Digest>,
}

impl ValueCache {
    /// Plans and records the update for a call that uses these parts.
    pub(super) fn update(&mut self, parts: &[StoredPart]) -> CacheUpdate {
        self.calls += 1;
        let mut cache_update = CacheUpdate::default();
        for part in parts {
            let held = self.held.entry(part.digest).or_insert(Held { bytes: part.json.len(), last_used: 0 });
            let is_new = held.last_used == 0;
            held.last_used = self.calls;
            if is_new {
                self.bytes += held.bytes;
            }
            cache_update.send.push(is_new);
        }
        while self.bytes > CACHE_BYTES {
            let idle = self.held.iter().filter(|(_, held)| held.last_used < self.calls);
            let Some((digest, _)) = idle.min_by_key(|(_, held)| held.last_used) else { break };
            let digest = *digest;
            self.bytes -= self.held.remove(&digest).map_or(0, |held| held.bytes);
            cache_update.forget.push(digest);
        }
        cache_update
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
        let mut value_cache = ValueCache::default();
        let (a, b) = (part("a", 10), part("b", 10));
        assert_eq!(value_cache.update(&[a.clone(), a.clone()]).send, [true, false]);
        assert_eq!(value_cache.update(&[b, a]).send, [true, false]);
    }

    #[test]
    fn the_least_recently_used_value_is_evicted_and_sent_again_when_needed() {
        let mut value_cache = ValueCache::default();
        let half = CACHE_BYTES / 2;
        let (a, b, c) = (part("a", half), part("b", half), part("c", half));
        value_cache.update(std::slice::from_ref(&a));
        value_cache.update(std::slice::from_ref(&b));
        value_cache.update(std::slice::from_ref(&a));
        let cache_update = value_cache.update(std::slice::from_ref(&c));
        assert_eq!((cache_update.send, cache_update.forget), (vec![true], vec![b.digest]));
        assert_eq!(value_cache.update(&[a]).send, [false]);
        assert_eq!(value_cache.update(&[b]).send, [true]);
    }

    #[test]
    fn values_of_the_current_call_are_never_evicted() {
        let mut value_cache = ValueCache::default();
        let (a, b) = (part("a", CACHE_BYTES), part("b", CACHE_BYTES));
        let cache_update = value_cache.update(&[a.clone(), b.clone()]);
        assert_eq!((cache_update.send, cache_update.forget), (vec![true, true], vec![]));
        assert_eq!(value_cache.update(std::slice::from_ref(&b)).forget, [a.digest]);
    }
}
