//! Maps a topic to the alias of its key.

use crate::Error;

/// A template such as `KEK_$(topicName)`, from which each topic's alias is made. One without the
/// variable gives all topics the same key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KekTemplate {
    /// What stands between the places of the topic's name; never empty.
    parts: Vec<String>,
}

impl KekTemplate {
    /// Reads a template.
    ///
    /// # Errors
    /// [`Error::Setting`] if it is empty or has a variable other than `$(topicName)`.
    pub fn parse(template: &str) -> Result<Self, Error> {
        let fault = |reason: String| Error::Setting { setting: "template", reason };
        if template.is_empty() {
            return Err(fault("it is empty".to_owned()));
        }
        let parts: Vec<String> = template.split(TOPIC_NAME).map(str::to_owned).collect();
        // A variable may not arise from what stands around another.
        let other = parts.iter().find_map(|part| {
            let (_, after) = part.split_once("$(")?;
            Some(after.split_once(')').map_or(after, |(name, _)| name))
        });
        match other {
            Some(name) => Err(fault(format!("$({name}) is not known, {TOPIC_NAME} is"))),
            None => Ok(Self { parts }),
        }
    }

    /// The alias of the key of `topic`.
    #[must_use]
    pub fn alias(&self, topic: &str) -> String {
        self.parts.join(topic)
    }
}

const TOPIC_NAME: &str = "$(topicName)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_takes_the_place_of_the_variable() {
        for (template, alias) in [
            ("KEK_$(topicName)", "KEK_orders"),
            ("$(topicName)", "orders"),
            ("a/$(topicName)/$(topicName).b", "a/orders/orders.b"),
            ("shared", "shared"),
            ("cost$", "cost$"),
        ] {
            assert_eq!(KekTemplate::parse(template).unwrap().alias("orders"), alias);
        }
        let nested = KekTemplate::parse("KEK_$(topicName)").unwrap().alias("$(topicName)");
        assert_eq!(nested, "KEK_$(topicName)");
    }

    #[test]
    fn another_variable_or_none_at_all_is_refused() {
        for (template, reason) in [
            ("", "template: it is empty"),
            ("$(topic)", "template: $(topic) is not known, $(topicName) is"),
            ("$(topicName)$(", "template: $() is not known, $(topicName) is"),
        ] {
            assert_eq!(KekTemplate::parse(template).unwrap_err().to_string(), reason);
        }
    }
}
