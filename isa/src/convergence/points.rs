//! Points: where lanes wait for the lanes they parted from.
//!
//! Points are nested. The running split knows the innermost point that it will come to, and each point knows the one around it.

use serde::{Deserialize, Serialize};

/// Stands for "no point": these lanes meet no others.
pub(super) const NO_POINT: u16 = u16::MAX;

/// Where lanes wait for those they parted from. A free point has no lanes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Point {
    /// Where the lanes go on.
    pub pc: u32,
    /// Lanes come here by a return from a function, not by their program counter.
    pub is_call: bool,
    /// Lanes that are here.
    pub waiting: u32,
    /// Lanes that may still come.
    pub outstanding: u32,
    /// The point around this one.
    pub parent: u16,
}

/// The points of a warp by number.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Points {
    places: Vec<Point>,
    /// Numbers of points that are not in use.
    free: Vec<u16>,
}

impl Points {
    pub fn clear(&mut self) {
        self.places.clear();
        self.free.clear();
    }

    /// Whether no point is in use.
    pub fn is_empty(&self) -> bool {
        self.places.len() == self.free.len()
    }

    /// Numbers from 0 to before this one have been points; the free ones among them have no lanes.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// The point of a number; nothing for [`NO_POINT`].
    pub fn get(&self, number: u16) -> Option<&Point> {
        self.places.get(usize::from(number))
    }

    /// The same to change.
    pub fn get_mut(&mut self, number: u16) -> Option<&mut Point> {
        self.places.get_mut(usize::from(number))
    }

    /// Makes a point and gives its number.
    pub fn add(&mut self, point: Point) -> u16 {
        if let Some(number) = self.free.pop() {
            self.places[usize::from(number)] = point;
            return number;
        }
        self.places.push(point);
        // There is at most one point for each lane, frame of its stack and level of the post-dominator tree that it is in: the
        // stack's limit is what bounds them.
        (self.places.len() - 1) as u16
    }

    /// The number may be used again.
    pub fn release(&mut self, number: u16) {
        if let Some(point) = self.get_mut(number) {
            (point.waiting, point.outstanding) = (0, 0);
            self.free.push(number);
        }
    }

    /// A point and those around it, from the innermost outwards.
    pub fn outwards(&self, number: u16) -> impl Iterator<Item = &Point> {
        std::iter::successors(self.get(number), |point| self.get(point.parent))
    }

    /// Lanes will not come to this point, nor to those around it.
    pub fn expect_no_longer(&mut self, mut number: u16, mask: u32) {
        while let Some(point) = self.get_mut(number) {
            point.outstanding &= !mask;
            number = point.parent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_used_again_and_lead_outwards() {
        let point = |pc, parent| Point { pc, is_call: false, waiting: 1, outstanding: 6, parent };
        let mut points = Points::default();
        let outer = points.add(point(20, NO_POINT));
        let inner = points.add(point(10, outer));
        let path = |points: &Points, number| points.outwards(number).map(|point| point.pc).collect::<Vec<_>>();
        assert_eq!(path(&points, inner), [10, 20]);
        assert_eq!(path(&points, NO_POINT), [0; 0]);
        points.expect_no_longer(inner, 2);
        assert!(points.outwards(inner).all(|point| point.outstanding == 4));
        points.release(inner);
        assert!(points.get(inner).is_some_and(|point| point.waiting | point.outstanding == 0) && !points.is_empty());
        assert_eq!(points.add(point(30, outer)), inner, "the number of the point that was released");
        assert_eq!((path(&points, inner), points.len()), (vec![30, 20], 2));
        points.release(inner);
        points.release(outer);
        assert!(points.is_empty());
    }
}
