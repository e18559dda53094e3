//! The file tools and the toolbox. The shell is tested in `bash/tests.rs`.

use std::{fs, os::unix::fs::symlink};

use domain::{ids::ThreadId, limits::TOOL_OUTPUT_CHARS_MAX};
use serde_json::json;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::*;

pub(super) struct Place {
    pub(super) data: TempDir,
    pub(super) context: ToolContext,
}

impl Place {
    pub(super) fn new() -> Self {
        let data = TempDir::new().unwrap();
        let folders = ThreadFolders::create(data.path(), &ThreadId::new("t").unwrap()).unwrap();
        let context = ToolContext::new(folders, None, CancellationToken::new());
        Self { data, context }
    }

    fn with_files(files: &[(&str, &str)]) -> Self {
        let place = Self::new();
        for (name, content) in files {
            let path = place.context.folders.workspace.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        place
    }

    fn content(&self, name: &str) -> String {
        fs::read_to_string(self.context.folders.workspace.join(name)).unwrap()
    }

    pub(super) async fn call(&self, tool: &str, args: Value) -> ToolOutput {
        let toolbox = Toolbox::builtin();
        let output = toolbox.get(tool).unwrap().run(&self.context, args.as_object().unwrap()).await;
        assert!(output.text.chars().count() <= TOOL_OUTPUT_CHARS_MAX, "{tool} is bounded");
        let host = self.data.path().to_str().unwrap();
        assert!(!output.text.contains(host), "{tool} shows where it is: {}", output.text);
        output
    }

    #[track_caller]
    fn check(&self, tool: &str, args: Value, expected: &str) {
        let shown = args.to_string();
        let output = futures_block_on(self.call(tool, args));
        assert_eq!(output.text, expected, "{tool} {shown}");
        let outcome = if expected.starts_with("Error: ") { ToolOutcome::Error } else { ToolOutcome::Ok };
        assert_eq!(output.outcome, outcome, "{tool} {shown}");
    }

    #[track_caller]
    fn check_error(&self, tool: &str, args: Value, parts: &[&str]) {
        let shown = args.to_string();
        let output = futures_block_on(self.call(tool, args));
        assert_eq!(output.outcome, ToolOutcome::Error, "{tool} {shown}: {}", output.text);
        assert!(output.text.starts_with("Error: "), "{}", output.text);
        for part in parts {
            assert!(output.text.contains(part), "{part:?} is not in {:?}", output.text);
        }
    }
}

fn futures_block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

#[test]
fn the_toolbox_offers_what_is_allowed_and_not_denied_in_its_own_order() {
    let toolbox = Toolbox::builtin();
    let all = ["ls", "read_file", "write_file", "str_replace", "grep", "glob", "bash"];
    assert_eq!(toolbox.names(), all);
    let names = |allow: Option<&[&str]>, deny: &[&str]| -> Vec<String> {
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let specs = toolbox.specs(allow.map(owned).as_deref(), &owned(deny));
        specs.into_iter().map(|spec| spec.name).collect()
    };
    assert_eq!(names(None, &[]), all);
    assert_eq!(names(Some(&["bash", "ls", "task", "LS"]), &[]), ["ls", "bash"]);
    assert_eq!(names(Some(&[]), &[]), [""; 0]);
    assert_eq!(names(Some(&["bash", "ls"]), &["bash", "Ls"]), ["ls"]);
    assert!(toolbox.get("task").is_none() && toolbox.get("Bash").is_none());
}

#[test]
fn every_schema_is_an_object_that_names_its_required_properties() {
    for spec in Toolbox::builtin().specs(None, &[]) {
        let properties = spec.parameters["properties"].as_object().unwrap();
        assert_eq!(spec.parameters["type"], "object");
        for name in spec.parameters["required"].as_array().unwrap() {
            assert!(properties.contains_key(name.as_str().unwrap()), "{} {name}", spec.name);
        }
    }
}

#[test]
fn side_effects_are_declared_per_call() {
    let check = |tool: &str, args: Value, expected: SideEffect| {
        let effect = Toolbox::builtin().get(tool).unwrap().side_effect(args.as_object().unwrap());
        assert_eq!(effect, expected, "{tool} {args}");
    };
    for tool in ["ls", "read_file", "grep", "glob"] {
        check(tool, json!({}), SideEffect::ReadOnly);
    }
    check("write_file", json!({}), SideEffect::Idempotent);
    check("write_file", json!({"append": false}), SideEffect::Idempotent);
    check("write_file", json!({"append": true}), SideEffect::Effectful);
    check("write_file", json!({"append": "yes"}), SideEffect::Effectful);
    check("str_replace", json!({}), SideEffect::Effectful);
    check("bash", json!({}), SideEffect::Effectful);
}

#[test]
fn arguments_that_are_not_in_the_schema_are_named() {
    let place = Place::new();
    place.check_error("ls", json!({}), &["arguments of ls", "missing field `path`"]);
    place.check_error("ls", json!({"path": ".", "all": true}), &["unknown field `all`"]);
    place.check_error("read_file", json!({"path": 5}), &["invalid type", "expected a string"]);
    place.check_error("read_file", json!({"path": "a", "start_line": -1}), &["arguments of read_file"]);
    place.check_error("grep", json!({"pattern": "x", "max_results": 0}), &["1 to 1000"]);
    place.check_error("bash", json!({"cmd": "ls"}), &["unknown field `cmd`", "`command`"]);
    place.check_error("bash", json!({"command": " "}), &["command is empty"]);
}

#[test]
fn every_path_argument_is_confined() {
    let place = Place::new();
    symlink("/etc", place.context.folders.workspace.join("etc")).unwrap();
    for path in ["/etc/passwd", "../../x", "etc/passwd", "etc"] {
        for (tool, args) in [
            ("ls", json!({"path": path})),
            ("read_file", json!({"path": path})),
            ("write_file", json!({"path": path, "content": "x"})),
            ("write_file", json!({"path": path, "content": "x", "append": true})),
            ("str_replace", json!({"path": path, "old_str": "root", "new_str": "x"})),
            ("grep", json!({"pattern": "root", "path": path})),
            ("glob", json!({"pattern": "*", "path": path})),
        ] {
            place.check_error(tool, args, &["is refused", path, "/mnt/user-data/uploads"]);
        }
    }
}

#[test]
fn ls_lists_names_sorted_with_slashes_and_sizes() {
    let place =
        Place::with_files(&[("b.txt", "12345"), ("a/x", ""), (".hidden", "1"), ("ä 漢", ""), ("n\nl", "")]);
    symlink("/etc/passwd", place.context.folders.workspace.join("out")).unwrap();
    symlink("a", place.context.folders.workspace.join("link")).unwrap();
    place.check("ls", json!({"path": "."}), ".hidden\t1\na/\nb.txt\t5\nlink/\nn\\nl\t0\nout\t11\nä 漢\t0");
    place.check("ls", json!({"path": "a"}), "x\t0");
    place.check("ls", json!({"path": "/mnt/user-data/outputs"}), "(empty)");
    place.check("ls", json!({"path": "nowhere"}), "Error: nowhere does not exist; look with ls or glob");
    place.check("ls", json!({"path": "b.txt"}), "Error: b.txt is a file; use read_file");
}

#[test]
fn ls_counts_what_it_does_not_show() {
    let place = Place::new();
    for number in 0..203 {
        fs::write(place.context.folders.outputs.join(format!("{number:03}")), "").unwrap();
    }
    let output = futures_block_on(place.call("ls", json!({"path": "/mnt/user-data/outputs"})));
    let lines: Vec<&str> = output.text.lines().collect();
    assert_eq!(
        (lines.len(), lines[0], lines[199], lines[200]),
        (201, "000\t0", "199\t0", "... 3 more entries")
    );
}

#[test]
fn read_file_gives_whole_files_and_ranges() {
    let place = Place::with_files(&[("t", "one\ntwo\r\nthree"), ("e", ""), ("n", "a\n\n")]);
    place.check("read_file", json!({"path": "t"}), "one\ntwo\r\nthree");
    place.check("read_file", json!({"path": "t", "start_line": null}), "one\ntwo\r\nthree");
    place.check("read_file", json!({"path": "t", "start_line": 2, "end_line": 2}), "two\r\n");
    place.check("read_file", json!({"path": "t", "start_line": 3, "end_line": 9}), "three");
    place.check("read_file", json!({"path": "t", "end_line": 1}), "one\n");
    place.check("read_file", json!({"path": "e"}), "(empty)");
    place.check("read_file", json!({"path": "n", "start_line": 2}), "\n");
    place.check(
        "read_file",
        json!({"path": "n", "start_line": 3}),
        "Error: start_line 3 is after the end; n has 2 lines",
    );
    place.check_error("read_file", json!({"path": "t", "start_line": 3, "end_line": 2}), &["no range"]);
    place.check_error("read_file", json!({"path": "t", "start_line": 0}), &["counted from 1"]);
    place.check_error("read_file", json!({"path": "no"}), &["no does not exist"]);
    place.check_error("read_file", json!({"path": "."}), &["is a folder; use ls"]);
}

#[test]
fn read_file_refuses_what_is_not_text() {
    let place = Place::new();
    let workspace = &place.context.folders.workspace;
    for (name, bytes) in
        [("nul", &b"a\0b"[..]), ("latin", &b"caf\xe9 au lait"[..]), ("cut", &b"abc\xe6\xbc"[..])]
    {
        fs::write(workspace.join(name), bytes).unwrap();
        place.check_error("read_file", json!({"path": name}), &["is not text (", "bytes); use bash"]);
    }
    let made = std::process::Command::new("mkfifo").arg(workspace.join("pipe")).status().unwrap();
    assert!(made.success());
    place.check_error("read_file", json!({"path": "pipe"}), &["not a regular file"]);
    place.check_error("write_file", json!({"path": "pipe", "content": "x", "append": true}), &["pipe"]);
}

#[tokio::test]
async fn read_file_cuts_long_text_and_hashes_all_of_it() {
    let long: String = (0..20_000).map(|line| format!("line {line} 漢\n")).collect();
    let place = Place::with_files(&[("long", &long)]);
    let output = place.call("read_file", json!({"path": "long"})).await;
    assert!(output.is_truncated && output.text.contains("start_line and end_line"), "{}", output.text);
    assert!(output.text.starts_with("line 0 漢\n") && output.text.ends_with("line 19999 漢\n"));
    assert_eq!(output.output_bytes, long.len() as u64);
    assert_eq!(output.output_sha256, hex::encode(Sha256::digest(long.as_bytes())));
}

#[test]
fn read_file_reads_the_beginning_of_a_file_of_ten_gigabytes_but_not_all_of_it() {
    let place = Place::with_files(&[("huge", "first\nsecond\n")]);
    let file = fs::OpenOptions::new().write(true).open(place.context.folders.workspace.join("huge")).unwrap();
    file.set_len(10 * 1024 * 1024 * 1024).unwrap();
    // Sparse files are full of NUL bytes, which are no text; a text is refused by its length.
    place.check_error("read_file", json!({"path": "huge"}), &["is not text (10737418240 bytes)"]);
    place.check_error(
        "str_replace",
        json!({"path": "huge", "old_str": "a", "new_str": "b"}),
        &["too large to edit"],
    );
    let long = "x\n".repeat(33 * 1024 * 1024);
    fs::write(place.context.folders.workspace.join("long"), long).unwrap();
    place.check_error(
        "read_file",
        json!({"path": "long", "start_line": 40_000_000}),
        &["too large", "use bash"],
    );
    place.check("read_file", json!({"path": "long", "start_line": 7, "end_line": 8}), "x\nx\n");
}

#[test]
fn write_file_makes_replaces_and_extends() {
    let place = Place::with_files(&[("old", "before"), ("d/x", "")]);
    place.check(
        "write_file",
        json!({"path": "new/deep/f.txt", "content": "ä"}),
        "wrote 2 bytes to new/deep/f.txt",
    );
    assert_eq!(place.content("new/deep/f.txt"), "ä");
    place.check("write_file", json!({"path": "old", "content": "after"}), "wrote 5 bytes to old");
    assert_eq!(place.content("old"), "after");
    place.check(
        "write_file",
        json!({"path": "old", "content": "!", "append": true}),
        "appended 1 bytes to old",
    );
    place.check(
        "write_file",
        json!({"path": "log", "content": "1", "append": true}),
        "appended 1 bytes to log",
    );
    assert_eq!((place.content("old"), place.content("log")), ("after!".to_owned(), "1".to_owned()));
    place.check(
        "write_file",
        json!({"path": "/mnt/user-data/outputs/r.md", "content": "r"}),
        "wrote 1 bytes to /mnt/user-data/outputs/r.md",
    );
    place.check_error("write_file", json!({"path": "d", "content": ""}), &["d is a folder"]);
    place.check_error("write_file", json!({"path": "old/x", "content": ""}), &["not a folder"]);
    let names: Vec<_> = fs::read_dir(&place.context.folders.workspace)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("remit"))
        .collect();
    assert_eq!(names, [""; 0], "no temporary file is left");
}

#[test]
fn write_file_keeps_the_mode_of_a_script() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::with_files(&[("run.sh", "old")]);
    let path = place.context.folders.workspace.join("run.sh");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
    place.check("write_file", json!({"path": "run.sh", "content": "new"}), "wrote 3 bytes to run.sh");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o750);
}

#[test]
fn str_replace_wants_exactly_one_occurrence() {
    let place = Place::with_files(&[("f", "a b a\nc\n")]);
    place.check(
        "str_replace",
        json!({"path": "f", "old_str": "b a\n", "new_str": "B\n"}),
        "replaced 1 occurrence in f",
    );
    assert_eq!(place.content("f"), "a B\nc\n");
    place.check(
        "str_replace",
        json!({"path": "f", "old_str": "c", "new_str": "a a"}),
        "replaced 1 occurrence in f",
    );
    place.check_error(
        "str_replace",
        json!({"path": "f", "old_str": "a", "new_str": "x"}),
        &["occurs 3 times"],
    );
    place.check(
        "str_replace",
        json!({"path": "f", "old_str": "a", "new_str": "x", "replace_all": true}),
        "replaced 3 occurrences in f",
    );
    assert_eq!(place.content("f"), "x B\nx x\n");
    place.check_error(
        "str_replace",
        json!({"path": "f", "old_str": "zzz", "new_str": ""}),
        &["does not occur in f"],
    );
    place.check_error(
        "str_replace",
        json!({"path": "f", "old_str": "", "new_str": "x"}),
        &["old_str is empty"],
    );
    place.check_error(
        "str_replace",
        json!({"path": "g", "old_str": "a", "new_str": "x"}),
        &["g does not exist"],
    );
    assert_eq!(place.content("f"), "x B\nx x\n", "a refused edit changes nothing");
}

#[test]
fn grep_gives_lines_with_their_places() {
    let place = Place::with_files(&[
        ("a.rs", "fn main() {}\r\n\nfn other() {}\n"),
        ("sub/b.txt", "x main y"),
        (".git/c", "main"),
        ("bin", "main\0"),
    ]);
    symlink("/etc/passwd", place.context.folders.workspace.join("link")).unwrap();
    fs::write(place.context.folders.outputs.join("o"), "main").unwrap();
    place.check(
        "grep",
        json!({"pattern": "main"}),
        ".git/c:1: main\na.rs:1: fn main() {}\nsub/b.txt:1: x main y",
    );
    place.check("grep", json!({"pattern": "main", "glob": "*.rs"}), "a.rs:1: fn main() {}");
    place.check("grep", json!({"pattern": "main", "glob": "sub/*"}), "sub/b.txt:1: x main y");
    place.check("grep", json!({"pattern": "^$", "path": "a.rs"}), "a.rs:2: ");
    place.check(
        "grep",
        json!({"pattern": "(?i)MAIN", "path": "/mnt/user-data/outputs"}),
        "/mnt/user-data/outputs/o:1: main",
    );
    place.check(
        "grep",
        json!({"pattern": "fn", "max_results": 1}),
        "a.rs:1: fn main() {}\n... more matches after the first 1; narrow pattern, path or glob",
    );
    place.check("grep", json!({"pattern": "root:"}), "no lines match \"root:\"");
    place.check_error("grep", json!({"pattern": "("}), &["not a valid regular expression"]);
    place.check_error("grep", json!({"pattern": "x", "glob": "{"}), &["glob pattern is not valid"]);
    place.check_error("grep", json!({"pattern": "x", "path": "no"}), &["no does not exist"]);
}

#[test]
fn glob_gives_sorted_paths() {
    let place =
        Place::with_files(&[("b.rs", ""), ("a/c.rs", ""), ("a/d/e.rs", ""), (".x/y.rs", ""), ("z.txt", "")]);
    fs::write(place.context.folders.uploads.join("u.rs"), "").unwrap();
    symlink("/usr", place.context.folders.workspace.join("usr")).unwrap();
    place.check("glob", json!({"pattern": "*.rs"}), ".x/y.rs\na/c.rs\na/d/e.rs\nb.rs");
    place.check("glob", json!({"pattern": "a/*.rs"}), "a/c.rs");
    place.check("glob", json!({"pattern": "a/**/*.rs"}), "a/c.rs\na/d/e.rs");
    place.check("glob", json!({"pattern": "*.rs", "path": "a/d"}), "a/d/e.rs");
    place.check(
        "glob",
        json!({"pattern": "*", "path": "/mnt/user-data/uploads"}),
        "/mnt/user-data/uploads/u.rs",
    );
    place.check("glob", json!({"pattern": "*.py"}), "no files match \"*.py\" in .");
    place.check_error("glob", json!({"pattern": "["}), &["glob pattern is not valid"]);
    place.check_error("glob", json!({"pattern": "*", "path": "b.rs"}), &["b.rs is not a folder"]);
}

#[test]
fn thousands_of_files_stay_bounded() {
    let place = Place::new();
    let workspace = &place.context.folders.workspace;
    for folder in 0..20 {
        fs::create_dir(workspace.join(format!("{folder:02}"))).unwrap();
        for file in 0..100 {
            fs::write(workspace.join(format!("{folder:02}/{file:02}.txt")), "needle\n".repeat(3)).unwrap();
        }
    }
    let output = futures_block_on(place.call("glob", json!({"pattern": "*.txt"})));
    assert_eq!(output.text.lines().count(), 501);
    assert!(output.text.ends_with("... 1500 more paths; narrow the pattern"));
    let output = futures_block_on(place.call("grep", json!({"pattern": "needle"})));
    assert_eq!(output.text.lines().count(), 101);
    assert!(output.text.starts_with("00/00.txt:1: needle\n"));
}

#[test]
fn a_cancelled_call_does_nothing() {
    let place = Place::with_files(&[("f", "x")]);
    place.context.cancel.cancel();
    place.check_error("write_file", json!({"path": "f", "content": "y"}), &["cancelled"]);
    place.check_error("grep", json!({"pattern": "x"}), &["cancelled"]);
    assert_eq!(place.content("f"), "x");
}

// Facts §1.8: without a sandbox bash is refused, and the receipt says denied (field report 97).
#[tokio::test]
async fn without_a_confinement_bash_is_denied_with_the_options() {
    let place = Place::new();
    let output = place.call("bash", json!({"command": "touch f"})).await;
    assert_eq!(output.outcome, ToolOutcome::Denied);
    assert!(output.text.starts_with("Error: bash is not available"), "{}", output.text);
    assert!(output.text.contains("bubblewrap") && output.text.contains("sandbox.allow_host_bash"));
    assert!(!place.context.folders.workspace.join("f").exists());
}

#[test]
fn no_file_tool_reaches_a_data_folder_in_the_workspace() {
    let own = TempDir::new().unwrap();
    let data = own.path().join("a/data");
    let folders = ThreadFolders::create(&data, &ThreadId::new("t").unwrap()).unwrap();
    fs::write(data.join("log"), "needle").unwrap();
    fs::write(own.path().join("a/mine.txt"), "needle").unwrap();
    fs::write(folders.outputs.join("out.txt"), "needle").unwrap();
    let mut place = Place::new();
    place.context.folders = folders.with_workspace(own.path()).unwrap();
    place.check("ls", json!({"path": "a"}), "mine.txt\t6");
    place.check("glob", json!({"pattern": "**/*"}), "a/mine.txt");
    place.check("grep", json!({"pattern": "needle"}), "a/mine.txt:1: needle");
    place.check(
        "grep",
        json!({"pattern": "needle", "path": "/mnt/user-data/outputs"}),
        "/mnt/user-data/outputs/out.txt:1: needle",
    );
    for path in ["a/data", "a/data/log", "a/data/new", "/mnt/user-data/workspace/a/data/threads"] {
        for (tool, args) in [
            ("ls", json!({"path": path})),
            ("glob", json!({"pattern": "*", "path": path})),
            ("grep", json!({"pattern": "x", "path": path})),
            ("read_file", json!({"path": path})),
            ("write_file", json!({"path": path, "content": "x"})),
            ("write_file", json!({"path": path, "content": "x", "append": true})),
            ("str_replace", json!({"path": path, "old_str": "needle", "new_str": "x"})),
        ] {
            place.check_error(tool, args, &["the server keeps its own files"]);
        }
    }
    assert_eq!(fs::read_to_string(data.join("log")).unwrap(), "needle");
}
