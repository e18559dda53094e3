//! What the domain must not look at: the world, the clock, chance.

use syn::{
    ItemMod, ItemUse, Macro, Path, UseTree,
    visit::{self, Visit},
};

use super::{syntax::is_test_only, workspace::Source};

/// Modules and crates of the world outside.
const FORBIDDEN_ROOTS: [&str; 8] =
    ["tokio", "rand", "std::env", "std::fs", "std::net", "std::process", "std::thread", "reqwest"];
/// Calls that give another answer every time.
const FORBIDDEN_CALLS: [&str; 6] =
    ["SystemTime::now", "Instant::now", "Timestamp::now", "Zoned::now", "Uuid::now_v7", "Uuid::new_v4"];

/// Everything in a file that looks outside. What is compiled for tests alone may.
pub(super) fn impure(source: &Source) -> Vec<String> {
    if source.is_test() {
        return Vec::new();
    }
    let mut names = Names::default();
    match syn::parse_file(&source.text) {
        Ok(file) => names.visit_file(&file),
        Err(error) => return vec![format!("{} cannot be parsed: {error}", source.shown())],
    }
    let complaint = |name: &String| {
        format!("{}: {name} has no place in the domain; take its answer in the command", source.shown())
    };
    names.0.iter().filter(|name| is_forbidden(name)).map(complaint).collect()
}

fn is_forbidden(name: &str) -> bool {
    let is_root =
        |root: &&str| name.strip_prefix(*root).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
    let is_call = |call: &&str| name == *call || name.ends_with(&format!("::{call}"));
    FORBIDDEN_ROOTS.iter().any(is_root) || FORBIDDEN_CALLS.iter().any(is_call)
}

/// Every path that a file names, imports written out.
#[derive(Default)]
struct Names(Vec<String>);

impl Names {
    fn import(&mut self, prefix: &str, tree: &UseTree) {
        let below = |name: &dyn std::fmt::Display| {
            if prefix.is_empty() { name.to_string() } else { format!("{prefix}::{name}") }
        };
        match tree {
            UseTree::Path(path) => self.import(&below(&path.ident), &path.tree),
            UseTree::Name(name) => self.0.push(below(&name.ident)),
            UseTree::Rename(rename) => self.0.push(below(&rename.ident)),
            UseTree::Glob(_) => self.0.push(prefix.to_owned()),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.import(prefix, tree)),
        }
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !is_test_only(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.import("", &item.tree);
    }

    fn visit_path(&mut self, path: &'ast Path) {
        let names: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.0.push(names.join("::"));
        visit::visit_path(self, path);
    }

    /// The inside of a macro has no tree; its paths are picked out of its text.
    fn visit_macro(&mut self, called: &'ast Macro) {
        let text = called.tokens.to_string().replace(" :: ", "::");
        let is_in_path = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
        self.0.extend(
            text.split(|letter| !is_in_path(letter)).filter(|name| name.contains("::")).map(str::to_owned),
        );
        visit::visit_macro(self, called);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let source = Source { package: "domain".into(), path: "src/a.rs".into(), text: text.into() };
        let found = impure(&source);
        assert_eq!(found.len(), expected.len(), "{text}: {found:?}");
        for (problem, name) in found.iter().zip(expected) {
            assert!(problem.starts_with(&format!("domain/src/a.rs: {name} ")), "{problem}");
        }
    }

    #[test]
    fn what_looks_outside_is_named_however_it_is_written() {
        check("use tokio::sync::mpsc;", &["tokio::sync::mpsc"]);
        check("use std::{collections::BTreeMap, fs, net::*};", &["std::fs", "std::net"]);
        check("use std::fs as files;", &["std::fs"]);
        check("fn a() { std::fs::read(\"x\"); }", &["std::fs::read"]);
        check("fn a() -> std::net::IpAddr { todo!() }", &["std::net::IpAddr"]);
        check("fn a() { let now = SystemTime::now(); }", &["SystemTime::now"]);
        check("fn a() { let now = std::time::Instant::now(); }", &["std::time::Instant::now"]);
        check("fn a() { let id = uuid::Uuid::now_v7(); }", &["uuid::Uuid::now_v7"]);
        check("fn a() { assert!(x < Instant::now()); }", &["Instant::now"]);
    }

    #[test]
    fn what_cannot_be_parsed_is_named() {
        let source = Source { package: "domain".into(), path: "src/a.rs".into(), text: "fn (".into() };
        assert!(impure(&source).iter().all(|text| text.starts_with("domain/src/a.rs cannot be parsed")));
        assert_eq!(impure(&source).len(), 1);
    }

    #[test]
    fn comments_words_and_tests_are_not_named() {
        check("// tokio, std::fs\n//! SystemTime::now\n", &[]);
        check("use std::time::SystemTime; fn tokio_like() {} fn now() {}", &[]);
        check("fn a() { let text = \"std::fs::read\"; }", &[]);
        check("#[cfg(test)]\nmod tests { use std::fs; }", &[]);
    }
}
