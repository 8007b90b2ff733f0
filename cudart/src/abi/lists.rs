//! Lists that programs ask graphs for.

use super::arguments::Out;
use super::graph::EdgeData;
use balar_host::CudaError;

/// Writes a list as CUDA does: its length alone where there is no place for elements, else as many elements as there is place for.
/// The places that are left are zero.
pub fn give<T: Copy + Default>(values: &[T], into: Out<T>, count: Out<usize>) -> Result<(), CudaError> {
    count.check()?;
    if into.is_null() {
        return count.set(values.len());
    }
    // SAFETY: a place that is not null holds the number of elements that there is place for.
    let places = unsafe { count.pointer().read_unaligned() };
    for place in 0..places {
        // SAFETY: the caller says that there are so many places.
        unsafe { into.pointer().add(place).write_unaligned(values.get(place).copied().unwrap_or_default()) };
    }
    count.set(values.len().min(places))
}

/// Writes several lists of the same length, and the data of the edges that they are about. Refused where the program does not ask for
/// the data and would miss something.
fn give_with_data(
    lists: &[(Vec<u64>, Out<u64>)],
    data: &[EdgeData],
    into: Out<EdgeData>,
    count: Out<usize>,
) -> Result<(), CudaError> {
    count.check()?;
    // SAFETY: a place that is not null holds a number.
    let places = unsafe { count.pointer().read_unaligned() };
    let is_asked = lists.iter().all(|(_, into)| !into.is_null());
    match (into.is_null(), is_asked) {
        (false, true) => give(data, into, count)?,
        (false, false) => return Err(CudaError::InvalidValue),
        (true, true) if data.iter().any(|data| *data != EdgeData::default()) => return Err(CudaError::LossyQuery),
        (true, _) => {}
    }
    for (list, into) in lists {
        count.set(places)?;
        give(list, *into, count)?;
    }
    Ok(())
}

/// Where a list of nodes goes, with the data of the edges to or from them.
#[derive(Clone, Copy, Debug)]
pub struct NodePlaces {
    /// The nodes.
    pub nodes: Out<u64>,
    /// The edges' data.
    pub data: Out<EdgeData>,
    /// How many places there are; then how many nodes.
    pub count: Out<usize>,
}

impl NodePlaces {
    /// Writes the list.
    pub fn write(&self, list: &[(u64, EdgeData)]) -> Result<(), CudaError> {
        let (nodes, data): (Vec<u64>, Vec<EdgeData>) = list.iter().copied().unzip();
        give_with_data(&[(nodes, self.nodes)], &data, self.data, self.count)
    }
}

/// Where a list of edges goes.
#[derive(Clone, Copy, Debug)]
pub struct EdgePlaces {
    /// The nodes that come first.
    pub from: Out<u64>,
    /// The nodes that wait.
    pub to: Out<u64>,
    /// The edges' data.
    pub data: Out<EdgeData>,
    /// How many places there are; then how many edges.
    pub count: Out<usize>,
}

impl EdgePlaces {
    /// Refuses a place for one end of edges without one for the other.
    pub fn check(&self) -> Result<(), CudaError> {
        if self.from.is_null() == self.to.is_null() { Ok(()) } else { Err(CudaError::InvalidValue) }
    }

    /// Writes the list: both ends of each edge, and its data.
    pub fn write(&self, list: &[(u64, u64, EdgeData)]) -> Result<(), CudaError> {
        let firsts = list.iter().map(|(from, ..)| *from).collect();
        let seconds = list.iter().map(|(_, to, _)| *to).collect();
        let data: Vec<EdgeData> = list.iter().map(|(.., data)| *data).collect();
        give_with_data(&[(firsts, self.from), (seconds, self.to)], &data, self.data, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_given_as_far_as_there_is_place() {
        let values = [5_u64, 6, 7];
        let mut count = 0_usize;
        // SAFETY: the places outlive their use.
        let place = unsafe { Out::new(&raw mut count) };
        assert_eq!(give(&values, Out::nowhere(), place), Ok(()));
        assert_eq!(count, 3);
        for (places, expected, given) in [(2, [5, 6, 9, 9], 2), (4, [5, 6, 7, 0], 3)] {
            let mut list = [9_u64; 4];
            let mut count: usize = places;
            // SAFETY: the places outlive their use.
            let outcome = unsafe { give(&values, Out::new(list.as_mut_ptr()), Out::new(&raw mut count)) };
            assert_eq!((outcome, list, count), (Ok(()), expected, given));
        }
    }
}
