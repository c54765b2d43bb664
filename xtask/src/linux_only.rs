//! Checks that only the module `sys` of a crate uses what other systems lack, so that porting a crate means porting one module.

use std::path::{Path, PathBuf};

/// Paths, system calls and conditions of Linux.
const LINUX: &[&str] = &[
    "/proc/",
    "/sys/",
    "prctl",
    "subreaper(Some",
    "child_subreaper",
    "pidfd",
    "inotify::",
    "memfd",
    "eventfd",
    "epoll",
    "signalfd",
    "timerfd",
    "fanotify",
    "fcntl_setpipe_size",
    "statfs(",
    "Resource::Locks",
    "ClockId::Boottime",
    "renameat_with",
    "openat2",
    "copy_file_range",
    "target_os",
];

/// The lines outside tests and comments that use something of Linux.
fn uses(source: &str) -> Vec<(usize, &'static str)> {
    let lines = source
        .lines()
        .enumerate()
        .take_while(|(_, line)| !line.starts_with("#[cfg(test)]") && !line.starts_with("#[cfg(all(test"));
    let code = lines.filter(|(_, line)| !line.trim_start().starts_with("//"));
    code.flat_map(|(index, line)| LINUX.iter().filter(move |word| line.contains(**word)).map(move |word| (index + 1, *word)))
        .collect()
}

/// The sources of a crate outside its module `sys` and outside tests.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let source = directory.join("src");
    let (module, file) = (source.join("sys"), source.join("sys.rs"));
    let of_tests = |path: &Path| path.components().any(|part| ["tests", "tests.rs"].iter().any(|name| part.as_os_str() == *name));
    let mut files = crate::docs::files_under(&source, "rs");
    files.retain(|path| !path.starts_with(&module) && *path != file && !path.strip_prefix(&source).is_ok_and(of_tests));
    files
}

#[test]
fn only_the_sys_module_of_a_crate_uses_system_calls_of_linux() {
    let root = crate::root();
    let mut found = Vec::new();
    let mut files = 0;
    for directory in crate::cargo::package_directories().unwrap().iter().filter(|path| path.starts_with(root.join("crates"))) {
        for file in sources(directory) {
            let text = std::fs::read_to_string(&file).unwrap();
            let shown = file.strip_prefix(&root).unwrap().display().to_string();
            found.extend(uses(&text).into_iter().map(|(line, word)| format!("{shown}:{line}: {word}")));
            files += 1;
        }
    }
    assert!(files > 100, "only {files} files were read");
    assert!(found.is_empty(), "move these to the module `sys` of their crate: {found:#?}");
}

#[test]
fn a_system_call_outside_tests_and_comments_is_found() {
    let source = "// reads /proc/self\nlet a = pidfd_open(pid);\n#[cfg(test)]\nmod tests { /* memfd */ }\n";
    assert_eq!(uses(source), [(2, "pidfd")]);
}
