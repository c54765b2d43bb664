//! Packages the debug build and checks what a user would get.

use super::completions::SHELLS;
use super::{Compression, Release, Workspace, build, deb, notices, package, run, temporary};
use crate::docs;
use crate::suite::Report;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Packages this program, and checks the package, the archive and the checksums.
pub(crate) fn check(lockgate: &Path, reference: &Path) -> Report {
    let started = Instant::now();
    let (checks, problems) = match packaged(lockgate, reference) {
        Err(error) => (1, vec![error]),
        Ok(checked) => checked,
    };
    docs::report("a release can be packaged", started, checks, problems)
}

fn packaged(lockgate: &Path, reference: &Path) -> Result<(u64, Vec<String>), String> {
    let workspace = Workspace::read()?;
    let (manual, output) = (temporary()?, temporary()?);
    build::write_manual_pages(reference, manual.path())?;
    let release = Release {
        version: workspace.version.clone(),
        binary: lockgate.to_path_buf(),
        manual: manual.path().to_path_buf(),
        notices: notices::text(&workspace)?,
        epoch: 1_700_000_000,
        compression: Compression::Fast,
    };
    package(&release, output.path())?;
    problems(&release, output.path())
}

/// Everything that is wrong with a packaged release, and how many things were checked.
fn problems(release: &Release, output: &Path) -> Result<(u64, Vec<String>), String> {
    let version = &release.version;
    let deb = output.join(format!("lockgate_{version}-1_{}.deb", deb::architecture()));
    let name = format!("lockgate-{version}-{}-linux", std::env::consts::ARCH);
    let in_package = printed(Command::new("dpkg-deb").arg("--contents").arg(&deb))?;
    let control = printed(Command::new("dpkg-deb").arg("--info").arg(&deb))?;
    let in_archive = printed(Command::new("tar").arg("--list").arg("--file").arg(output.join(format!("{name}.tar.gz"))))?;
    let mut expected: Vec<(&str, String)> = Vec::new();
    let mut expect = |listing, line: String| expected.push((listing, line));
    for page in super::files_in(&release.manual)? {
        let page = page.file_name().unwrap_or_default().to_string_lossy().into_owned();
        expect("package", format!(" ./usr/share/man/man1/{page}.gz\n"));
        expect("archive", format!("{name}/man/man1/{page}\n"));
    }
    for (shell, file, installed) in SHELLS {
        expect("package", format!(" ./{installed}\n"));
        expect("archive", format!("{name}/completions/{shell}/{file}\n"));
    }
    for document in ["copyright", "changelog.gz", "THIRD-PARTY-LICENSES.gz"] {
        expect("package", format!(" ./usr/share/doc/lockgate/{document}\n"));
    }
    for file in ["lockgate", "README.md", "LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-LICENSES"] {
        expect("archive", format!("{name}/{file}\n"));
    }
    expect("package", " ./usr/bin/lockgate\n".to_owned());
    expect("control", format!(" Version: {version}-1\n"));
    expect("control", format!(" Architecture: {}\n", deb::architecture()));
    let listings = [("package", &in_package), ("archive", &in_archive), ("control", &control)];
    let text = |wanted: &str| listings.iter().find(|(listing, _)| *listing == wanted).map_or("", |(_, text)| text.as_str());
    let missing = expected.iter().filter(|(listing, line)| !text(listing).contains(line.as_str()));
    let mut problems: Vec<String> =
        missing.map(|(listing, line)| format!("{:?} is missing in the {listing}", line.trim())).collect();
    let foreign = in_package.lines().filter(|line| !line.contains(" root/root "));
    problems.extend(foreign.map(|line| format!("not owned by root: {line}")));
    let program = in_package.lines().find(|line| line.ends_with("/usr/bin/lockgate")).unwrap_or_default();
    if !program.starts_with("-rwxr-xr-x") {
        problems.push(format!("the program has other permissions than rwxr-xr-x: {program}"));
    }
    if let Err(error) = run(Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(output)) {
        problems.push(format!("the checksums do not match: {error}"));
    }
    Ok((expected.len() as u64 + 3, problems))
}

fn printed(command: &mut Command) -> Result<String, String> {
    run(command.env("LC_ALL", "C")).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::super::{set_mode, write};
    use super::*;

    /// A release of a program that only prints completions.
    fn release(directory: &Path) -> Release {
        let binary = directory.join("built/lockgate");
        write(&binary, "#!/bin/sh\necho \"$2 completions of lockgate\"\n").unwrap();
        set_mode(&binary, 0o755).unwrap();
        let manual = directory.join("pages");
        write(&manual.join("lockgate.1"), ".TH lockgate 1\n").unwrap();
        write(&manual.join("lockgate-run.1"), ".TH lockgate-run 1\n").unwrap();
        let notices = "licences".to_owned();
        Release { version: "1.2.3".into(), binary, manual, notices, epoch: 1_700_000_000, compression: Compression::Best }
    }

    #[test]
    fn a_packaged_release_is_complete() {
        let directory = tempfile::tempdir().unwrap();
        let release = release(directory.path());
        let output = directory.path().join("output");
        package(&release, &output).unwrap();
        let (checks, problems) = problems(&release, &output).unwrap();
        assert!(problems.is_empty() && checks > 15, "{problems:#?}");
    }

    #[test]
    fn a_missing_page_and_a_changed_file_are_reported() {
        let directory = tempfile::tempdir().unwrap();
        let release = release(directory.path());
        let output = directory.path().join("output");
        package(&release, &output).unwrap();
        write(&release.manual.join("lockgate-wait.1"), "").unwrap();
        write(&output.join("lockgate"), "another program").unwrap();
        let (_, problems) = problems(&release, &output).unwrap();
        assert!(problems.iter().any(|problem| problem.contains("lockgate-wait.1.gz")), "{problems:#?}");
        assert!(problems.iter().any(|problem| problem.contains("checksums")), "{problems:#?}");
    }

    #[test]
    fn packaging_twice_gives_the_same_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let release = release(directory.path());
        let [one, other] = ["one", "other"].map(|name| {
            let output = directory.path().join(name);
            package(&release, &output).unwrap();
            // One at a different time: a clock that only counts seconds must not hide a difference.
            let later = std::time::SystemTime::now() + std::time::Duration::from_secs(3600);
            let pages = super::super::files_in(&release.manual).unwrap();
            pages.iter().for_each(|page| std::fs::File::open(page).unwrap().set_modified(later).unwrap());
            std::fs::read_to_string(output.join("SHA256SUMS")).unwrap()
        });
        assert_eq!(one, other);
        assert_eq!(one.lines().count(), 3, "{one}");
    }

    #[test]
    fn completions_with_a_path_of_this_machine_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let release = release(directory.path());
        write(&release.binary, "#!/bin/sh\necho \"lockgate is $0\"\n").unwrap();
        let error = package(&release, &directory.path().join("output")).unwrap_err();
        assert!(error.contains("which users do not have"), "{error}");
    }
}
