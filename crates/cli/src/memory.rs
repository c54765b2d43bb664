//! The memory of this process.

/// Gives free memory back to the system. On its own, the allocator does so only when it is used again.
pub(crate) fn release_unused() {
    // SAFETY: it may be called at any time, from any thread.
    unsafe { libmimalloc_sys::mi_collect(true) }
}
