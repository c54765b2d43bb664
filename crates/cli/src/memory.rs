//! Memory of the program's allocator.

/// Returns memory that is no longer used to the system, which the allocator otherwise does only with later allocations.
pub(crate) fn release_unused() {
    // SAFETY: it may be called at any time, from any thread.
    unsafe { libmimalloc_sys::mi_collect(true) }
}
