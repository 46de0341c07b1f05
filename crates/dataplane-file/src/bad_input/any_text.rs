//! No text makes the parser panic or take long.

use proptest::prelude::*;

use super::file;
use crate::good_input::EVERYTHING;
use crate::parse;

#[test]
fn thousands_of_problems_take_little_time() {
    let mut text = file("tenants:\n  blue:\n    routes:");
    for n in 0..20_000 {
        text += &format!("      10.{}.{}.0/24: x{n}\n", n / 256, n % 256);
    }
    let problems = parse("dataplane.yaml", &text).unwrap_err();
    // The others are only counted.
    assert_eq!(problems.problems.len(), 1000);
    assert!(problems.to_string().ends_with("… and 19950 more problems"));
    let text = text.replace("/24: x", "/33: x");
    assert_eq!(parse("dataplane.yaml", &text).unwrap_err().problems.len(), 100);
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC*") {
        if let Err(problems) = parse("x", &text) {
            prop_assert!(!problems.problems.is_empty());
            problems.render(true);
        }
    }

    #[test]
    fn no_change_of_a_good_file_makes_it_panic(
        at in 0..EVERYTHING.len(),
        cut in 0_usize..40,
        insert in "[a-z0-9{}\\[\\],:/ \n.*&<-]{0,6}",
    ) {
        let end = (at + cut).min(EVERYTHING.len());
        let text = format!("{}{insert}{}", &EVERYTHING[..at], &EVERYTHING[end..]);
        if let Err(problems) = parse("x", &text) {
            prop_assert!(problems.to_string().contains("error: "));
        }
    }
}
