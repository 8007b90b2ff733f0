//! `pathfinder`: the cheapest ways through a grid, row by row.

use crate::comparison::Comparisons;
use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::integers;
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Queue, Script, ScriptedProgram, Shape};

const BLOCK: u32 = 256;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "pathfinder",
    summary: "cheapest ways through a grid: dynamic programming over rows, several rows in shared memory a launch",
    parameters: &[
        integer("columns", 20_000, 1, 1 << 22, "columns of the grid"),
        integer("rows", 41, 2, 1024, "rows of the grid"),
        integer("steps", 20, 1, 127, "rows of one launch, the width of a strip's ghost zone"),
        SEED,
    ],
    code: code!("pathfinder"),
    cubins: cubins!("pathfinder"),
    small: "columns=1000,rows=12,steps=4",
    build,
};

/// The cost of the cheapest way to each cell of the last row.
fn cheapest(costs: &[i32], columns: usize) -> Vec<i32> {
    let mut rows = costs.chunks_exact(columns);
    let mut now = rows.next().map(<[i32]>::to_vec).unwrap_or_default();
    for row in rows {
        let next = (0..columns).map(|column| {
            let above = &now[column.saturating_sub(1)..(column + 2).min(columns)];
            above.iter().min().map_or(0, |least| least + row[column])
        });
        now = next.collect();
    }
    now
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let (columns, rows) = (parameters.small("columns"), parameters.small("rows"));
    let cells = columns as usize * rows as usize;
    if cells > 1 << 28 {
        return Err(WorkloadError::Inconsistent {
            workload: DESCRIPTOR.name,
            message: format!("columns * rows = {cells} exceeds 2^28"),
        });
    }
    let costs: Vec<i32> =
        integers(parameters.integer("seed"), 0, cells).into_iter().map(|bits| (bits % 10) as i32).collect();

    let mut script = Script::default();
    let device_costs = script.allocate_with(&costs);
    let mut from = script.allocate_with(&costs[..columns as usize]);
    let mut to = script.allocate(u64::from(columns) * 4);
    let mut first_row = 1;
    while first_row < rows {
        let steps = parameters.small("steps").min(rows - first_row);
        let [costs, from_row, to_row] = [device_costs, from, to].map(Argument::Buffer);
        let arguments =
            [costs, from_row, to_row, Argument::U32(columns), Argument::U32(first_row), Argument::U32(steps)];
        let shape = Shape::linear(columns.div_ceil(BLOCK - 2 * steps), BLOCK);
        script.launch("pathfinder", shape, &arguments);
        std::mem::swap(&mut from, &mut to);
        first_row += steps;
    }
    let result = script.download(from, u64::from(columns) * 4, Queue::Default);
    for buffer in [device_costs, from, to] {
        script.release(buffer);
    }
    let mut comparisons = Comparisons::default();
    comparisons.add(result, "the cost of column", cheapest(&costs, columns as usize));
    script.finish(comparisons)
}
