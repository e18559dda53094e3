//! The parts of this machine that every shell line may read: programs, libraries and what anybody
//! may read of `/etc`.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// Folders of programs and libraries. Those that are missing are left out.
pub(super) const PROGRAM_FOLDERS: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store"];

/// Devices that hold nothing.
pub(super) const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// What `/proc` tells of the machine as a whole. The rest tells of processes, with the command
/// lines of everybody's.
pub(super) const PROCESS_INFORMATION: [&str; 8] = [
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys",
    "/proc/uptime",
    "/proc/version",
];

/// Where programs are looked for.
pub(super) const PROGRAM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How deep `/etc` is searched for what is private; deeper things go with their folder.
const ETC_DEPTH: usize = 3;

/// `/etc`, parted by whether anybody may read it. A server that runs as root could read all.
#[derive(Debug, Clone, Default)]
pub(super) struct Etc {
    pub(super) readable: Vec<PathBuf>,
    pub(super) private: Vec<PathBuf>,
}

impl Etc {
    pub(super) fn look() -> Self {
        let mut etc = Self::default();
        etc.part(Path::new("/etc"), ETC_DEPTH);
        etc
    }

    /// Adds the children of a folder; a folder with something private in it is taken apart.
    fn part(&mut self, folder: &Path, depth: usize) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            let path = entry.path();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if !is_world_readable(&path) {
                self.private.push(path);
            } else if !is_folder || depth == 1 {
                self.readable.push(path);
            } else {
                let mut inside = Self::default();
                inside.part(&path, depth - 1);
                if inside.private.is_empty() {
                    self.readable.push(path);
                } else {
                    self.readable.append(&mut inside.readable);
                    self.private.append(&mut inside.private);
                }
            }
        }
    }
}

fn is_world_readable(path: &Path) -> bool {
    const OTHERS_READ: u32 = 0o004;
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & OTHERS_READ != 0)
}

/// The shell that runs the lines: bash, or the plain one where there is no bash.
pub(super) fn shell() -> &'static str {
    ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"]
        .into_iter()
        .find(|program| Path::new(program).is_file())
        .unwrap_or("/bin/sh")
}

/// A program on the server's own `PATH`, by its absolute place.
pub(super) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}
