//! Rust names for Kafka's names.

/// `TopicId` or `topicId` as `topic_id`, not yet safe against keywords.
pub(crate) fn snake(name: &str) -> String {
    // KRaft is one word.
    let letters: Vec<char> = name.replace("KRaft", "Kraft").chars().collect();
    let mut out = String::new();
    for (index, letter) in letters.iter().enumerate() {
        let starts_word = letter.is_ascii_uppercase()
            && index > 0
            && (!letters[index - 1].is_ascii_uppercase()
                || letters.get(index + 1).is_some_and(char::is_ascii_lowercase));
        if starts_word {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

/// The Rust name of a field.
pub(crate) fn field(name: &str) -> String {
    let name = snake(name);
    match name.as_str() {
        "type" | "match" => format!("r#{name}"),
        _ => name,
    }
}

/// A message's name without `Request` or `Response`.
pub(crate) fn api(message: &str) -> &str {
    message.strip_suffix("Request").or_else(|| message.strip_suffix("Response")).unwrap_or(message)
}
