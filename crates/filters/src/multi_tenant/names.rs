//! Names with and without the tenant's prefix.

use moldau_protocol::names::{self, Verdict, Visitor};
use moldau_protocol::{Entity, Layout, RewriteError, Uuid};

/// The longest text that is searched for the prefix; those of Kafka are a line or two.
const EXPLANATION_BYTES_MAX: usize = 16 * 1024;

/// Puts the prefix before names.
pub(super) struct Adding<'p>(pub(super) &'p str);

/// Takes the prefix away; what has none belongs to others.
pub(super) struct Stripping<'p>(pub(super) &'p str);

/// Gathers topic ids.
#[derive(Default)]
pub(super) struct TopicIds(pub(super) Vec<Uuid>);

impl Visitor for Adding<'_> {
    fn text(&mut self, entity: Entity, text: &str, with: &mut String) -> Verdict {
        if entity == Entity::Explanation || is_never_valid(entity, text) {
            return Verdict::Keep;
        }
        with.push_str(self.0);
        with.push_str(text);
        Verdict::Replace
    }
}

impl Visitor for Stripping<'_> {
    fn text(&mut self, entity: Entity, text: &str, with: &mut String) -> Verdict {
        if entity == Entity::Explanation {
            return strip_words(self.0, text, with);
        }
        match text.strip_prefix(self.0) {
            // A topic whose name consists of the prefix is none that a tenant could name.
            Some("") if entity != Entity::GroupId => Verdict::Drop,
            Some(name) => {
                with.push_str(name);
                Verdict::Replace
            }
            None if is_never_valid(entity, text) => Verdict::Keep,
            None => Verdict::Drop,
        }
    }
}

impl Visitor for TopicIds {
    fn text(&mut self, _: Entity, _: &str, _: &mut String) -> Verdict {
        Verdict::Keep
    }

    fn topic_id(&mut self, id: Uuid) {
        if id != Uuid::ZERO {
            self.0.push(id);
        }
    }
}

/// Whether no cluster has a thing of this name. It stays as it is, so that the cluster refuses it,
/// while behind a prefix it would be as good as any.
fn is_never_valid(entity: Entity, name: &str) -> bool {
    match entity {
        Entity::TopicName => matches!(name, "" | "." | ".."),
        Entity::TransactionalId => name.is_empty(),
        _ => false,
    }
}

/// Takes the prefix away wherever a word begins with it.
fn strip_words(prefix: &str, text: &str, with: &mut String) -> Verdict {
    if !text.contains(prefix) || text.len() > EXPLANATION_BYTES_MAX {
        return Verdict::Keep;
    }
    let mut rest = text;
    while let Some(at) = rest.find(prefix) {
        let (before, found) = rest.split_at(at);
        with.push_str(before);
        let is_within = with.ends_with(|letter: char| {
            letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.')
        });
        if is_within {
            with.push_str(prefix);
        }
        rest = found.get(prefix.len()..).unwrap_or_default();
    }
    with.push_str(rest);
    Verdict::Replace
}

/// What a message of another layout becomes that begins with its version, as the messages within
/// classic groups do. A later version begins as the last that is known.
pub(super) fn rewrite_versioned(
    layout: &Layout,
    bytes: &[u8],
    visitor: &mut impl Visitor,
) -> Result<Vec<u8>, RewriteError> {
    let Some((version, body)) = bytes.split_first_chunk() else { return Ok(bytes.to_vec()) };
    let known = i16::from_be_bytes(*version).clamp(layout.versions.min, layout.versions.max);
    let edits = names::visit(layout, known, body, visitor)?;
    let mut out = version.to_vec();
    edits.apply(body, &mut out);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strip(entity: Entity, text: &str) -> (Verdict, String) {
        let mut with = String::new();
        let verdict = Stripping("a-").text(entity, text, &mut with);
        (verdict, with)
    }

    #[test]
    fn a_sentence_loses_the_prefix_where_words_begin() {
        let (verdict, text) = strip(Entity::Explanation, "Topic 'a-x' and a-y, not extra-a-z.");
        assert_eq!((verdict, &*text), (Verdict::Replace, "Topic 'x' and y, not extra-a-z."));
        assert_eq!(strip(Entity::Explanation, "nothing").0, Verdict::Keep);
    }

    #[test]
    fn names_of_others_are_dropped() {
        assert_eq!(strip(Entity::GroupId, "a-g"), (Verdict::Replace, "g".to_owned()));
        for other in ["g", "b-a-", "A-g", "a"] {
            assert_eq!(strip(Entity::GroupId, other).0, Verdict::Drop, "{other}");
        }
    }

    #[test]
    fn names_that_are_never_valid_stay_so() {
        for name in ["", ".", ".."] {
            let verdict = Adding("a-").text(Entity::TopicName, name, &mut String::new());
            assert_eq!(verdict, Verdict::Keep);
            assert_eq!(strip(Entity::TopicName, name).0, Verdict::Keep);
        }
        let verdict = Adding("a-").text(Entity::GroupId, "", &mut String::new());
        assert_eq!(verdict, Verdict::Replace);
    }
}
