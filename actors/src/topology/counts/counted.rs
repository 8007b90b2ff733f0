//! A row whose number of units was set.

use crate::topology::ExpandedUnit;
use crate::topology::options::COMMAND_LINE;
use crate::topology::source::Location;

/// A row whose number of units was set.
#[derive(Clone, Debug)]
pub(crate) struct Counted {
    /// The row: "gpu.l2".
    pub(crate) path: String,
    /// Units that were asked for.
    pub(crate) count: u32,
    /// Units that the files write.
    pub(crate) written: u32,
    /// Where the number is given.
    pub(crate) place: Location,
}

impl Counted {
    /// Does the row differ from what the files write?
    pub(crate) fn is_changed(&self) -> bool {
        self.count != self.written
    }

    /// Where the number comes from: "--set gpu.l2.count=64", "mine.ron:12".
    pub(crate) fn origin(&self) -> String {
        match self.place.file.name.as_str() {
            COMMAND_LINE => {
                format!("{} {}", COMMAND_LINE, self.place.file.text.split_whitespace().collect::<String>())
            }
            _ => self.place.to_string(),
        }
    }

    /// Is this unit a member of the row?
    pub(crate) fn has(&self, unit: &ExpandedUnit) -> bool {
        unit.path.strip_prefix(&self.path).is_some_and(|rest| rest.starts_with('['))
    }
}
