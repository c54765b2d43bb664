//! Keeps the last bytes of an unbounded stream.

#[derive(Debug)]
pub(super) struct RingBuffer {
    /// At most twice the limit, so that old bytes are rarely moved out.
    bytes: Vec<u8>,
    limit: usize,
}

impl RingBuffer {
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit }
    }

    pub(super) fn push(&mut self, more: &[u8]) {
        let kept = &more[more.len().saturating_sub(self.limit)..];
        if self.bytes.len() + kept.len() > self.limit * 2 {
            let old = self.bytes.len().saturating_sub(self.limit.saturating_sub(kept.len()));
            self.bytes.drain(..old);
        }
        self.bytes.extend_from_slice(kept);
    }

    pub(super) fn last(&self) -> &[u8] {
        &self.bytes[self.bytes.len().saturating_sub(self.limit)..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bytes_are_kept_in_bounded_memory_for_any_chunking() {
        let all: Vec<u8> = (0..1000_u32).map(|index| index as u8).collect();
        for size in [1, 3, 7, 10, 11, 25, 1000] {
            let mut ring = RingBuffer::new(10);
            for piece in all.chunks(size) {
                ring.push(piece);
                assert!(ring.bytes.len() <= 20);
            }
            assert_eq!(ring.last(), &all[990..], "pieces of {size}");
        }
    }

    #[test]
    fn a_limit_of_zero_keeps_nothing() {
        let mut ring = RingBuffer::new(0);
        ring.push(b"abc");
        assert!(ring.last().is_empty());
    }
}
