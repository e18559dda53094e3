//! The tools of the log as commands: verifying, backing up, restoring, and the doctor.

use std::{fs, path::PathBuf};

use serde_json::Value;
use tests::process::Remit;

use super::remit;

/// A folder with one run in it.
async fn filled() -> Remit {
    let remit = remit();
    remit.run(&["run", "Look at the files here"]).await.exited(0);
    remit
}

async fn json(remit: &Remit, words: &[&str]) -> Value {
    remit.run(&[words, &["--json"]].concat()).await.exited(0).json()
}

// Field reports 75, 77 and 103.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_is_verified_backed_up_and_restored() {
    let remit = filled().await;
    let early = remit.run(&["verify", "--head"]).await.exited(0);
    remit.write("early.json", &early.stdout);
    let backup = json(&remit, &["backup", "--out", "backup"]).await;
    assert_eq!((&backup["position"], &backup["chain"]), (&early.json()["position"], &early.json()["chain"]));
    let ledger = json(&remit, &["ledger"]).await;
    let runs = json(&remit, &["runs"]).await;

    remit.run(&["run", "Look again"]).await.exited(0);
    let verified = json(&remit, &["verify", "--against", "early.json"]).await;
    assert_eq!((&verified["whole"], &verified["position"]), (&true.into(), &verified["events"]));
    let late = remit.run(&["verify", "--head"]).await.exited(0);
    remit.write("late.json", &late.stdout);
    let shown = remit.run(&["verify"]).await.exited(0);
    for word in ["EVENTS", "STREAMS", "COMMITS", "HEAD", "TIME", "SPEED", verified["chain"].as_str().unwrap()]
    {
        assert!(shown.stdout.contains(word), "{}", shown.stdout);
    }

    let restored = json(&remit, &["restore", "backup", "--data", "restored"]).await;
    assert_eq!(restored["position"], backup["position"]);
    // Views of a later log are noticed and made again.
    copy_folder(&remit.data().join("views"), &remit.folder().join("restored/views"));
    assert_eq!(json(&remit, &["ledger", "--data", "restored"]).await, ledger);
    assert_eq!(json(&remit, &["runs", "--data", "restored"]).await, runs);
    remit.run(&["verify", "--data", "restored", "--against", "early.json"]).await.exited(0);
    remit.run(&["verify", "backup"]).await.exited(0);

    // A removed tail is noticed, in the folder and in the backup.
    for subject in [&["--data", "restored"] as &[&str], &["backup"]] {
        let words = [&["verify", "--against", "late.json"], subject].concat();
        let noticed = remit.run(&words).await.exited(5);
        assert!(noticed.stderr.contains("had reached position"), "{}", noticed.stderr);
        assert!(noticed.stderr.contains("hint: "), "{}", noticed.stderr);
        let told = remit.run(&[&words[..], &["--json"]].concat()).await.exited(5).json();
        assert_eq!(told["whole"], false);
        assert_eq!(told["damage"]["position"], backup["position"].as_u64().unwrap() + 1);
    }

    // A second backup into the same folder adds what is new; another folder is not touched.
    let again = json(&remit, &["backup", "--out", "backup"]).await;
    assert!(again["position"].as_u64() > backup["position"].as_u64(), "{again}");
    remit.run(&["verify", "backup", "--against", "late.json"]).await.exited(0);
    remit.run(&["backup", "--out", "restored"]).await.exited(4);
    remit.run(&["restore", "backup", "--data", "restored"]).await.exited(4);
    remit.run(&["restore", "nowhere", "--data", "new"]).await.exited(3);
    remit.run(&["verify", "--against", "nowhere.json"]).await.exited(3);
    remit.run(&["verify", "--data", "nowhere"]).await.exited(3);
    let record = remit.folder().join("backup/segments/0000000000000000.seg");
    let bytes = fs::read(&record).unwrap();
    fs::write(&record, &bytes[..bytes.len() - 1]).unwrap();
    let cut = remit.run(&["restore", "backup", "--data", "new"]).await.exited(5);
    assert!(cut.stderr.contains(".seg of the backup is damaged"), "{}", cut.stderr);
    assert!(!remit.folder().join("new").exists());
}

fn copy_folder(from: &std::path::Path, to: &std::path::Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// The segment that a small log is in.
fn segment(remit: &Remit) -> PathBuf {
    remit.data().join("log/segments/0000000000000000.seg")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_says_what_is_wrong_and_cuts_what_was_never_acknowledged() {
    let remit = filled().await;
    let ledger = json(&remit, &["ledger"]).await;
    let healthy = json(&remit, &["doctor"]).await;
    assert_eq!((&healthy["healthy"], &healthy["repaired"]), (&true.into(), &Value::Null));

    let whole = fs::read(segment(&remit)).unwrap();
    let end = whole.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    // The beginning of a commit that was never acknowledged.
    let mut torn = whole.clone();
    torn[end..end + 15].copy_from_slice(b"RMTFRAME\0\x01\0\0\0\0\x09");
    fs::write(segment(&remit), &torn).unwrap();
    let told = remit.run(&["doctor"]).await.exited(0);
    assert!(
        told.stdout.contains("a torn end of 15 B") && told.stdout.contains("--repair"),
        "{}",
        told.stdout
    );
    let unasked = remit.run(&["doctor", "--repair"]).await.exited(4);
    assert!(unasked.stderr.contains("15 bytes behind them go"), "{}", unasked.stderr);
    assert!(unasked.stderr.contains("--yes"), "{}", unasked.stderr);
    assert_eq!(fs::read(segment(&remit)).unwrap(), torn);
    let repaired = json(&remit, &["doctor", "--repair", "--yes"]).await;
    assert_eq!((&repaired["healthy"], &repaired["repaired"]["cut_bytes"]), (&true.into(), &15.into()));
    assert_eq!(
        fs::read(repaired["repaired"]["kept"].as_str().map(|kept| remit.folder().join(kept)).unwrap())
            .unwrap(),
        torn[end..end + 15]
    );
    assert_eq!(json(&remit, &["ledger"]).await, ledger);

    // What was acknowledged is never cut.
    let cut = fs::read(segment(&remit)).unwrap();
    assert_eq!(cut, whole);
    let mut lost_end = cut.clone();
    lost_end[end - 3..end].fill(0);
    fs::write(segment(&remit), &lost_end).unwrap();
    let lost = remit.run(&["doctor"]).await.exited(5);
    assert!(lost.stdout.contains("events are lost") && lost.stdout.contains("restore"), "{}", lost.stdout);
    remit.run(&["doctor", "--repair", "--yes"]).await.exited(5);
    remit.run(&["verify"]).await.exited(5);
    remit.run(&["ledger"]).await.exited(5);
    assert_eq!(fs::read(segment(&remit)).unwrap(), lost_end);
    fs::write(segment(&remit), &cut).unwrap();

    let served = remit.serve(&[]).await;
    let held = remit.run(&["doctor", "--json"]).await.exited(4).json();
    let checks = held["checks"].as_array().unwrap();
    let found = |check: &str| checks.iter().find(|one| one["check"] == check).unwrap();
    assert_eq!((&found("lock")["state"], &found("server")["state"]), (&"problem".into(), &"ok".into()));
    remit.run(&["verify"]).await.exited(4);
    remit.run(&["backup", "--out", "backup"]).await.exited(4);
    served.crash().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn measuring_leaves_nothing_behind() {
    let remit = remit();
    let words = ["bench", "append", "--seconds", "1", "--writers", "2"];
    let measured = json(&remit, &words).await;
    for name in ["events_per_second", "p50_us", "p99_us", "syncs_per_second"] {
        assert!(measured[name].as_f64().unwrap() > 0.0, "{measured}");
    }
    assert!(measured["raw"]["events_per_second"].as_f64().unwrap() > 0.0, "{measured}");
    assert_eq!((&measured["writers"], &measured["batch"]), (&2.into(), &1.into()));
    assert_eq!(fs::read_dir(remit.folder()).unwrap().count(), 0);
    remit.run(&["bench", "append", "--batch", "0"]).await.exited(2);
    remit.run(&["bench", "append", "--batch", "1000000"]).await.exited(2);
}
