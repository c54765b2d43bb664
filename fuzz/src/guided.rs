//! Coverage-guided fuzzing: libFuzzer around one target, which an environment variable names.
//!
//! `cargo xtask soak` starts it; the arguments are libFuzzer's own.

#![no_main]

use lockgate_fuzz::{TARGETS, Target};
use std::sync::OnceLock;

static CHOSEN: OnceLock<&Target> = OnceLock::new();

libfuzzer_sys::fuzz_target!(
    init: {
        let name = std::env::var("LOCKGATE_FUZZ_TARGET").expect("LOCKGATE_FUZZ_TARGET names the target");
        let target = TARGETS.iter().find(|target| target.name == name).expect("LOCKGATE_FUZZ_TARGET names a known target");
        if let Some(directory) = std::env::var_os("LOCKGATE_FUZZ_SEEDS") {
            lockgate_fuzz::write_seeds(target, directory.as_ref()).expect("the seeds can be written");
        }
        CHOSEN.set(target).expect("the target is chosen once");
    },
    |bytes: &[u8]| {
        let target = CHOSEN.get().expect("the target was chosen at the start");
        (target.run)(bytes);
    }
);
