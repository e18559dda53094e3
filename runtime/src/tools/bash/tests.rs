use std::{
    fs,
    net::TcpListener,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use domain::{
    ids::{RunId, ThreadId},
    limits::TOOL_OUTPUT_CHARS_MAX,
};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{super::tests::Place, *};
use crate::{
    sandbox::{Confinement, end_leftovers, mark_of_data},
    tool_work::ToolWork,
};

/// How long something may take that should be quick, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// One place per confinement that works here.
fn places() -> Vec<(Place, &'static str)> {
    let places: Vec<_> = Confinement::all_available()
        .into_iter()
        .map(|confinement| {
            let name = confinement.name();
            let mut place = Place::new();
            place.context.confinement = Some(Arc::new(confinement));
            (place, name)
        })
        .collect();
    assert!(places.iter().any(|(_, name)| *name == "host"));
    places
}

/// The places that are really confined; says so when there are none.
fn confined_places() -> Vec<(Place, &'static str)> {
    let mut places = places();
    places.retain(|(_, name)| *name != "host");
    if places.is_empty() {
        eprintln!("skipped: neither bubblewrap nor Landlock works on this machine");
    }
    places
}

/// Numbers of live processes whose command line holds the text.
fn processes_with(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if line.windows(text.len()).any(|window| window == text.as_bytes()) {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    found
}

async fn wait_until(what: &str, is_true: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_true() {
        assert!(started.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        tokio::task::yield_now().await;
    }
}

/// A number of seconds that no other test sleeps.
fn unusual_seconds(tag: u32) -> String {
    format!("6{tag}.{}", std::process::id())
}

#[tokio::test]
async fn a_line_runs_in_the_workspace_and_its_exit_code_is_told() {
    for (place, name) in places() {
        let check = async |command: &str, text: &str, outcome: ToolOutcome| {
            let output = place.call("bash", json!({"command": command, "description": "try"})).await;
            assert_eq!((output.text.as_str(), output.outcome), (text, outcome), "{name}: {command}");
        };
        check("echo hello; echo oops >&2", "hello\noops\n", ToolOutcome::Ok).await;
        check("printf one > f.txt && cat f.txt", "one", ToolOutcome::Ok).await;
        check("true", "(no output)", ToolOutcome::Ok).await;
        check("false", "\n(exit code 1)", ToolOutcome::Error).await;
        check("echo no; exit 3", "no\n\n(exit code 3)", ToolOutcome::Error).await;
        check("kill -9 $$", "\n(exit code 137)", ToolOutcome::Error).await;
        check("cat", "(no output)", ToolOutcome::Ok).await;
        check("pwd", "/mnt/user-data/workspace\n", ToolOutcome::Ok).await;
        check("echo $HOME $TERM", "/mnt/user-data/workspace dumb\n", ToolOutcome::Ok).await;
        assert_eq!(fs::read_to_string(place.context.folders.workspace.join("f.txt")).unwrap(), "one");
    }
}

#[tokio::test]
async fn virtual_paths_work_under_each_confinement() {
    for (mut place, name) in places() {
        let elsewhere = tempfile::TempDir::new().unwrap();
        let own = elsewhere.path().join("mein 'Ordner' $x");
        fs::create_dir(&own).unwrap();
        place.context.folders = place.context.folders.clone().with_workspace(&own).unwrap();
        let check = async |command: &str, text: &str| {
            let output = place.call("bash", json!({"command": command})).await;
            assert_eq!((output.text.as_str(), output.outcome), (text, ToolOutcome::Ok), "{name}: {command}");
        };
        check("echo 1 > /mnt/user-data/workspace/a.txt; cat a.txt", "1\n").await;
        check("cat \"/mnt/user-data/workspace/a.txt\" '/mnt/user-data/workspace/a.txt'", "1\n1\n").await;
        check(
            "cd /mnt/user-data/outputs && pwd && echo 2 > b && cat /mnt/user-data/outputs/b",
            "/mnt/user-data/outputs\n2\n",
        )
        .await;
        check("find /mnt/user-data/workspace -type f", "/mnt/user-data/workspace/a.txt\n").await;
        check("ls /mnt/user-data/uploads", "(no output)").await;
        check("echo t > /tmp/t && cat $TMPDIR/t && ls /tmp", "t\nt\n").await;
        check("cat < <(echo substituted)", "substituted\n").await;
        assert!(place.context.folders.outputs.join("b").is_file() && own.join("a.txt").is_file());
    }
}

#[tokio::test]
async fn the_servers_environment_stays_with_the_server() {
    for (place, name) in places() {
        let output = place.call("bash", json!({"command": "env | sort"})).await;
        for (variable, _) in std::env::vars() {
            let is_ours = ["PATH", "HOME", "TERM", "LANG", "PWD", "SHLVL", "_", "TMPDIR", "OLDPWD"];
            assert!(
                is_ours.contains(&variable.as_str()) || !output.text.contains(&format!("\n{variable}=")),
                "{name}: {variable} in {}",
                output.text
            );
        }
    }
}

// Field report 94: 50 MB of output have one clear outcome.
#[tokio::test]
async fn fifty_megabytes_are_bounded_counted_and_hashed() {
    let (place, _) = places().remove(0);
    let length = 50_000_000;
    let command = format!("head -c {length} /dev/zero | tr '\\0' x; echo END");
    let output = place.call("bash", json!({"command": command})).await;
    assert_eq!((output.outcome, output.is_truncated), (ToolOutcome::Ok, true), "{:.200}", output.text);
    assert_eq!(output.output_bytes, length + 4);
    let mut hash = Sha256::new();
    for _ in 0..length / 1_000_000 {
        hash.update([b'x'; 1_000_000]);
    }
    hash.update("END\n");
    assert_eq!(output.output_sha256, hex::encode(hash.finalize()));
    assert!(output.text.starts_with("xxx") && output.text.ends_with("xEND\n"));
    assert!(output.text.contains("49989004 characters left out"));
    assert!(output.text.chars().count() <= TOOL_OUTPUT_CHARS_MAX);
}

#[tokio::test]
async fn what_is_no_text_is_shown_as_far_as_it_can_be() {
    for (place, name) in places() {
        let output = place.call("bash", json!({"command": r"printf 'a\377b'"})).await;
        assert_eq!((output.text.as_str(), output.output_bytes), ("a\u{FFFD}b", 3), "{name}");
    }
}

// Field report 14: what times out is really gone.
#[tokio::test]
async fn a_timeout_ends_every_process_of_the_line() {
    for (mut place, name) in places() {
        place.context.bash_timeout = Duration::from_millis(700);
        let nap = unusual_seconds(1);
        let started = Instant::now();
        // One in the background, one in a group and one in a session of its own.
        let command =
            format!("echo begun; sleep {nap} & timeout 100 sleep {nap} & setsid sleep {nap} & sleep {nap}");
        let output = place.call("bash", json!({"command": command})).await;
        assert_eq!(output.outcome, ToolOutcome::Error, "{name}");
        assert!(output.text.starts_with("Error: the command was stopped after 0.7 s"), "{}", output.text);
        assert!(output.text.ends_with("begun\n"), "{}", output.text);
        assert!(started.elapsed() < PATIENCE, "{name}: {:?}", started.elapsed());
        wait_until("processes are gone", || processes_with(&nap).is_empty()).await;
    }
}

#[tokio::test]
async fn cancelling_ends_every_process_of_the_line_within_a_second() {
    for (place, name) in places() {
        let nap = unusual_seconds(2);
        let command = json!({"command": format!("sleep {nap} & sleep {nap}; echo never")});
        let cancel = async {
            wait_until("both sleep", || processes_with(&format!("sleep\0{nap}")).len() >= 2).await;
            place.context.cancel.cancel();
            Instant::now()
        };
        let (output, cancelled_at) = tokio::join!(place.call("bash", command), cancel);
        assert!(cancelled_at.elapsed() < Duration::from_secs(1), "{name}: {:?}", cancelled_at.elapsed());
        assert_eq!(output.outcome, ToolOutcome::Error, "{name}");
        assert!(output.text.starts_with("Error: the command was cancelled"), "{}", output.text);
        wait_until("processes are gone", || processes_with(&nap).is_empty()).await;
    }
}

#[tokio::test]
async fn dropping_the_call_ends_every_process_of_the_line() {
    for (mut place, _) in places() {
        let (work, nap) = (ToolWork::default(), unusual_seconds(3));
        let (thread, run) = (ThreadId::new("t").unwrap(), RunId::new("r").unwrap());
        place.context = place.context.listed_in(work.of(&thread, &run));
        let command = json!({"command": format!("sleep {nap} & timeout 99 sleep {nap} & sleep {nap}")});
        tokio::select! {
            _ = place.call("bash", command) => panic!("the line is not over"),
            () = wait_until("all sleep", || processes_with(&format!("sleep\0{nap}")).len() >= 4) => {}
        }
        // Whoever waits for the call's work to end, as an erasure does, finds no process any more.
        tokio::time::timeout(PATIENCE, work.ended(|_, _| true)).await.expect("the work ends");
        assert_eq!(processes_with(&format!("sleep\0{nap}")), Vec::<String>::new());
        wait_until("processes are gone", || processes_with(&nap).is_empty()).await;
    }
}

/// A process as a line of a server of this folder has started it.
fn left_behind(data: &Path, nap: &str) -> std::process::Child {
    let mark = format!("{}x", mark_of_data(&fs::canonicalize(data).unwrap()));
    let process = std::process::Command::new("sleep").arg(nap).env("REMIT_SHELL_LINE", mark).spawn().unwrap();
    // Whoever has only just begun to be another program has no environment for a moment.
    let environment = format!("/proc/{}/environ", process.id());
    let started = Instant::now();
    while fs::read(&environment).unwrap_or_default().is_empty() {
        assert!(started.elapsed() < PATIENCE, "no environment within {PATIENCE:?}");
        std::thread::yield_now();
    }
    process
}

// What a server that died has left at work is ended by the next one of its folder, and by no other.
#[test]
fn what_was_left_behind_is_ended_for_its_own_folder() {
    let (one, other) = (tempfile::TempDir::new().unwrap(), tempfile::TempDir::new().unwrap());
    let nap = unusual_seconds(5);
    let mut of_one = left_behind(one.path(), &nap);
    let mut of_other = left_behind(other.path(), &nap);
    assert_eq!(end_leftovers(&one.path().join("nowhere")), 0);
    assert_eq!(end_leftovers(one.path()), 1);
    assert_eq!(of_one.wait().unwrap().code(), None, "a signal ended it");
    assert_eq!(of_other.try_wait().unwrap(), None);
    assert_eq!((end_leftovers(one.path()), end_leftovers(other.path())), (0, 1));
    of_other.wait().unwrap();
}

#[tokio::test]
async fn a_process_in_the_background_neither_holds_up_the_call_nor_outlives_it() {
    for (place, name) in places() {
        let nap = unusual_seconds(4);
        let started = Instant::now();
        let output = place.call("bash", json!({"command": format!("sleep {nap} & echo done")})).await;
        assert_eq!((output.text.as_str(), output.outcome), ("done\n", ToolOutcome::Ok), "{name}");
        assert!(started.elapsed() < PATIENCE, "{name}: {:?}", started.elapsed());
        wait_until("processes are gone", || processes_with(&nap).is_empty()).await;
    }
}

#[tokio::test]
async fn temporary_files_are_gone_afterwards() {
    for (place, name) in places() {
        place.call("bash", json!({"command": "echo x > /tmp/remains"})).await;
        let output = place.call("bash", json!({"command": "cat /tmp/remains 2>/dev/null"})).await;
        assert_eq!(output.outcome, ToolOutcome::Error, "{name}: {}", output.text);
    }
}

#[tokio::test]
async fn confined_lines_reach_nothing_outside_the_folders() {
    for (place, name) in confined_places() {
        let outside = tempfile::TempDir::new().unwrap();
        let secret = outside.path().join("secret");
        fs::write(&secret, "hidden").unwrap();
        let secret = secret.to_str().unwrap();
        let pid = std::process::id();
        // The shell would put the private folder in the place of a literal /tmp.
        let (parent, rest) = secret.split_at(2);
        let secret_word = format!("{parent}''{rest}");
        let refused = async |command: &str| {
            let output = place.call("bash", json!({"command": command})).await;
            assert_eq!(output.outcome, ToolOutcome::Error, "{name}: {command} gave {}", output.text);
            assert!(!output.text.contains("hidden"), "{name}: {command} gave {}", output.text);
        };
        refused(&format!("cat {secret_word}")).await;
        refused(&format!("echo changed > {secret_word}")).await;
        refused(&format!("rm {secret_word}")).await;
        refused(&format!("ln {secret_word} here && cat here")).await;
        refused(&format!("ln -s {secret_word} link; cat link")).await;
        refused(&format!("mv {secret_word} moved")).await;
        refused("ls /root").await;
        refused("ls /home").await;
        refused("cat /etc/shadow").await;
        refused("echo x > /etc/remit-test").await;
        refused("echo x > /usr/remit-test").await;
        refused("touch /remit-test").await;
        refused(&format!("cat /proc/{pid}/environ | grep -a .")).await;
        refused(&format!("ls /proc/{pid}/root/")).await;
        refused(&format!("kill -0 {pid}")).await;
        refused("mknod device b 8 0").await;
        refused("mount -t tmpfs none .").await;
        if name == "landlock" {
            // Inside bubblewrap a namespace in the namespace reaches nothing more.
            refused("unshare -r true").await;
        }
        assert_eq!(fs::read_to_string(secret).unwrap(), "hidden");
        assert!(!Path::new("/etc/remit-test").exists() && !Path::new("/remit-test").exists());
    }
}

#[tokio::test]
async fn confined_lines_have_no_network() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = json!({"command": format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected")});
    for (place, name) in places() {
        let output = place.call("bash", connect.clone()).await;
        let is_connected = output.text.contains("connected\n");
        // On the bare host it works, so that the test could fail.
        assert_eq!(is_connected, name == "host", "{name}: {}", output.text);
    }
}

/// A thread whose workspace contains the data folder, `below` it, with a secret in it.
fn around_data(place: &mut Place, below: &str) -> tempfile::TempDir {
    let own = tempfile::TempDir::new().unwrap();
    let data = own.path().join(below);
    let thread = domain::ids::ThreadId::new("t").unwrap();
    let folders = crate::sandbox::ThreadFolders::create(&data, &thread).unwrap();
    fs::write(data.join("log"), "hidden").unwrap();
    fs::write(own.path().join("mine.txt"), "seen").unwrap();
    place.context.folders = folders.with_workspace(own.path()).unwrap();
    own
}

#[tokio::test]
async fn confined_lines_do_not_reach_a_data_folder_in_the_workspace() {
    for (mut place, name) in confined_places() {
        let own = around_data(&mut place, "a/b/data");
        let call = async |command: &str| place.call("bash", json!({"command": command})).await;
        if name == "landlock" {
            let output = call("cat mine.txt").await;
            assert_eq!(output.outcome, ToolOutcome::Denied, "{}", output.text);
            assert!(output.text.contains("data folder"), "{}", output.text);
            continue;
        }
        assert_eq!(call("cat mine.txt; ls a/b/data").await.text, "seen");
        assert_eq!(
            call("echo 1 > /mnt/user-data/outputs/o; echo 2 > a/b/new; ls a/b").await.text,
            "data\nnew\n"
        );
        for command in [
            "cat a/b/data/log",
            "cat /mnt/user-data/workspace/a/b/data/log",
            "echo changed > a/b/data/log",
            "rm a/b/data/log",
            "mkdir a/b/data/new",
            "rm -rf a/b/data",
            "mv a/b/data moved",
            "mv a/b moved && cat moved/data/log",
            "mv a moved && cat moved/b/data/log",
            "umount a/b/data",
            "mount -t tmpfs none a",
            "ln -s a/b/data link; cat link/log",
        ] {
            let output = call(command).await;
            assert_eq!(output.outcome, ToolOutcome::Error, "{command}: {}", output.text);
            assert!(!output.text.contains("hidden"), "{command}: {}", output.text);
        }
        call("grep -r hidden . ; rm -rf a *").await;
        assert_eq!(fs::read_to_string(own.path().join("a/b/data/log")).unwrap(), "hidden");
        assert_eq!(fs::read_to_string(place.context.folders.outputs.join("o")).unwrap(), "1\n");
    }
}

#[tokio::test]
async fn confined_lines_see_the_processes_of_nobody_else() {
    for (place, name) in confined_places() {
        let output = place.call("bash", json!({"command": "cat /proc/[0-9]*/cmdline 2>/dev/null"})).await;
        let ours = std::env::args().next().unwrap();
        assert!(!output.text.contains(&ours), "{name}: {}", output.text);
        let output = place
            .call("bash", json!({"command": "head -c 3 /proc/cpuinfo && nproc >&2 && ls /proc/sys >&2"}));
        assert_eq!(output.await.outcome, ToolOutcome::Ok, "{name}");
    }
}

#[tokio::test]
async fn a_process_is_held_to_its_limits() {
    for (place, name) in places() {
        let call = async |command: &str| place.call("bash", json!({"command": command})).await;
        let output = call("dd if=/dev/zero of=/dev/null bs=5G count=1").await;
        assert!(output.text.contains("memory exhausted"), "{name}: {}", output.text);
        let output = call("ulimit -c; ulimit -Hd; ulimit -Hv; ulimit -Hf; ulimit -Hu").await;
        let lines: Vec<_> = output.text.lines().collect();
        assert_eq!(lines.get(..4).unwrap(), ["0", "4194304", "16777216", "4194304"], "{name}");
        assert!(lines.last().unwrap().parse::<usize>().is_ok_and(|most| most > 1_024), "{name}: {lines:?}");
        let output = call("ulimit -d unlimited").await;
        // Root may raise its limits on the bare host; the powers that it takes are not in a sandbox.
        assert!(output.outcome == ToolOutcome::Error || name == "host", "{name}: {}", output.text);
        let output = call("truncate -s 5G big").await;
        assert_eq!(output.outcome, ToolOutcome::Error, "{name}: {}", output.text);
    }
}

#[tokio::test]
async fn a_line_with_too_many_processes_is_stopped() {
    for (place, name) in places() {
        let nap = unusual_seconds(5);
        let command = format!("echo begun; for i in $(seq 1500); do sleep {nap} & done 2>/dev/null; wait");
        let output = place.call("bash", json!({"command": command})).await;
        assert_eq!(output.outcome, ToolOutcome::Error, "{name}: {}", output.text);
        let is_root = rustix::process::geteuid().is_root();
        assert!(!is_root || output.text.contains("more than 1024 processes"), "{name}: {}", output.text);
        wait_until("processes are gone", || processes_with(&nap).is_empty()).await;
    }
}
