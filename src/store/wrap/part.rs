//! Some of a batch's items as a batch of their own.

use alloc::vec::Vec;

use crate::algorithm::Algorithm;
use crate::decision::Decision;
use crate::request::Request;
use crate::store::batch::Item;
use crate::store::error::StoreError;

/// What a wrapper passes on of a batch, and where the answers belong.
pub(super) struct Part<'a, K: ?Sized, A> {
    pub(super) items: Vec<Item<'a, K, A>>,
    places: Vec<usize>,
}

impl<'a, K: ?Sized, A: Algorithm> Part<'a, K, A> {
    pub(super) const fn new() -> Self {
        Self {
            items: Vec::new(),
            places: Vec::new(),
        }
    }

    /// Everything that is still open.
    pub(super) fn all(whole: &mut [Item<'a, K, A>]) -> Self {
        let mut part = Self::new();
        for (place, item) in whole.iter_mut().enumerate() {
            if let Some(request) = item.take_request() {
                part.push(place, item.key(), item.algorithm(), request);
            }
        }
        part
    }

    /// Passes `request` on, for the item at `place`.
    pub(super) fn push(&mut self, place: usize, key: &'a K, algorithm: &'a A, request: Request) {
        self.places.push(place);
        self.items.push(Item::new(key, algorithm, request));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The answers and the places they are for, in the order of the pushes.
    pub(super) fn into_results(
        self,
    ) -> impl Iterator<Item = (usize, Result<Decision, StoreError>)> + use<'a, K, A> {
        let results = self.items.into_iter().map(Item::into_result);
        self.places.into_iter().zip(results)
    }

    /// Brings the answers home.
    pub(super) fn settle<L: ?Sized, B: Algorithm>(self, whole: &mut [Item<'_, L, B>]) {
        for (place, result) in self.into_results() {
            if let Some(item) = whole.get_mut(place) {
                item.set_result(result);
            }
        }
    }
}
