//! The questions to which wrappers have nothing to add.

/// The methods of the named trait that go to the field `store` as they are: what limits it accepts, how it tells keys apart,
/// what its clock shows.
macro_rules! passed_on {
    (Store) => {
        fn try_accepts(&self, algorithm: &A) -> Result<(), InvalidLimit> {
            self.store.try_accepts(algorithm)
        }

        fn try_fingerprint(&self, key: &K) -> u64 {
            self.store.try_fingerprint(key)
        }
    };
    (AsyncStore) => {
        fn accepts_async(&self, algorithm: &A) -> Result<(), InvalidLimit> {
            self.store.accepts_async(algorithm)
        }

        fn fingerprint_of(&self, key: &K) -> u64 {
            self.store.fingerprint_of(key)
        }
    };
    (InProcess for $wrapper:ident<S $(, $parameter:ident)?>) => {
        impl<S: InProcess $(, $parameter)?> InProcess for $wrapper<S $(, $parameter)?> {
            fn now(&self) -> Timestamp {
                self.store.now()
            }
        }
    };
}
pub(super) use passed_on;
