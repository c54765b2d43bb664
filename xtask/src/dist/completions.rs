//! Completion scripts, printed by the program itself.

use super::{run, write};
use std::path::Path;
use std::process::Command;

/// A shell, the file name that it expects, and the directory where a Debian package puts it.
pub(super) const SHELLS: [(&str, &str, &str); 3] = [
    ("bash", "lockgate.bash", "usr/share/bash-completion/completions/lockgate"),
    ("zsh", "_lockgate", "usr/share/zsh/vendor-completions/_lockgate"),
    ("fish", "lockgate.fish", "usr/share/fish/vendor_completions.d/lockgate.fish"),
];

/// Writes the script of each shell.
pub(super) fn write_all(program: &Path, directory: &Path) -> Result<(), String> {
    let own = program.parent().unwrap_or(Path::new("."));
    for (shell, file, _) in SHELLS {
        // Started by name, because a script may contain the path that the program was started with.
        let mut command = Command::new("lockgate");
        command.args(["completions", shell]).env("PATH", path_with(own)?);
        let script = String::from_utf8(run(&mut command)?).map_err(|error| error.to_string())?;
        if !script.contains("lockgate") {
            return Err(format!("`lockgate completions {shell}` did not print a script"));
        }
        if script.contains(&*own.to_string_lossy()) {
            return Err(format!("the completions of {shell} contain the path {}, which users do not have", own.display()));
        }
        write(&directory.join(file), script)?;
    }
    Ok(())
}

fn path_with(first: &Path) -> Result<std::ffi::OsString, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::iter::once(first.to_path_buf()).chain(std::env::split_paths(&path)))
        .map_err(|error| error.to_string())
}
