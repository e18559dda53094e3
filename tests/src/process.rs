//! The command as a process of its own.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStderr, Command},
};

use crate::wait;

/// No command that a test gives takes as long, unless it hangs.
const HANGS_AFTER: Duration = Duration::from_secs(90);

/// The command, with a working folder of its own.
pub struct Remit {
    program: PathBuf,
    folder: tempfile::TempDir,
    /// What stands before the program on the command line.
    before: Vec<String>,
    environment: Vec<(String, String)>,
}

/// What came of a command.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Ended {
    /// Fails unless the exit code is this one.
    #[track_caller]
    pub fn exited(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// Standard output as one JSON value.
    #[track_caller]
    pub fn json(&self) -> Value {
        let parsed = serde_json::from_str(&self.stdout);
        parsed.unwrap_or_else(|error| panic!("{error} in {:?}\n{}", self.stdout, self.stderr))
    }
}

impl Remit {
    /// The command at this path.
    pub fn new(program: &str) -> Self {
        Self {
            program: PathBuf::from(program),
            folder: tempfile::tempdir().unwrap(),
            before: Vec::new(),
            environment: Vec::new(),
        }
    }

    /// The same command, with this variable in its environment.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same command, run by another one: these words stand before it.
    #[must_use]
    pub fn run_by(self, before: Vec<String>) -> Self {
        Self { before, ..self }
    }

    /// Where commands run, and where their data goes.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where the data goes when nothing else is said.
    pub fn data(&self) -> PathBuf {
        self.folder().join("remit-data")
    }

    /// Writes a file into the working folder.
    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder().join(name), text).unwrap();
    }

    /// The command with these words, not yet started. It dies with the test.
    pub fn command<S: AsRef<std::ffi::OsStr>>(&self, words: &[S]) -> Command {
        let program = self.program.as_os_str();
        let mut all =
            self.before.iter().map(AsRef::as_ref).chain([program]).chain(words.iter().map(AsRef::as_ref));
        let mut command = Command::new(all.next().unwrap_or(program));
        command.args(all).current_dir(self.folder()).kill_on_drop(true);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("REMIT_") {
                command.env_remove(name);
            }
        }
        command.envs(self.environment.iter().cloned());
        command.env("NO_COLOR", "1").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the command to its end.
    pub async fn run<S: AsRef<std::ffi::OsStr>>(&self, words: &[S]) -> Ended {
        let output = self.command(words).output();
        let output = wait::within(HANGS_AFTER, "the command", output).await.unwrap();
        Ended {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Starts `remit serve` on a free port and waits until it serves.
    pub async fn serve(&self, more: &[&str]) -> Served {
        self.serve_on("127.0.0.1:0", more).await
    }

    /// Starts `remit serve` on this address and waits until it serves.
    pub async fn serve_on(&self, address: &str, more: &[&str]) -> Served {
        let words = [&["serve", "--listen", address], more].concat();
        let served = Served::started(self.command(&words).spawn().unwrap()).await;
        served.unwrap_or_else(|said| panic!("the server ended: {said:?}"))
    }

    /// Starts `remit serve`, which dies by `kill -9` before its log's commit of this number. `None` when
    /// it died before it served.
    pub async fn serve_until_commit(&self, commit: usize) -> Option<Served> {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.env("REMIT_CRASH_BEFORE_COMMIT", commit.to_string());
        Served::started(command.spawn().unwrap()).await.ok()
    }
}

/// A server as a process.
pub struct Served {
    /// Where it listens.
    pub url: String,
    /// The process.
    pub child: Child,
    /// What it said before it served.
    pub said: Vec<String>,
    /// What it says from then on; held, so that it can go on saying it.
    pub lines: Lines<BufReader<ChildStderr>>,
}

impl Served {
    /// The server, once it serves; what it said, when it ended before that.
    async fn started(mut child: Child) -> Result<Self, Vec<String>> {
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        loop {
            let line = wait::within(HANGS_AFTER, "the server's start", lines.next_line()).await.unwrap();
            let Some(line) = line else { return Err(said) };
            if let Some((_, url)) = line.split_once(" on http://").filter(|_| line.starts_with("serving ")) {
                return Ok(Self { url: format!("http://{}", url.trim()), child, said, lines });
            }
            said.push(line);
        }
    }

    /// Whether the process was killed by `kill -9`; `None` while it runs.
    pub fn was_killed(&mut self) -> Option<bool> {
        let status = self.child.try_wait().unwrap()?;
        Some(std::os::unix::process::ExitStatusExt::signal(&status) == Some(9))
    }

    /// The most memory that the process had at once, in KiB.
    pub fn peak_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id().unwrap())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Ends the process without a word, as a crash does.
    pub async fn crash(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Sends a signal, such as `-TERM`, and waits for the exit code.
    pub async fn stop(mut self, signal: &str) -> Option<i32> {
        let pid = self.child.id().unwrap().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().await.unwrap().success());
        wait::within(HANGS_AFTER, "the server's stop", self.child.wait()).await.unwrap().code()
    }
}
