//! Suggestions: "did you mean …?"

/// The candidate that `word` is most likely a misspelling of, if one is similar enough.
pub fn suggest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    // A long word is not a misspelled name, and the comparison takes time proportional to both
    // lengths.
    if word.len() > 64 {
        return None;
    }
    let allowed = match word.chars().count() {
        // All one-letter words have the same distance.
        0 | 1 => return None,
        length => (length / 3).clamp(1, 2),
    };
    candidates
        .into_iter()
        // A file may have a million names.
        .take(20_000)
        .filter(|candidate| candidate.len().abs_diff(word.len()) <= 4 * allowed)
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        // Of equal distances the first name in order, whatever the order of the candidates.
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_only() {
        assert_eq!(suggest("lniks", ["nodes", "links"]), Some("links"));
        assert_eq!(suggest("r11", ["r1", "h1"]), Some("r1"));
        assert_eq!(suggest("r1-r9", ["r1-r3", "r1-r2"]), Some("r1-r2"));
        assert_eq!(suggest("bananas", ["nodes", "links"]), None);
        assert_eq!(suggest("x", ["l", "r"]), None);
        assert_eq!(suggest("attachments", ["attachmnt", "allotments"]), Some("attachmnt"));
        assert_eq!(suggest("attachments", ["allotments"]), None);
    }
}
