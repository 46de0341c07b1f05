//! Words that have a better one.

/// Words of no comment, message, page or name of a test, and their replacements.
pub(super) const WORDS: [(&str, &str); 16] = [
    ("nobody", "name the actor, or use the passive"),
    ("somebody", "another process, another user, a peer"),
    ("whoever", "the process that, a user who"),
    ("whom", "name the actor"),
    ("at work", "running, active"),
    ("is no", "is not a"),
    ("are no", "are not"),
    ("so many", "the number, as many as"),
    ("anew", "again, from scratch"),
    ("told", "notified, reported"),
    ("others than", "other than"),
    ("there twice", "duplicate"),
    ("are the most", "at most, the limit is"),
    ("makes no sense", "invalid, a violation of the protocol"),
    ("nothing says", "cannot infer, is missing"),
    ("no way leads", "unreachable"),
];

/// Words of no name of a test in addition: names have no apostrophes, and are short.
pub(super) const NAMES_WORDS: [(&str, &str); 2] =
    [("nobodys", "name the actor, or use the passive"), ("whatever", "every, any")];
