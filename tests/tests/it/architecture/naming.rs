//! What crates and modules are called, and what they say of themselves.

use syn::{ItemMod, visit::Visit};

use super::workspace::{Package, Source};

/// Names that mean nothing but "everything else".
const CATCH_ALL: [&str; 4] = ["common", "core", "helpers", "utils"];

/// Crates, files, folders and inline modules with such a name.
pub(super) fn catch_all_names(package: &Package) -> Vec<String> {
    let mut problems = Vec::new();
    if CATCH_ALL.contains(&package.name.as_str()) {
        problems.push(complaint(&package.name, &package.name));
    }
    for source in &package.sources {
        let mut names: Vec<_> = source.path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
        names.extend(inline_modules(&source.text));
        let bad = names.iter().filter(|name| CATCH_ALL.contains(&name.as_str()));
        problems.extend(bad.map(|name| complaint(&source.shown(), name)));
    }
    problems
}

fn complaint(place: &str, name: &str) -> String {
    format!(
        "{place} is called {name}: name it after what it is for, or move its parts to where they are used"
    )
}

fn inline_modules(text: &str) -> Vec<String> {
    struct Modules(Vec<String>);
    impl<'ast> Visit<'ast> for Modules {
        fn visit_item_mod(&mut self, module: &'ast ItemMod) {
            if module.content.is_some() {
                self.0.push(module.ident.to_string());
            }
            syn::visit::visit_item_mod(self, module);
        }
    }
    let mut modules = Modules(Vec::new());
    if let Ok(file) = syn::parse_file(text) {
        modules.visit_file(&file);
    }
    modules.0
}

/// A file that does not open with what it is for. Unit tests beside the code need not.
pub(super) fn undocumented(source: &Source) -> Option<String> {
    let opens_with_docs = source.text.starts_with("//! ") || source.is_unit_test();
    let message = || format!("{}: open the file with `//!` and a sentence on what it is for", source.shown());
    (!opens_with_docs).then(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { package: "api".into(), path: path.into(), text: text.into() }
    }

    #[test]
    fn catch_all_names_are_found_in_crates_files_folders_and_modules() {
        let sources = vec![
            source("src/common.rs", ""),
            source("src/core/paths.rs", ""),
            source("src/routes.rs", "mod inner { mod utils {} }"),
            source("src/commonly.rs", "mod core_facts { }"),
        ];
        let package = Package { name: "helpers".into(), sources, ..Package::default() };
        let found: Vec<_> =
            catch_all_names(&package).into_iter().map(|text| text.replace("is called ", "")).collect();
        let starts = [
            "helpers helpers:",
            "api/src/common.rs common:",
            "api/src/core/paths.rs core:",
            "api/src/routes.rs utils:",
        ];
        assert_eq!(found.len(), starts.len(), "{found:?}");
        assert!(found.iter().zip(starts).all(|(text, start)| text.starts_with(start)), "{found:?}");
    }

    #[test]
    fn a_file_without_opening_docs_is_named() {
        assert_eq!(undocumented(&source("src/a.rs", "//! What it is for.\n")), None);
        assert_eq!(undocumented(&source("src/a/tests.rs", "use super::*;\n")), None);
        for text in ["", "use x;\n", "// a comment\n", "\n//! Too late.\n"] {
            assert!(undocumented(&source("src/a.rs", text)).is_some(), "{text:?}");
        }
    }
}
