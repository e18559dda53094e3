//! The ways of keeping a shell line inside the thread's folders, and which of them work here.

use std::{
    ffi::OsStr,
    io::{self, PipeWriter},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use domain::causes::with_causes;

use super::{
    SandboxSettings, ThreadFolders, VIRTUAL_WORKSPACE, bubblewrap, capabilities,
    landlock::{self, Reach},
    limits,
    private_temp::PrivateTemp,
    rewrite, seccomp,
    system::{self, Etc, PROGRAM_FOLDERS, PROGRAM_PATH},
};

/// The environment variable that marks every process of one shell line, so that those that left
/// its process group are found when it ends.
pub(super) const MARK_VARIABLE: &str = "REMIT_SHELL_LINE";

/// How shell lines are kept inside the thread's folders.
#[derive(Debug)]
pub struct Confinement {
    kind: Kind,
    network: bool,
    etc: Etc,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// An own view of the file system; `bwrap` is at this path.
    Bubblewrap(PathBuf),
    /// The system's own files are visible, and what is not allowed is refused.
    Landlock,
    /// Nothing is refused.
    Host,
}

/// No shell line may run here, and what the owner can do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "bash is not available: no confinement works on this machine ({bubblewrap}; {landlock}); install \
     bubblewrap, use a Linux kernel 6.2 or newer with Landlock, or set sandbox.allow_host_bash to true to run \
     commands unconfined, with the server's own log and keys in their reach"
)]
pub struct NoConfinement {
    bubblewrap: String,
    landlock: String,
}

/// A shell line could not be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LaunchFailure {
    #[error("cannot make a temporary folder")]
    Temp(#[source] io::Error),
    #[error("cannot start the shell")]
    Start(#[source] io::Error),
    #[error("cannot take root's capabilities away from the shell")]
    Capabilities(#[source] io::Error),
    #[error("cannot confine the shell with Landlock")]
    Landlock(#[source] ::landlock::RulesetError),
    #[error("cannot take system calls away from the shell")]
    Seccomp(#[source] seccompiler::Error),
    #[error("the thread that starts the shell ended early")]
    ThreadEnded,
    #[error("the sandbox's trial command ended with {0}")]
    Trial(std::process::ExitStatus),
}

/// One shell line, ready to be started.
pub(super) struct Launch<'a> {
    pub(super) folders: &'a ThreadFolders,
    pub(super) temp: &'a PrivateTemp,
    pub(super) line: &'a str,
    pub(super) mark: &'a str,
}

impl Confinement {
    /// The best confinement that works here: bubblewrap, then Landlock with seccomp, then, only
    /// if allowed, the bare host. Each is tried with a real command. Blocks for some milliseconds.
    pub fn probe(settings: SandboxSettings) -> Result<Self, NoConfinement> {
        let etc = Etc::look();
        let network = settings.network;
        let bubblewrap = match Self::try_bubblewrap(network, &etc) {
            Ok(found) => return Ok(found),
            Err(reason) => reason,
        };
        let landlock = match Self::try_landlock(network, &etc) {
            Ok(found) => return Ok(found),
            Err(reason) => reason,
        };
        if settings.allow_host_bash {
            return Ok(Self { kind: Kind::Host, network, etc });
        }
        Err(NoConfinement { bubblewrap, landlock })
    }

    /// The name that is shown: `bubblewrap`, `landlock` or `host`.
    pub fn name(&self) -> &'static str {
        match self.kind {
            Kind::Bubblewrap(_) => "bubblewrap",
            Kind::Landlock => "landlock",
            Kind::Host => "host",
        }
    }

    /// Whether lines can be kept from the server's own files. Landlock cannot take a folder out of
    /// one that it allows, and the bare host allows everything, which its owner asked for.
    pub(crate) fn can_hide_data(&self, folders: &ThreadFolders) -> bool {
        match self.kind {
            Kind::Bubblewrap(_) | Kind::Host => true,
            Kind::Landlock => {
                let mut visible = PROGRAM_FOLDERS.into_iter().chain(["/etc"]).map(Path::new);
                !folders.data().starts_with(&folders.workspace)
                    && !visible.any(|visible| folders.data().starts_with(visible))
            }
        }
    }

    fn try_bubblewrap(network: bool, etc: &Etc) -> Result<Self, String> {
        let program = system::find_program("bwrap").ok_or("bubblewrap: bwrap is not on PATH")?;
        let found = Self { kind: Kind::Bubblewrap(program), network, etc: etc.clone() };
        found.try_out().map_err(|error| format!("bubblewrap: {}", with_causes(&error)))?;
        Ok(found)
    }

    fn try_landlock(network: bool, etc: &Etc) -> Result<Self, String> {
        let found = Self { kind: Kind::Landlock, network, etc: etc.clone() };
        found.try_out().map_err(|error| format!("Landlock: {}", with_causes(&error)))?;
        Ok(found)
    }

    /// Runs `:` in an empty place.
    fn try_out(&self) -> Result<(), LaunchFailure> {
        let temp = PrivateTemp::create().map_err(LaunchFailure::Temp)?;
        let folders = ThreadFolders::of_trial(temp.path());
        let launch = Launch { folders: &folders, temp: &temp, line: ":", mark: "trial" };
        let ended = self.start(&launch, None)?.wait().map_err(LaunchFailure::Start)?;
        if ended.success() { Ok(()) } else { Err(LaunchFailure::Trial(ended)) }
    }

    /// Starts the shell line in its own process group; both its outputs go to the pipe.
    /// `bwrap` dies with the thread that calls this.
    pub(super) fn start(&self, launch: &Launch<'_>, out: Option<PipeWriter>) -> Result<Child, LaunchFailure> {
        let mut command = match &self.kind {
            Kind::Bubblewrap(program) => self.bubblewrap_command(program, launch),
            Kind::Landlock | Kind::Host => host_command(launch),
        };
        command.stdin(Stdio::null()).process_group(0);
        match out {
            Some(out) => {
                command.stderr(out.try_clone().map_err(LaunchFailure::Start)?);
                command.stdout(out);
            }
            None => {
                command.stdout(Stdio::null()).stderr(Stdio::null());
            }
        }
        match self.kind {
            Kind::Bubblewrap(_) | Kind::Host => command.spawn().map_err(LaunchFailure::Start),
            Kind::Landlock => self.start_restricted(launch, &mut command),
        }
    }

    fn bubblewrap_command(&self, program: &Path, launch: &Launch<'_>) -> Command {
        let mut command = Command::new(program);
        command.args(bubblewrap::arguments(launch.folders, &self.etc, self.network));
        command.arg(system::shell()).args(limits::arguments(launch.line.as_ref()));
        set_environment(&mut command, Path::new(VIRTUAL_WORKSPACE), Path::new("/tmp"), launch.mark);
        command
    }

    /// Restricts a thread of its own, which starts the process and ends; the process inherits.
    fn start_restricted(&self, launch: &Launch<'_>, command: &mut Command) -> Result<Child, LaunchFailure> {
        let mut folders: Vec<PathBuf> =
            launch.folders.roots().into_iter().map(|(_, host)| host.to_owned()).collect();
        folders.push(launch.temp.path().to_owned());
        let reach = Reach { etc: &self.etc, folders: &folders, network: self.network };
        let restricted = || {
            capabilities::restrict_this_thread().map_err(LaunchFailure::Capabilities)?;
            landlock::restrict_this_thread(&reach).map_err(LaunchFailure::Landlock)?;
            seccomp::restrict_this_thread(self.network).map_err(LaunchFailure::Seccomp)?;
            command.spawn().map_err(LaunchFailure::Start)
        };
        std::thread::scope(|scope| {
            std::thread::Builder::new()
                .name("confined-start".to_owned())
                .spawn_scoped(scope, restricted)
                .map_err(LaunchFailure::Start)?
                .join()
                .map_err(|_| LaunchFailure::ThreadEnded)?
        })
    }
}

/// The host's own paths stand where the agent wrote virtual ones.
fn host_command(launch: &Launch<'_>) -> Command {
    let [workspace, uploads, outputs] = launch.folders.roots();
    let names = [workspace, uploads, outputs, ("/tmp", launch.temp.path())];
    let mut command = Command::new(system::shell());
    command.args(limits::arguments(rewrite::with_host_paths(launch.line, &names).as_ref()));
    command.current_dir(&launch.folders.workspace);
    set_environment(&mut command, &launch.folders.workspace, launch.temp.path(), launch.mark);
    command
}

/// Nothing of the server's own environment, where its secrets are.
fn set_environment(command: &mut Command, home: &Path, temp: &Path, mark: &str) {
    command.env_clear().envs([
        ("PATH", OsStr::new(PROGRAM_PATH)),
        ("HOME", home.as_os_str()),
        ("TMPDIR", temp.as_os_str()),
        ("LANG", OsStr::new("C.UTF-8")),
        ("TERM", OsStr::new("dumb")),
        (MARK_VARIABLE, OsStr::new(mark)),
    ]);
}

#[cfg(test)]
impl Confinement {
    /// Everything that works here, for tests that must hold under each.
    pub(crate) fn all_available() -> Vec<Self> {
        let etc = Etc::look();
        let found = [Self::try_bubblewrap(false, &etc), Self::try_landlock(false, &etc)];
        let mut found: Vec<Self> = found.into_iter().flatten().collect();
        found.push(Self { kind: Kind::Host, network: false, etc });
        found
    }
}
