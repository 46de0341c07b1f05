//! Bounds of messages, which quote values of any length.

use std::borrow::Cow;

/// Characters of a value that a message shows.
pub(crate) const MOST_SHOWN: usize = 200;
/// Characters of a message: a value may contain quotes.
const LONGEST: usize = 4000;

/// Returns the first characters of a text.
pub(crate) fn begin(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// Cuts the quoted values of a message.
pub(crate) fn cut(message: String) -> String {
    if message.len() <= MOST_SHOWN {
        return message;
    }
    let piece = |(at, piece)| if at % 2 == 1 { begin(piece, MOST_SHOWN) } else { piece.into() };
    let pieces: Vec<Cow<'_, str>> = message.split('`').enumerate().map(piece).collect();
    begin(&pieces.join("`"), LONGEST).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_values_are_cut() {
        let long = "ö".repeat(1_000_000);
        let said = cut(format!("`{long}` cannot name it, and `x` can"));
        assert_eq!(said, format!("`{}…` cannot name it, and `x` can", "ö".repeat(MOST_SHOWN)));
        // The value has quotes of its own.
        assert!(cut(format!("`{}` and `{long}", "`x".repeat(3))).chars().count() <= LONGEST + 1);
        let list = "no value, ".repeat(50);
        assert_eq!(cut(list.clone()), list);
    }
}
