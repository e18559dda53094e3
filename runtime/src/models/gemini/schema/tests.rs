use proptest::prelude::*;

use super::*;

/// What becomes of one property.
#[track_caller]
fn check(property: Value, expected: Value) {
    let schema = json!({"type": "object", "properties": {"p": property}});
    let kept = parameters(&schema).unwrap();
    assert_eq!(kept["properties"]["p"], expected, "{property}");
}

#[test]
fn what_gemini_refuses_is_left_out() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": {}, "title": "Args",
        "type": "object", "additionalProperties": false, "required": ["path", "gone"],
        "properties": {
            "path": {"type": "string", "description": "a path", "format": "uri", "examples": ["/a"]},
            "limit": {"type": "integer", "minimum": 1, "exclusiveMaximum": 10, "default": 5, "format": "uint32"},
        },
    });
    assert_eq!(
        parameters(&schema).unwrap(),
        json!({
            "title": "Args", "type": "object", "required": ["path"],
            "properties": {
                "path": {"type": "string", "description": "a path"},
                "limit": {"type": "integer", "minimum": 1},
            },
        })
    );
}

#[test]
fn a_function_without_parameters_has_none() {
    for schema in
        [json!({"type": "object"}), json!({"type": "object", "properties": {}}), json!({}), json!(true)]
    {
        assert_eq!(parameters(&schema), None, "{schema}");
    }
    check(json!({"type": "object", "properties": {}}), json!({"type": "object"}));
    check(json!({"type": "object", "additionalProperties": {"type": "string"}}), json!({"type": "object"}));
    check(json!(true), json!({"type": "object"}));
}

#[test]
fn nothing_is_a_mark_and_several_types_are_a_choice() {
    check(json!({"type": ["string", "null"]}), json!({"type": "string", "nullable": true}));
    check(
        json!({"type": ["string", "array"], "items": {"type": "integer"}}),
        json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]}),
    );
    check(
        json!({"anyOf": [{"type": "integer"}, {"type": "null"}], "description": "d"}),
        json!({"type": "integer", "nullable": true, "description": "d"}),
    );
    check(
        json!({"oneOf": [{"type": "integer"}, {"type": "string"}]}),
        json!({"anyOf": [{"type": "integer"}, {"type": "string"}]}),
    );
}

#[test]
fn values_are_texts() {
    check(json!({"enum": ["a", "b"]}), json!({"type": "string", "enum": ["a", "b"]}));
    check(json!({"const": "a"}), json!({"type": "string", "enum": ["a"]}));
    check(json!({"type": "integer", "enum": [1, 2]}), json!({"type": "integer"}));
    check(
        json!({"type": ["string", "null"], "enum": ["a", null]}),
        json!({"type": "string", "nullable": true, "enum": ["a"]}),
    );
}

#[test]
fn lists_say_of_what() {
    check(json!({"type": "array"}), json!({"type": "array", "items": {"type": "string"}}));
    check(
        json!({"items": {"type": "integer", "multipleOf": 2}}),
        json!({"type": "array", "items": {"type": "integer"}}),
    );
}

#[test]
fn references_are_followed_to_an_end() {
    let schema = json!({
        "$defs": {
            "Leaf": {"type": "string", "$comment": "x"},
            "Tree": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Tree"}}},
        },
        "type": "object",
        "properties": {
            "leaf": {"$ref": "#/$defs/Leaf"},
            "one": {"allOf": [{"$ref": "#/$defs/Leaf"}]},
            "tree": {"$ref": "#/$defs/Tree"},
            "lost": {"$ref": "#/$defs/Nothing"},
            "round": {"$ref": "#/properties/round"},
        },
    });
    let kept = parameters(&schema).unwrap();
    assert_eq!(kept["properties"]["leaf"], json!({"type": "string"}));
    assert_eq!(kept["properties"]["one"], json!({"type": "string"}));
    let text = kept.to_string();
    assert!(!text.contains("$ref") && text.len() < 4_000, "{text}");
}

#[test]
fn a_schema_that_grows_without_end_is_bounded() {
    let node = json!({"type": "object", "properties":
        {"a": {"$ref": "#"}, "b": {"$ref": "#"}, "c": {"$ref": "#"}}});
    assert!(parameters(&node).unwrap().to_string().len() < 200_000);
    check(json!({"description": "anything"}), json!({"type": "string", "description": "anything"}));
}

fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string", "format": "email"})),
        Just(json!({"type": ["integer", "null"]})),
        Just(json!({"$ref": "#/properties/a"})),
        Just(json!(true)),
        Just(json!({"const": 1})),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            prop::collection::btree_map("[abc]", inner.clone(), 0..3)
                .prop_map(|properties| json!({"type": "object", "properties": properties, "required": ["a"],
                    "additionalProperties": false})),
            inner.clone().prop_map(|items| json!({"type": "array", "items": items, "uniqueItems": true})),
            prop::collection::vec(inner.clone(), 1..3).prop_map(|list| json!({"oneOf": list})),
            prop::collection::vec(inner, 1..3).prop_map(|list| json!({"allOf": list, "not": {}})),
        ]
    })
}

/// Every keyword of a kept schema is one that Gemini knows, and what must not be empty is not.
fn assert_known(schema: &Value) {
    for (keyword, value) in schema.as_object().unwrap() {
        match keyword.as_str() {
            "properties" => {
                assert!(!value.as_object().unwrap().is_empty());
                value.as_object().unwrap().values().for_each(assert_known);
            }
            "items" => assert_known(value),
            "anyOf" => value.as_array().unwrap().iter().for_each(assert_known),
            "type" | "nullable" | "enum" | "required" => {}
            other => panic!("{other}: {value}"),
        }
    }
}

proptest! {
    #[test]
    fn whatever_the_schema_only_known_keywords_are_left(property in any_schema()) {
        let schema = json!({"type": "object", "properties": {"a": property}});
        if let Some(kept) = parameters(&schema) {
            assert_known(&kept);
        }
    }
}
