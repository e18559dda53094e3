//! The workspace as data: what the manifests say, and the text of every source file.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Every package of the workspace.
pub(super) struct Workspace {
    pub(super) packages: Vec<Package>,
}

/// One package.
#[derive(Debug, Clone, Default)]
pub(super) struct Package {
    /// Its name, which is also its folder.
    pub(super) name: String,
    /// Every library that it names in any of its tables, under the library's own name.
    pub(super) dependencies: BTreeSet<String>,
    /// Whether it has `[lints] workspace = true`.
    pub(super) has_workspace_lints: bool,
    /// Its source files.
    pub(super) sources: Vec<Source>,
}

/// One source file.
#[derive(Debug, Clone, Default)]
pub(super) struct Source {
    /// The package.
    pub(super) package: String,
    /// The path within the package, with slashes: `src/event/run.rs`.
    pub(super) path: String,
    /// What is in it.
    pub(super) text: String,
}

impl Workspace {
    pub(super) fn sources(&self) -> impl Iterator<Item = &Source> {
        self.packages.iter().flat_map(|package| &package.sources)
    }
}

impl Source {
    /// The path within the workspace, as messages name it.
    pub(super) fn shown(&self) -> String {
        format!("{}/{}", self.package, self.path)
    }

    /// A unit test beside the code: `src/event/tests.rs` and what is below `src/event/tests`.
    pub(super) fn is_unit_test(&self) -> bool {
        self.path.starts_with("src/")
            && self.path.split('/').any(|part| part == "tests" || part == "tests.rs")
    }

    /// Any file of tests: unit tests, integration tests, benches, and the package of tests.
    pub(super) fn is_test(&self) -> bool {
        self.package == "tests" || !self.path.starts_with("src/") || self.is_unit_test()
    }
}

/// Reads the workspace that this package is in.
pub(super) fn read_workspace() -> Workspace {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let manifest = read_manifest(&root.join("Cargo.toml"));
    let workspace = manifest.get("workspace").and_then(toml::Value::as_table);
    let members = workspace.and_then(|workspace| workspace.get("members")?.as_array());
    let shared = workspace.and_then(|workspace| workspace.get("dependencies")?.as_table());
    let (Some(members), Some(shared)) = (members, shared) else {
        panic!("the root Cargo.toml has no members or no shared dependencies")
    };
    let renamed = renamed(shared);
    let names = members.iter().filter_map(toml::Value::as_str);
    Workspace { packages: names.map(|name| read_package(&root, name, &renamed)).collect() }
}

fn read_package(root: &Path, name: &str, renamed: &BTreeMap<String, String>) -> Package {
    let folder = root.join(name);
    let manifest = read_manifest(&folder.join("Cargo.toml"));
    let mut sources = Vec::new();
    for part in ["src", "tests", "benches", "examples"] {
        read_sources(&folder, &folder.join(part), name, &mut sources);
    }
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    let lints = manifest.get("lints").and_then(|lints| lints.get("workspace"));
    Package {
        name: name.to_owned(),
        dependencies: dependencies_of(&manifest, renamed),
        has_workspace_lints: lints.and_then(toml::Value::as_bool) == Some(true),
        sources,
    }
}

fn read_manifest(path: &Path) -> toml::Table {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("reading {}: {error}", path.display()));
    text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn read_sources(package_folder: &Path, folder: &Path, package: &str, sources: &mut Vec<Source>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        if path.is_dir() {
            read_sources(package_folder, &path, package, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path)
                .unwrap_or_else(|error| panic!("reading {}: {error}", path.display()));
            let within = path.strip_prefix(package_folder).unwrap_or(&path);
            let path = within.to_string_lossy().replace('\\', "/");
            sources.push(Source { package: package.to_owned(), path, text });
        }
    }
}

/// Every library in any table of dependencies, those of single targets too.
pub(super) fn dependencies_of(
    manifest: &toml::Table,
    renamed: &BTreeMap<String, String>,
) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (section, value) in manifest {
        let Some(table) = value.as_table() else { continue };
        if section == "target" {
            for target in table.values().filter_map(toml::Value::as_table) {
                found.extend(dependencies_of(target, renamed));
            }
        } else if matches!(section.as_str(), "dependencies" | "dev-dependencies" | "build-dependencies") {
            for (name, value) in table {
                let given = value.get("package").and_then(toml::Value::as_str).map(str::to_owned);
                found.insert(given.or_else(|| renamed.get(name).cloned()).unwrap_or_else(|| name.clone()));
            }
        }
    }
    found
}

/// The shared dependencies that have another name here than the library's own.
fn renamed(shared: &toml::Table) -> BTreeMap<String, String> {
    let own_name = |value: &toml::Value| Some(value.get("package")?.as_str()?.to_owned());
    shared.iter().filter_map(|(name, value)| Some((name.clone(), own_name(value)?))).collect()
}

#[test]
fn dependencies_are_found_in_every_table_and_under_their_own_name() {
    let manifest = "[dependencies]\naxum.workspace = true\nstore = { package = \"fjall\", version = \"3\" }\n\
                    [dev-dependencies]\nterminal.workspace = true\n\
                    [target.'cfg(unix)'.dependencies]\nrustix = \"1\"\n[features]\nx = []\n";
    let renamed = BTreeMap::from([("terminal".to_owned(), "clap".to_owned())]);
    let found = dependencies_of(&manifest.parse().unwrap(), &renamed);
    assert_eq!(Vec::from_iter(found), ["axum", "clap", "fjall", "rustix"]);
}

#[test]
fn a_file_knows_whether_it_is_a_test() {
    let check = |package: &str, path: &str, expected: (bool, bool)| {
        let source = Source { package: package.into(), path: path.into(), text: String::new() };
        assert_eq!((source.is_unit_test(), source.is_test()), expected, "{}", source.shown());
    };
    check("domain", "src/event/run.rs", (false, false));
    check("domain", "src/event/tests.rs", (true, true));
    check("domain", "src/run/tests/given.rs", (true, true));
    check("eventlog", "benches/append.rs", (false, true));
    check("tests", "src/lib.rs", (false, true));
    check("tests", "tests/it/main.rs", (false, true));
}
