//! How long files and functions may be.

use syn::{
    Attribute, Block, ImplItemFn, ItemFn, ItemMod, Signature, TraitItemFn,
    spanned::Spanned,
    visit::{self, Visit},
};

use super::{
    syntax::{expects, is_test_only},
    workspace::Source,
};

/// Lines of a file without its tests.
const FILE_LINES_MAX: usize = 600;
/// Lines of a file of tests.
const TEST_FILE_LINES_MAX: usize = 800;
/// Lines of a function's body, blank lines and comments not counted.
const FUNCTION_LINES_MAX: usize = 70;

/// Files that may be longer, each with the reason: the list is to shrink.
const EXCEPTIONS: [(&str, &str); 0] = [];

/// What is too long in a file, and the file itself.
pub(super) fn too_long(source: &Source) -> Vec<String> {
    let measured = match measure(&source.text) {
        Ok(measured) => measured,
        Err(error) => return vec![format!("{} cannot be parsed: {error}", source.shown())],
    };
    let mut problems: Vec<_> = measured
        .functions
        .iter()
        .filter(|function| function.lines > FUNCTION_LINES_MAX)
        .map(|function| {
            format!(
                "{}: fn {} at line {} has {} lines, at most {FUNCTION_LINES_MAX} are allowed: keep the branching, \
                 move straight-line work out",
                source.shown(),
                function.name,
                function.line,
                function.lines
            )
        })
        .collect();
    if !is_excepted(source) {
        problems.extend(file_problem(source, &measured));
    }
    problems
}

/// Exceptions for files that are short enough, or gone.
pub(super) fn needless_exceptions<'a>(sources: impl Iterator<Item = &'a Source>) -> Vec<String> {
    let too_long: Vec<_> = sources
        .filter(|source| {
            measure(&source.text).is_ok_and(|measured| file_problem(source, &measured).is_some())
        })
        .map(Source::shown)
        .collect();
    EXCEPTIONS
        .iter()
        .filter(|(path, _)| !too_long.iter().any(|known| known == path))
        .map(|(path, _)| format!("architecture/sizes.rs: take {path} out of EXCEPTIONS, it needs none"))
        .collect()
}

fn is_excepted(source: &Source) -> bool {
    EXCEPTIONS.iter().any(|(path, _)| source.shown() == *path)
}

fn file_problem(source: &Source, measured: &Measured) -> Option<String> {
    let all = source.text.lines().count();
    let (lines, max) = if source.is_test() {
        (all, TEST_FILE_LINES_MAX)
    } else {
        (all.saturating_sub(measured.test_lines), FILE_LINES_MAX)
    };
    let message = || {
        format!("{} has {lines} lines, at most {max} are allowed: split it by what it does", source.shown())
    };
    (lines > max).then(message)
}

/// What a file is made of.
#[derive(Default)]
struct Measured {
    /// Lines in `#[cfg(test)]` modules.
    test_lines: usize,
    functions: Vec<Function>,
}

struct Function {
    name: String,
    line: usize,
    lines: usize,
}

fn measure(text: &str) -> syn::Result<Measured> {
    let mut measure = Measure { lines: text.lines().collect(), found: Measured::default() };
    measure.visit_file(&syn::parse_file(text)?);
    Ok(measure.found)
}

struct Measure<'a> {
    lines: Vec<&'a str>,
    found: Measured,
}

impl Measure<'_> {
    fn function(&mut self, attributes: &[Attribute], signature: &Signature, block: &Block) {
        if expects(attributes, "clippy::too_many_lines") {
            return;
        }
        // The lines between the braces, as clippy counts them.
        let (open, close) =
            (block.brace_token.span.open().end().line, block.brace_token.span.close().start().line);
        let body = self.lines.get(open..close.saturating_sub(1)).unwrap_or_default();
        let counts = |line: &&&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
        self.found.functions.push(Function {
            name: signature.ident.to_string(),
            line: signature.span().start().line,
            lines: body.iter().filter(counts).count(),
        });
    }
}

impl<'ast> Visit<'ast> for Measure<'_> {
    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.function(&item.attrs, &item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.function(&item.attrs, &item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.attrs, &item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if is_test_only(&module.attrs) {
            let span = module.span();
            self.found.test_lines += span.end().line - span.start().line + 1;
        }
        visit::visit_item_mod(self, module);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: String) -> Source {
        Source { package: "api".into(), path: path.into(), text }
    }

    fn function(lines: usize) -> String {
        format!("fn long() {{\n{}}}\n", "    step();\n".repeat(lines))
    }

    #[track_caller]
    fn check(path: &str, text: String, problems: usize) {
        let found = too_long(&source(path, text));
        assert_eq!(found.len(), problems, "{found:?}");
        assert!(found.iter().all(|text| text.starts_with(&format!("api/{path}"))), "{found:?}");
    }

    #[test]
    fn a_long_function_is_named_wherever_it_is() {
        check("src/a.rs", function(70), 0);
        check("src/a.rs", function(71), 1);
        check("src/a.rs", format!("mod inner {{ impl X {{\n{}}} }}", function(71)), 1);
        check("src/a.rs", format!("trait X {{\n{}}}", function(71)), 1);
        check("src/a/tests.rs", function(71), 1);
    }

    #[test]
    fn blank_lines_and_comments_do_not_count() {
        check("src/a.rs", function(70).replacen("step();", "step();\n\n    // why\n    //", 1), 0);
    }

    #[test]
    fn a_long_function_may_be_expected_with_a_reason() {
        let reason = "#[expect(clippy::too_many_lines, reason = \"one line per arm\")]\n";
        check("src/a.rs", format!("{reason}{}", function(71)), 0);
        check("src/a.rs", format!("#[expect(clippy::too_many_lines)]\n{}", function(71)), 1);
        check("src/a.rs", format!("#[inline]\n{}", function(71)), 1);
    }

    #[test]
    fn a_long_file_is_named_and_its_tests_do_not_count() {
        let consts = |lines| "const X: u8 = 0;\n".repeat(lines);
        check("src/a.rs", consts(600), 0);
        check("src/a.rs", consts(601), 1);
        check("src/a.rs", format!("{}#[cfg(test)]\nmod tests {{\n{}}}\n", consts(600), consts(300)), 0);
        check("src/a.rs", format!("{}mod parts {{\n{}}}\n", consts(600), consts(3)), 1);
        check("src/a/tests.rs", consts(800), 0);
        check("src/a/tests.rs", consts(801), 1);
        check("tests/it/main.rs", consts(801), 1);
    }

    #[test]
    fn what_cannot_be_parsed_is_named() {
        check("src/a.rs", "fn (".into(), 1);
    }
}
