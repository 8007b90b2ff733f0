//! Named ranges of programs (NVTX), by which kernels are grouped: operators and modules of a framework, steps of a solver.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Between the names of a path.
const WITHIN: &str = " > ";

/// What PyTorch's `emit_nvtx` writes behind the name of an operator: numbers that differ from call to call, and the shapes of its operands.
const OF_A_CALL: [&str; 4] = [", seq = ", ", op_id = ", ", sizes = ", ", input_op_ids = "];

/// A range and those that it is in, outermost first: "step > forward > aten::mm".
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RangePath(Arc<str>);

impl RangePath {
    /// The range of this name in another one, or in none.
    pub fn within(outer: Option<&RangePath>, name: &str) -> RangePath {
        RangePath(match outer {
            Some(outer) => format!("{outer}{WITHIN}{name}").into(),
            None => name.into(),
        })
    }

    /// A path as it was written.
    pub fn read(text: &str) -> RangePath {
        RangePath(text.into())
    }

    /// The names, outermost first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.split(WITHIN)
    }

    /// It as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RangePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a range without what a framework adds for each call, so that all calls of an operator have one name.
pub fn range_name(told: &str) -> &str {
    let end = OF_A_CALL.iter().filter_map(|added| told.find(added)).min();
    end.map_or(told, |end| &told[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_calls_of_an_operator_have_one_name() {
        for (told, name) in [
            ("aten::addmm, op_id = 12", "aten::addmm"),
            ("AddmmBackward0, seq = 3, op_id = 4, sizes = [[2, 3], []]", "AddmmBackward0"),
            ("solve, second step", "solve, second step"),
            ("", ""),
        ] {
            assert_eq!(range_name(told), name);
        }
    }

    #[test]
    fn a_path_has_its_names_in_order() {
        let step = RangePath::within(None, "step");
        let operator = RangePath::within(Some(&step), "aten::mm");
        assert_eq!(operator.names().collect::<Vec<_>>(), ["step", "aten::mm"]);
        assert_eq!(RangePath::read("step > aten::mm"), operator);
    }
}
