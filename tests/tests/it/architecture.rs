//! The rules of the design and the style guide that a machine can check. Every check is a function
//! over data that names what is wrong and how to put it right, with examples that it must refuse.

mod dependencies;
mod naming;
mod purity;
mod sizes;
mod syntax;
mod workspace;

use std::sync::LazyLock;

use self::workspace::{Workspace, read_workspace};

static WORKSPACE: LazyLock<Workspace> = LazyLock::new(read_workspace);

#[track_caller]
fn assert_none(problems: Vec<String>) {
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

/// A test over nothing would pass.
#[test]
fn the_workspace_was_found() {
    let files: usize = WORKSPACE.packages.iter().map(|package| package.sources.len()).sum();
    assert_eq!(WORKSPACE.packages.len(), dependencies::ALLOWED.len());
    assert!(files > 50, "only {files} source files were found");
    assert!(WORKSPACE.packages.iter().all(|package| !package.sources.is_empty()));
}

#[test]
fn crates_depend_on_what_the_design_allows() {
    assert_none(dependencies::forbidden(&WORKSPACE.packages));
}

#[test]
fn projections_and_runtime_do_not_know_each_other() {
    assert_none(dependencies::connected("projections", "runtime", &WORKSPACE.packages));
}

#[test]
fn only_their_owners_name_libraries_with_an_owner() {
    assert_none(dependencies::owned_elsewhere(&WORKSPACE.packages));
}

#[test]
fn every_crate_has_the_workspaces_lints() {
    assert_none(dependencies::without_lints(&WORKSPACE.packages));
}

#[test]
fn nothing_is_called_common() {
    assert_none(WORKSPACE.packages.iter().flat_map(naming::catch_all_names).collect());
}

#[test]
fn every_file_says_what_it_is_for() {
    assert_none(WORKSPACE.sources().filter_map(naming::undocumented).collect());
}

#[test]
fn files_and_functions_are_short() {
    assert_none(WORKSPACE.sources().flat_map(sizes::too_long).collect());
}

#[test]
fn exceptions_to_the_size_of_files_are_needed() {
    assert_none(sizes::needless_exceptions(WORKSPACE.sources()));
}

#[test]
fn the_domain_looks_at_nothing_outside_itself() {
    let domain = WORKSPACE.sources().filter(|source| source.package == "domain");
    assert_none(domain.flat_map(purity::impure).collect());
}
