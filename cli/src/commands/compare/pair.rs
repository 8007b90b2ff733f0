//! Two values of one thing.

use serde::Serialize;

/// Two values of one thing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pair<T> {
    /// In the first run.
    pub before: T,
    /// In the second run.
    pub after: T,
}

impl<T> Pair<T> {
    /// Both made into something else.
    pub fn map<U>(self, of: impl Fn(T) -> U) -> Pair<U> {
        Pair { before: of(self.before), after: of(self.after) }
    }
}

impl Pair<f64> {
    /// The second less the first.
    pub fn change(self) -> f64 {
        self.after - self.before
    }

    /// The change in percent of the first; `None` where that is zero.
    pub fn percent(self) -> Option<f64> {
        (self.before != 0.0).then(|| self.change() / self.before * 100.0)
    }
}
