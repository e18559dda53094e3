//! Who may depend on whom, and who alone may name a library.

use std::collections::BTreeSet;

use super::workspace::Package;

/// What each crate may depend on among ours: the table of the design.
pub(super) const ALLOWED: [(&str, &[&str]); 8] = [
    ("domain", &[]),
    ("contracts", &[]),
    ("eventlog", &["domain"]),
    ("projections", &["domain", "eventlog"]),
    ("runtime", &["domain", "eventlog"]),
    ("api", &["contracts", "domain", "eventlog", "projections", "runtime"]),
    ("tools", &["api", "contracts", "domain", "eventlog", "projections", "runtime"]),
    ("tests", &["api", "contracts", "domain", "eventlog", "projections", "runtime", "tools"]),
];

/// Libraries that decide something for a whole crate, and who may name them.
const OWNED: [(&str, &[&str]); 8] = [
    ("axum", &["api", "tests"]),
    ("clap", &["tools"]),
    ("fjall", &["eventlog"]),
    ("indicatif", &["tools"]),
    ("owo-colors", &["tools"]),
    ("reqwest", &["runtime", "tools", "tests"]),
    ("terminal_size", &["tools"]),
    ("unicode-width", &["tools"]),
];

/// Dependencies among our crates that the table does not have.
pub(super) fn forbidden(packages: &[Package]) -> Vec<String> {
    let ours: BTreeSet<_> = packages.iter().map(|package| package.name.as_str()).collect();
    let mut problems = Vec::new();
    for package in packages {
        let name = &package.name;
        let Some((_, allowed)) = ALLOWED.iter().find(|(crate_name, _)| crate_name == name) else {
            problems.push(format!(
                "{name}/Cargo.toml: a new crate needs its row in architecture/dependencies.rs"
            ));
            continue;
        };
        for dependency in package.dependencies.iter().map(String::as_str) {
            if ours.contains(dependency) && !allowed.contains(&dependency) {
                problems.push(format!(
                    "{name}/Cargo.toml depends on {dependency}: move what is needed to a crate that both may know, \
                     or pass it in from above"
                ));
            }
        }
    }
    problems
}

/// A way from one crate to the other, in either direction and over any number of crates.
pub(super) fn connected(one: &str, other: &str, packages: &[Package]) -> Vec<String> {
    [(one, other), (other, one)]
        .into_iter()
        .filter(|(from, to)| reaches(from, to, packages))
        .map(|(from, to)| {
            format!("{from}/Cargo.toml: {from} must not know {to}; let api or tools join the two")
        })
        .collect()
}

fn reaches(from: &str, to: &str, packages: &[Package]) -> bool {
    let mut seen = BTreeSet::new();
    let mut next = vec![from];
    while let Some(name) = next.pop() {
        let package = packages.iter().find(|package| package.name == name);
        let dependencies = package.into_iter().flat_map(|package| &package.dependencies);
        next.extend(dependencies.map(String::as_str).filter(|name| seen.insert((*name).to_owned())));
    }
    seen.contains(to)
}

/// Libraries that somebody other than their owner names.
pub(super) fn owned_elsewhere(packages: &[Package]) -> Vec<String> {
    let mut problems = Vec::new();
    for package in packages {
        for (library, owners) in OWNED {
            if package.dependencies.contains(library) && !owners.contains(&package.name.as_str()) {
                problems.push(format!(
                    "{}/Cargo.toml names {library}, which only {} may: put the code that needs it there",
                    package.name,
                    owners.join(", ")
                ));
            }
        }
    }
    problems
}

/// Crates that the workspace's lints do not hold for.
pub(super) fn without_lints(packages: &[Package]) -> Vec<String> {
    packages
        .iter()
        .filter(|package| !package.has_workspace_lints)
        .map(|package| format!("{}/Cargo.toml: add [lints] workspace = true", package.name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[&str]) -> Package {
        let dependencies = dependencies.iter().map(|name| (*name).to_owned()).collect();
        Package { name: name.into(), dependencies, has_workspace_lints: true, ..Package::default() }
    }

    #[track_caller]
    fn check(problems: Vec<String>, openings: &[&str]) {
        assert_eq!(problems.len(), openings.len(), "{problems:?}");
        for (problem, opening) in problems.iter().zip(openings) {
            assert!(problem.starts_with(opening), "{problem}");
        }
    }

    #[test]
    fn a_dependency_upwards_is_named() {
        let packages = [package("domain", &["serde", "eventlog"]), package("eventlog", &["domain"])];
        check(forbidden(&packages), &["domain/Cargo.toml depends on eventlog"]);
        check(forbidden(&[package("shiny", &[])]), &["shiny/Cargo.toml: a new crate"]);
    }

    #[test]
    fn a_way_between_two_crates_is_found_over_a_third() {
        let packages =
            [package("projections", &["bridge"]), package("bridge", &["runtime"]), package("runtime", &[])];
        check(
            connected("runtime", "projections", &packages),
            &["projections/Cargo.toml: projections must not"],
        );
        check(
            connected("runtime", "projections", &[package("runtime", &[]), package("projections", &[])]),
            &[],
        );
    }

    #[test]
    fn a_library_in_the_wrong_crate_is_named() {
        check(owned_elsewhere(&[package("api", &["fjall", "axum"])]), &["api/Cargo.toml names fjall"]);
        check(owned_elsewhere(&[package("tools", &["axum", "clap"])]), &["tools/Cargo.toml names axum"]);
        check(
            owned_elsewhere(&[package("projections", &["reqwest"])]),
            &["projections/Cargo.toml names reqwest"],
        );
    }

    #[test]
    fn a_crate_without_lints_is_named() {
        let lax = Package { has_workspace_lints: false, ..package("api", &[]) };
        check(without_lints(&[lax, package("domain", &[])]), &["api/Cargo.toml: add [lints]"]);
    }
}
