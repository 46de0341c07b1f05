//! Lists of names in messages.

/// Maximum number of names in a list.
const MAX_LISTED: usize = 10;

/// Returns `a, b, c`, and the number of further names. A file can have as many names as errors.
pub fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let mut names = names.into_iter();
    let mut list = names.by_ref().take(MAX_LISTED).collect::<Vec<_>>().join(", ");
    let more = names.count();
    if more > 0 {
        list.push_str(&format!(" and {more} more"));
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut() {
        assert_eq!(listed(["a", "b"]), "a, b");
        assert_eq!(listed(std::iter::repeat_n("a", 12)), "a, a, a, a, a, a, a, a, a, a and 2 more");
    }
}
