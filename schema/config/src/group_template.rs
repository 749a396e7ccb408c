//! Constants and labels of the channels that a group makes: their texts are templates. They are
//! written as those of a single channel, and the schema has one message for both.

use crate::message::message;
use crate::template::Template;
use crate::{Constant, StringConstant};

message! {
    /// A constant of each channel.
    ConstantTemplate {
        /// Its name.
        name: String,
        /// Its text.
        string: StringTemplate,
    }
}

message! {
    /// What a constant comes to.
    StringTemplate {
        /// The text.
        value: Template,
    }
}

message! {
    /// A label of each channel.
    LabelTemplate {
        /// Its key.
        label: String,
        /// Its value.
        value: Template,
    }
}

impl ConstantTemplate {
    /// The constant with its text as it stands.
    pub(super) fn as_written(&self) -> Constant {
        let string = StringConstant { value: self.string.value.to_string() };
        Constant { name: self.name.clone(), string }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Label;

    /// The fields of a message and of those in it, without what is said of them.
    fn fields<T: schemars::JsonSchema>() -> Value {
        fn bare(value: &Value, root: &Value) -> Value {
            let inner = value.get("$ref").or_else(|| value.pointer("/allOf/0/$ref"));
            if let Some(pointer) = inner.and_then(Value::as_str) {
                return bare(root.pointer(&pointer[1..]).unwrap(), root);
            }
            let properties = value["properties"].as_object().into_iter().flatten();
            let properties: serde_json::Map<_, _> =
                properties.map(|(name, field)| (name.clone(), bare(field, root))).collect();
            json!([value["type"], value["required"], properties])
        }
        let root = crate::json_schema::of::<T>();
        bare(&root, &root)
    }

    #[test]
    fn what_a_group_says_is_written_as_for_a_channel() {
        assert_eq!(fields::<ConstantTemplate>(), fields::<Constant>());
        assert_eq!(fields::<LabelTemplate>(), fields::<Label>());
        let value = fields::<Constant>();
        assert_eq!(value.pointer("/2/string/2/value/0"), Some(&"string".into()), "{value}");
    }
}
