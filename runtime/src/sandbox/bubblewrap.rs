//! The arguments of `bwrap`: an own view of the file system, no capabilities and, unless allowed,
//! no network.

use std::{ffi::OsString, fs, path::Path};

use super::{
    ThreadFolders, VIRTUAL_WORKSPACE,
    limits::TEMPORARY_BYTES_MAX,
    system::{Etc, PROGRAM_FOLDERS},
};

/// Where name resolution keeps the file that `/etc/resolv.conf` points to.
const RESOLVER_FOLDER: &str = "/run/systemd/resolve";

/// Everything before the program that is to run.
pub(super) fn arguments(folders: &ThreadFolders, etc: &Etc, network: bool) -> Vec<OsString> {
    let mut arguments = Arguments(Vec::new());
    arguments.plain(&["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]);
    if network {
        arguments.plain(&["--share-net"]);
        arguments.paths("--ro-bind-try", [Path::new(RESOLVER_FOLDER); 2]);
    }
    for folder in PROGRAM_FOLDERS.map(Path::new) {
        match fs::read_link(folder) {
            Ok(target) => arguments.paths("--symlink", [target.as_path(), folder]),
            Err(_) => arguments.paths("--ro-bind-try", [folder, folder]),
        }
    }
    arguments.paths("--ro-bind", [Path::new("/etc"); 2]);
    for private in &etc.private {
        hide(&mut arguments, private);
    }
    arguments.plain(&["--proc", "/proc", "--dev", "/dev"]);
    // These are kept in memory.
    for folder in ["/dev/shm", "/tmp"] {
        arguments.plain(&["--size", &TEMPORARY_BYTES_MAX.to_string(), "--tmpfs", folder]);
    }
    arguments.plain(&["--remount-ro", "/dev"]);
    for (name, host) in folders.roots() {
        arguments.paths("--bind", [host, Path::new(name)]);
    }
    hide_data(&mut arguments, folders);
    arguments.plain(&["--remount-ro", "/", "--chdir", VIRTUAL_WORKSPACE, "--"]);
    arguments.0
}

/// Puts something empty over the server's own files wherever they could be seen.
fn hide_data(arguments: &mut Arguments, folders: &ThreadFolders) {
    for visible in PROGRAM_FOLDERS.into_iter().chain(["/etc"]) {
        if folders.data().starts_with(visible) {
            cover(arguments, folders.data());
        }
    }
    let Ok(below) = folders.data().strip_prefix(&folders.workspace) else { return };
    // A folder that something is mounted on cannot be renamed. Without this, those on the way could
    // be, and the data folder would lie elsewhere, in sight, for the next line.
    let mut place = Path::new(VIRTUAL_WORKSPACE).to_owned();
    let mut host = folders.workspace.clone();
    for name in below.parent().into_iter().flat_map(Path::components) {
        place.push(name);
        host.push(name);
        arguments.paths("--bind", [&host, &place]);
    }
    cover(arguments, &Path::new(VIRTUAL_WORKSPACE).join(below));
}

/// An empty folder that stays empty.
fn cover(arguments: &mut Arguments, place: &Path) {
    arguments.paths("--tmpfs", [place]);
    arguments.paths("--remount-ro", [place]);
}

/// Puts something empty over a path that only its owner may read.
fn hide(arguments: &mut Arguments, private: &Path) {
    match fs::symlink_metadata(private) {
        Ok(found) if found.is_dir() => arguments.paths("--tmpfs", [private]),
        Ok(found) if found.is_file() => {
            arguments.paths("--ro-bind", [Path::new("/dev/null"), private]);
        }
        Ok(_) | Err(_) => {}
    }
}

struct Arguments(Vec<OsString>);

impl Arguments {
    fn plain(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    fn paths<P: AsRef<Path>, const N: usize>(&mut self, option: &str, paths: [P; N]) {
        self.0.push(option.into());
        self.0.extend(paths.iter().map(|path| path.as_ref().as_os_str().to_owned()));
    }
}
