//! Rectangles at any angle: what texts and marks take of a drawing, and what meets them.

/// A straight line between two places, in pixels.
pub(crate) type Segment = [(i32, i32); 2];
/// A place between pixels.
type Place = (f64, f64);

/// A rectangle in pixels: it has a lower left corner, a direction in which its text runs, a width along this and a height across it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rectangle {
    corner: Place,
    /// Of length 1; y grows downward.
    along: Place,
    width: f64,
    height: f64,
}

impl Rectangle {
    /// One that stands level.
    pub fn level(left: i32, top: i32, width: i32, height: i32) -> Rectangle {
        let (width, height) = (f64::from(width), f64::from(height));
        Rectangle { corner: (f64::from(left), f64::from(top) + height), along: (1.0, 0.0), width, height }
    }

    /// One whose lower edge is so far above (below where `above` is negative) a line, and begins so far along it.
    pub fn beside([from, to]: Segment, along: f64, above: f64, (width, height): (f64, f64)) -> Rectangle {
        let (dx, dy) = (f64::from(to.0 - from.0), f64::from(to.1 - from.1));
        let length = dx.hypot(dy).max(1e-9);
        let (x, y) = (dx / length, dy / length);
        let corner = (f64::from(from.0) + x * along + y * above, f64::from(from.1) + y * along - x * above);
        Rectangle { corner, along: (x, y), width, height }
    }

    /// A place within it: so far along its lower edge, and so far above that.
    pub fn at(&self, along: f64, above: f64) -> Place {
        let (x, y) = self.along;
        (self.corner.0 + x * along + y * above, self.corner.1 + y * along - x * above)
    }

    /// The angle of its text as SVG counts it, clockwise.
    pub fn degrees(&self) -> f64 {
        self.along.1.atan2(self.along.0).to_degrees()
    }

    fn corners(&self) -> [Place; 4] {
        [self.at(0.0, 0.0), self.at(self.width, 0.0), self.at(self.width, self.height), self.at(0.0, self.height)]
    }

    /// Whether all of it is between these edges.
    pub fn is_within(&self, left: i32, top: i32, right: i32, bottom: i32) -> bool {
        let is_inside = |&(x, y): &Place| {
            x > f64::from(left) && x < f64::from(right) && y > f64::from(top) && y < f64::from(bottom)
        };
        self.corners().iter().all(is_inside)
    }

    /// Whether a line touches or crosses it.
    pub fn meets(&self, [from, to]: Segment) -> bool {
        let float = |(x, y): (i32, i32)| (f64::from(x), f64::from(y));
        self.meets_between(float(from), float(to))
    }

    fn meets_between(&self, from: Place, to: Place) -> bool {
        // In the rectangle's own directions it spans 0 to width and 0 to height: what is left of the line within these is not empty.
        let own = |(x, y): Place| {
            let (dx, dy) = (x - self.corner.0, y - self.corner.1);
            (dx * self.along.0 + dy * self.along.1, dx * self.along.1 - dy * self.along.0)
        };
        let (start, end) = (own(from), own(to));
        let (mut first, mut last) = (0.0_f64, 1.0_f64);
        for (start, end, most) in [(start.0, end.0, self.width), (start.1, end.1, self.height)] {
            let way = end - start;
            if way.abs() < 1e-9 {
                if start < 0.0 || start > most {
                    return false;
                }
                continue;
            }
            let (one, other) = ((0.0 - start) / way, (most - start) / way);
            first = first.max(one.min(other));
            last = last.min(one.max(other));
        }
        first <= last
    }

    /// Whether two have a place in common.
    pub fn overlaps(&self, other: &Rectangle) -> bool {
        let crosses = |one: &Rectangle, other: &Rectangle| {
            let corners = one.corners();
            (0..4).any(|at| other.meets_between(corners[at], corners[(at + 1) % 4]))
        };
        crosses(self, other) || crosses(other, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_meet_a_level_rectangle_where_they_cross_it() {
        let it = Rectangle::level(10, 20, 30, 10);
        for (line, meets) in [
            ([(0, 25), (50, 25)], true),
            ([(0, 15), (50, 15)], false),
            ([(15, 22), (20, 28)], true),
            ([(0, 25), (9, 25)], false),
            // It passes the upper left corner at a distance, and then cuts it off.
            ([(0, 28), (18, 10)], false),
            ([(0, 34), (24, 10)], true),
        ] {
            assert_eq!(it.meets(line), meets, "{line:?}");
        }
        assert!(it.is_within(9, 19, 41, 31) && !it.is_within(11, 19, 41, 31));
    }

    #[test]
    fn a_rectangle_beside_a_line_does_not_meet_it() {
        // Up by three pixels for each four across: its direction is (0.8, -0.6), and above it is (-0.6, -0.8).
        let line = [(0, 300), (400, 0)];
        let above = Rectangle::beside(line, 50.0, 10.0, (100.0, 12.0));
        let near = |(x, y): Place, expected: Place| (x - expected.0).abs() < 1e-9 && (y - expected.1).abs() < 1e-9;
        assert!(near(above.at(0.0, 0.0), (40.0 - 6.0, 300.0 - 30.0 - 8.0)), "{above:?}");
        assert!((above.degrees() + 36.87).abs() < 0.01);
        let below = Rectangle::beside(line, 50.0, -22.0, (100.0, 12.0));
        assert!(!above.meets(line) && !below.meets(line) && !above.overlaps(&below));
        assert!(Rectangle::beside(line, 50.0, -6.0, (100.0, 12.0)).meets(line));
        // A small one inside a large one is met, whichever asks.
        let inside = Rectangle::beside(line, 90.0, 14.0, (4.0, 4.0));
        assert!(above.overlaps(&inside) && inside.overlaps(&above));
    }
}
