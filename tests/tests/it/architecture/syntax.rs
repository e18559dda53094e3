//! What several checks ask of the syntax tree.

use syn::{Attribute, Meta};

/// Whether the code is compiled for tests alone.
pub(super) fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        Meta::Path(_) | Meta::NameValue(_) => false,
    })
}

/// Whether a clippy lint is expected to fire here, with a reason.
pub(super) fn expects(attributes: &[Attribute], lint: &str) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => {
            let tokens = list.tokens.to_string().replace(' ', "");
            list.path.is_ident("expect") && tokens.contains(lint) && tokens.contains("reason=")
        }
        Meta::Path(_) | Meta::NameValue(_) => false,
    })
}
