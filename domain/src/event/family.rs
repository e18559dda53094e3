//! How a family is written down: one line per event, with its type and category beside it.

/// Declares the enum of a family and what the catalogue needs to know about each variant.
macro_rules! family {
    (
        $(#[$doc:meta])*
        pub enum $family:ident {
            $($(#[$variant_doc:meta])* $variant:ident($payload:ty) = $event_type:literal in $category:ident,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub enum $family {
            $($(#[$variant_doc])* $variant($payload),)*
        }

        impl $family {
            /// The types of this family and their categories.
            pub(super) const TYPES: &'static [(&'static str, $crate::event::Category)] =
                &[$(($event_type, $crate::event::Category::$category),)*];

            /// The name in the record.
            pub const fn event_type(&self) -> &'static str {
                match self { $(Self::$variant(_) => $event_type,)* }
            }

            /// The category in the record.
            pub const fn category(&self) -> $crate::event::Category {
                match self { $(Self::$variant(_) => $crate::event::Category::$category,)* }
            }

            pub(super) fn content(&self) -> Result<serde_json::Value, serde_json::Error> {
                match self { $(Self::$variant(payload) => serde_json::to_value(payload),)* }
            }

            pub(super) fn parse(event_type: &str, content: &str) -> Option<Result<Self, serde_json::Error>> {
                match event_type {
                    $($event_type => Some(serde_json::from_str(content).map(Self::$variant)),)*
                    _ => None,
                }
            }
        }
    };
}

pub(super) use family;
