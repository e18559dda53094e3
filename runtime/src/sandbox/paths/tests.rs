use std::os::unix::fs::symlink;

use domain::ids::ThreadId;
use tempfile::TempDir;

use super::*;

/// A thread's folders beside a place that is out of bounds.
fn folders() -> (TempDir, ThreadFolders) {
    let data = TempDir::new().unwrap();
    let folders = ThreadFolders::create(data.path(), &ThreadId::new("t").unwrap()).unwrap();
    fs::create_dir_all(folders.workspace.join("a/b")).unwrap();
    fs::write(folders.workspace.join("a/file.txt"), "x").unwrap();
    fs::create_dir(folders.workspace.join("mit Leerzeichen")).unwrap();
    fs::write(folders.outputs.join("out.txt"), "x").unwrap();
    fs::create_dir(data.path().join("elsewhere")).unwrap();
    symlink("/etc", folders.workspace.join("etc")).unwrap();
    symlink("/etc/passwd", folders.workspace.join("passwd")).unwrap();
    symlink("/usr", folders.workspace.join("a/up")).unwrap();
    symlink("/usr/no-such-file", folders.workspace.join("dangling")).unwrap();
    symlink(data.path().join("elsewhere"), folders.workspace.join("server")).unwrap();
    symlink("loop", folders.workspace.join("loop")).unwrap();
    symlink(&folders.outputs, folders.workspace.join("results")).unwrap();
    symlink("a/file.txt", folders.workspace.join("inside")).unwrap();
    (data, folders)
}

#[test]
fn paths_inside_are_found_whether_they_exist_or_not() {
    let (_data, folders) = folders();
    let check = |given: &str, shown: &str| {
        let resolved = folders.resolve(given).unwrap_or_else(|error| panic!("{given}: {error}"));
        assert_eq!(resolved.shown, shown, "{given}");
        assert_eq!(folders.resolve(shown).unwrap(), resolved, "what is shown for {given} leads there");
    };
    check(".", ".");
    check("a/file.txt", "a/file.txt");
    check("./a//b/", "a/b");
    check("a/../a/file.txt", "a/file.txt");
    check("/mnt/user-data/workspace", ".");
    check("/mnt/user-data/workspace/a/file.txt", "a/file.txt");
    check("/mnt/user-data/outputs/out.txt", "/mnt/user-data/outputs/out.txt");
    check("/mnt/user-data/uploads", "/mnt/user-data/uploads");
    check("../outputs/out.txt", "/mnt/user-data/outputs/out.txt");
    check("results/out.txt", "/mnt/user-data/outputs/out.txt");
    check("inside", "a/file.txt");
    check("new/deep/file", "new/deep/file");
    check("mit Leerzeichen/ä 漢.txt", "mit Leerzeichen/ä 漢.txt");
    check(" leading", " leading");
    check("...", "...");
    check("-rf", "-rf");
}

#[test]
fn paths_that_lead_outside_are_refused_without_a_word_about_this_machine() {
    let (data, folders) = folders();
    let check = |given: &str, reason: PathRefusal| {
        let refused = folders.resolve(given).expect_err(given);
        assert_eq!(refused.reason, reason, "{given}");
        let text = refused.to_string();
        assert!(text.contains("/mnt/user-data/outputs") && text.len() < 600, "{text}");
        let host = data.path().to_str().unwrap();
        assert!(given.contains(host) || !text.contains(host), "{text}");
    };
    check("", PathRefusal::Empty);
    check("a/../../..", PathRefusal::Outside);
    check("..", PathRefusal::Outside);
    check("../../../../../etc/passwd", PathRefusal::Outside);
    check("../workspace2/x", PathRefusal::Outside);
    check("/", PathRefusal::Outside);
    check("/etc/passwd", PathRefusal::Outside);
    check("/mnt/user-data", PathRefusal::Outside);
    check("/mnt/user-data/workspace/../../../etc/passwd", PathRefusal::Outside);
    check("/mnt/user-data/workspaces/x", PathRefusal::Outside);
    check("/mnt/user-data/other", PathRefusal::Outside);
    check(folders.workspace.to_str().unwrap(), PathRefusal::Outside);
    check("etc", PathRefusal::LinkOutside);
    check("etc/passwd", PathRefusal::LinkOutside);
    check("etc/no-such-file", PathRefusal::LinkOutside);
    check("passwd", PathRefusal::LinkOutside);
    check("a/up", PathRefusal::LinkOutside);
    check("a/up/new", PathRefusal::LinkOutside);
    check("server", PathRefusal::Hidden);
    check("server/new", PathRefusal::Hidden);
    check("dangling", PathRefusal::BrokenLink);
    check("dangling/x", PathRefusal::BrokenLink);
    check("loop", PathRefusal::BrokenLink);
    check("a/file.txt/x", PathRefusal::BelowFile);
    check("a\0b", PathRefusal::HasNul);
    check("/etc/passwd\0.txt", PathRefusal::HasNul);
    check(&"x".repeat(300), PathRefusal::TooLong);
    check(&"x/".repeat(3_000), PathRefusal::TooLong);
}

#[test]
fn a_folder_that_was_exchanged_for_a_link_is_noticed_when_the_file_is_opened() {
    let (_data, folders) = folders();
    let resolved = folders.resolve("a/file.txt").unwrap();
    let elsewhere = TempDir::new().unwrap();
    fs::write(elsewhere.path().join("file.txt"), "secret").unwrap();
    fs::rename(folders.workspace.join("a"), folders.workspace.join("moved")).unwrap();
    symlink(elsewhere.path(), folders.workspace.join("a")).unwrap();
    assert_eq!(folders.open(&resolved).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    assert_eq!(folders.open_to_append(&resolved).unwrap_err().kind(), io::ErrorKind::PermissionDenied);

    let resolved = folders.resolve("moved/file.txt").unwrap();
    fs::remove_file(&resolved.host).unwrap();
    symlink(elsewhere.path().join("file.txt"), &resolved.host).unwrap();
    assert!(folders.open(&resolved).is_err(), "a link in the place of the file is not followed");
}

#[test]
fn a_folder_of_the_user_takes_the_workspaces_place() {
    let (_data, folders) = folders();
    let elsewhere = TempDir::new().unwrap();
    let own = elsewhere.path();
    fs::write(own.join("mine.txt"), "x").unwrap();
    let folders = folders.with_workspace(own).unwrap();
    assert_eq!(folders.resolve("mine.txt").unwrap().shown, "mine.txt");
    assert_eq!(
        folders.resolve("a/file.txt").unwrap().host,
        fs::canonicalize(own).unwrap().join("a/file.txt")
    );
    assert!(folders.clone().with_workspace(&own.join("missing")).is_err());
    assert!(folders.with_workspace(&own.join("mine.txt")).is_err());
}

/// A workspace that contains the data folder, `place` below it, and the log in that.
fn workspace_around_data(place: &str) -> (TempDir, ThreadFolders) {
    let own = TempDir::new().unwrap();
    let data = own.path().join(place);
    let folders = ThreadFolders::create(&data, &ThreadId::new("t").unwrap()).unwrap();
    let folders = folders.with_workspace(own.path()).unwrap();
    fs::write(data.join("log"), "x").unwrap();
    fs::create_dir_all(data.join("threads/other/user-data/outputs")).unwrap();
    fs::write(folders.outputs.join("out.txt"), "x").unwrap();
    (own, folders)
}

#[test]
fn the_servers_own_files_are_hidden_in_a_workspace_that_contains_them() {
    for place in ["data", "a/b/data"] {
        let (own, folders) = workspace_around_data(place);
        symlink(own.path().join(place), own.path().join("link")).unwrap();
        symlink(place, own.path().join("relative")).unwrap();
        symlink(own.path().join(place).join("log"), own.path().join("log-link")).unwrap();
        let hidden = |given: &str| {
            let refused = folders.resolve(given).expect_err(given);
            assert_eq!(refused.reason, PathRefusal::Hidden, "{given}");
        };
        for below in
            ["", "/", "/log", "/log/x", "/new/deep", "/threads", "/threads/other/user-data/outputs", "/."]
        {
            hidden(&format!("{place}{below}"));
            hidden(&format!("x/../{place}{below}"));
            hidden(&format!("/mnt/user-data/workspace/{place}{below}"));
            hidden(&format!("{place}/threads/../{below}"));
            if below != "/log/x" {
                hidden(&format!("link{below}"));
                hidden(&format!("relative{below}"));
            }
        }
        hidden("log-link");
        hidden(&format!("{place}/threads/t/user-data"));
        hidden(&format!("{place}/threads/t/user-data/workspace/../x"));
        let check = |given: &str, shown: &str| {
            assert_eq!(folders.resolve(given).unwrap().shown, shown, "{given}");
        };
        check("/mnt/user-data/outputs/out.txt", "/mnt/user-data/outputs/out.txt");
        check(&format!("{place}/threads/t/user-data/outputs/out.txt"), "/mnt/user-data/outputs/out.txt");
        check(&format!("{place}2"), &format!("{place}2"));
        assert!(folders.resolve(".").is_ok());
    }
}

#[test]
fn a_workspace_inside_the_data_folder_is_refused() {
    let (data, folders) = folders();
    let beside = TempDir::new().unwrap();
    symlink(data.path().join("elsewhere"), beside.path().join("link")).unwrap();
    let own = folders.workspace.clone();
    for folder in [
        data.path().to_owned(),
        data.path().join("."),
        data.path().join("elsewhere"),
        data.path().join("threads/t"),
        own,
        beside.path().join("link"),
    ] {
        let error = folders.clone().with_workspace(&folder).expect_err("it is inside");
        assert!(error.to_string().contains("data folder"), "{error}");
    }
}
