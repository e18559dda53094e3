//! A small disk of its own, in a namespace that lasts as long as somebody holds it.

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// What fills a disk until somebody removes it.
const BALLAST: &str = "ballast";

/// A file system in memory that only processes in its namespace see under its folder.
pub struct Volume {
    holder: Child,
    folder: PathBuf,
}

impl Volume {
    /// A disk of this size at a folder that exists. None where the system has no such namespaces for us.
    pub fn mount(folder: &Path, mebibytes: u64) -> Option<Self> {
        let mount = "mount -t tmpfs -o size=\"$1\" tmpfs \"$2\" && echo mounted && exec cat";
        let mut holder = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh", &format!("{mebibytes}m")])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut said = String::new();
        BufReader::new(holder.stdout.take()?).read_line(&mut said).ok()?;
        if said.trim() != "mounted" {
            holder.kill().and_then(|()| holder.wait()).ok()?;
            return None;
        }
        Some(Self { holder, folder: folder.to_owned() })
    }

    /// The words that run a command where the disk is seen, beside it.
    pub fn words_before(&self) -> Vec<String> {
        let target = self.holder.id().to_string();
        let beside = self.folder.parent().unwrap_or(&self.folder).display().to_string();
        // A working folder that was entered before the namespace does not see the disk.
        let enter = ["nsenter", "--preserve-credentials", "--user", "--mount", "--target", &target, "--"];
        let there = ["sh", "-c", "cd \"$0\" && exec \"$@\"", &beside];
        enter.into_iter().chain(there).map(str::to_owned).collect()
    }

    /// Runs a shell line where the disk is seen, in its folder, and gives what it printed.
    #[track_caller]
    pub fn sh(&self, line: &str) -> String {
        let words = self.words_before();
        let line = format!("cd \"$1\" && {line}");
        let output = Command::new(&words[0])
            .args(&words[1..])
            .args(["sh", "-c", &line, "sh"])
            .arg(&self.folder)
            .output()
            .unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Fills the disk but for so many mebibytes.
    pub fn fill(&self, left_mebibytes: u64) {
        let free: u64 = self.sh("df --output=avail --block-size=1M . | tail -n 1").trim().parse().unwrap();
        let bytes = free.saturating_sub(left_mebibytes) * 1024 * 1024;
        self.sh(&format!("fallocate --length {bytes} {BALLAST}"));
    }

    /// Fills the disk to the last block.
    pub fn fill_up(&self) {
        self.sh(&format!("dd if=/dev/zero of={BALLAST} bs=64k 2>&1 || true"));
    }

    /// Makes room again.
    pub fn empty(&self) {
        self.sh(&format!("rm {BALLAST}"));
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        // The namespace ends with its last process.
        drop(self.holder.kill());
        drop(self.holder.wait());
    }
}
