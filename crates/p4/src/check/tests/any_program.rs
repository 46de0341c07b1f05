//! Mutations of a program that uses the whole language.

use proptest::prelude::*;

use super::*;
use crate::interpret::Machine;

const WHOLE: &str = include_str!("../../../tests/programs/whole.p4");

#[test]
fn is_accepted_as_it_is() {
    accepts(&check(WHOLE));
}

/// The program, with some words replaced by others.
fn changed() -> impl Strategy<Value = String> {
    let words: Vec<&str> = WHOLE.split_inclusive([' ', '.', '(', '<', ';', ',']).collect();
    let change = (0..words.len(), 0..words.len());
    prop::collection::vec(change, 1..6).prop_map(move |changes| {
        let mut words = words.clone();
        for (at, from) in changes {
            words[at] = words[from];
        }
        words.concat()
    })
}

proptest! {
    #[test]
    fn is_understood_or_refused(text in changed()) {
        let checked = check(&text);
        prop_assert!(checked.diagnostics.has_errors() || checked.program.main.is_some());
        if !checked.diagnostics.has_errors() {
            let mut machine = Machine::new(&checked.program).unwrap();
            let packet: Vec<u8> = (0..64).collect();
            let outcome = machine.run(1, &packet);
            prop_assert!(outcome.is_ok(), "{:?}", outcome);
        }
        said(&checked);
    }
}
