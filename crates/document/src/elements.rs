//! The elements of lists and maps, for `de`. Errors of skipped elements are recorded.

use std::cell::RefCell;

use serde::de;

use super::MAX_MISFITS;
use super::de::De;
use super::error::Error;
use super::tree::{Entry, Step, Tree};

/// Common state of a list and a map: the errors of their elements.
pub(super) struct Within<'t> {
    passed_over: &'t RefCell<Vec<Error>>,
    /// Error of the last element; recorded as skipped if the visitor requests the next element.
    failed: Option<Error>,
}

impl<'t> Within<'t> {
    pub(super) fn new(de: De<'t>) -> Self {
        Self { passed_over: de.passed_over, failed: None }
    }

    /// Called before each element. Returns false if there are too many errors.
    fn goes_on(&mut self) -> bool {
        let mut passed_over = self.passed_over.borrow_mut();
        passed_over.extend(self.failed.take());
        passed_over.len() < MAX_MISFITS
    }

    /// Deserializes an element.
    fn read<'de, S: de::DeserializeSeed<'de>>(
        &mut self,
        seed: S,
        tree: &Tree,
        step: impl Fn() -> Step,
    ) -> Result<S::Value, Error> {
        let before = self.passed_over.borrow().len();
        let result = seed.deserialize(De { tree, passed_over: self.passed_over });
        for error in self.passed_over.borrow_mut().iter_mut().skip(before) {
            error.path.push(step());
        }
        // Some types validate their text only after the deserializer has returned.
        result.map_err(|error| self.fail(error.at(tree.span).under(step())))
    }

    fn fail(&mut self, error: Error) -> Error {
        self.failed = Some(error.clone());
        error
    }
}

pub(super) struct List<'t> {
    pub(super) items: &'t [Tree],
    pub(super) next: usize,
    pub(super) within: Within<'t>,
}

impl<'de> de::SeqAccess<'de> for List<'_> {
    type Error = Error;

    fn next_element_seed<T: de::DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        if !self.within.goes_on() {
            return Ok(None);
        }
        let Some(item) = self.items.get(self.next) else { return Ok(None) };
        let index = self.next;
        self.next += 1;
        self.within.read(seed, item, || Step::Index(index)).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len() - self.next)
    }
}

pub(super) struct Map<'t> {
    pub(super) entries: &'t [Entry],
    /// Index of the next key's entry; the next value is that of the preceding entry.
    pub(super) next: usize,
    pub(super) within: Within<'t>,
}

impl<'de> de::MapAccess<'de> for Map<'_> {
    type Error = Error;

    fn next_key_seed<K: de::DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        if !self.within.goes_on() {
            return Ok(None);
        }
        let Some(entry) = self.entries.get(self.next) else { return Ok(None) };
        self.next += 1;
        let key = seed.deserialize(de::value::StrDeserializer::<Error>::new(&entry.key));
        key.map(Some).map_err(|error| {
            self.within.fail(error.at(entry.span).under(Step::Key(entry.key.clone())))
        })
    }

    fn next_value_seed<V: de::DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let entry = &self.entries[self.next - 1];
        self.within.read(seed, &entry.value, || Step::Key(entry.key.clone()))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.entries.len() - self.next)
    }
}
