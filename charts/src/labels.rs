//! Where labels beside marks find room.

use crate::frame::{Frame, RADIUS, SMALL, text_width};
use crate::rectangle::{Rectangle, Segment};

/// A rectangle in pixels: left, top, right, bottom.
pub(crate) type Box4 = (i32, i32, i32, i32);

pub(crate) fn overlaps(one: Box4, other: Box4) -> bool {
    one.0 < other.2 && other.0 < one.2 && one.1 < other.3 && other.1 < one.3
}

/// The place within the frame where a label beside a mark covers the least of the area that is `taken` already.
pub(crate) fn place(at: (i32, i32), text: &str, frame: &Frame, taken: &[Box4]) -> Box4 {
    let (width, height) = (text_width(text, SMALL), SMALL + 2);
    let (x, y) = at;
    let gap = RADIUS + 4;
    let (middle_x, middle_y) = (x - width / 2, y - height / 2);
    let corners = [
        (x + gap, middle_y),
        (x - gap - width, middle_y),
        (middle_x, y - gap - height),
        (middle_x, y + gap),
        (x + gap, y - gap - height / 2),
        (x + gap, y + gap / 2),
        (x - gap - width, y - gap - height / 2),
        (x - gap - width, y + gap / 2),
        (x + 2 * gap, y + 2 * gap),
        (x - 2 * gap - width, y - 2 * gap - height / 2),
        (middle_x, y - 2 * gap - height),
        (middle_x, y + 2 * gap),
    ];
    let boxes = corners.map(|(left, top)| (left, top, left + width, top + height));
    let inside = |b: &Box4| b.0 > frame.left && b.2 < frame.right && b.1 > frame.top && b.3 < frame.bottom;
    let covered = |b: &Box4| taken.iter().filter(|other| overlaps(*b, **other)).count() + 3 * usize::from(!inside(b));
    boxes.into_iter().min_by_key(covered).unwrap_or(boxes[0])
}

/// What is drawn already, and should stay readable.
#[derive(Debug, Default)]
pub(crate) struct Drawing {
    /// Texts and marks.
    pub taken: Vec<Rectangle>,
    /// Lines that no text should cross.
    pub lines: Vec<Segment>,
}

/// What a text takes across its direction, pixels, and how far its letters stand above the lower edge of that.
pub(crate) const TEXT_HEIGHT: i32 = 13;
pub(crate) const DESCENT: i32 = 3;

/// How far texts stand from what they name, pixels: the nearest free place is taken.
const DISTANCES: [i32; 9] = [3, 8, 13, 18, 24, 30, 38, 48, 60];
/// From so far on, a thin line leads from a text to what it names.
pub(crate) const LEADER: i32 = 18;

impl Drawing {
    fn is_free(&self, it: &Rectangle, frame: &Frame) -> bool {
        it.is_within(frame.left, frame.top, frame.right, frame.bottom)
            && !self.taken.iter().any(|other| it.overlaps(other))
            && !self.lines.iter().any(|line| it.meets(*line))
    }

    /// Where a text along a line has room: near the line, above it or below, as near to the line's beginning as there is room. Gives its
    /// place and its distance from the line; `None` where there is no room within 60 pixels.
    pub fn along(&self, line: Segment, text: &str, frame: &Frame) -> Option<(Rectangle, i32)> {
        const STEP: usize = 8;
        // Above the first pixels is the frame's edge.
        const FIRST: usize = 12;
        let size = (f64::from(text_width(text, SMALL)), f64::from(TEXT_HEIGHT));
        let (dx, dy) = (f64::from(line[1].0 - line[0].0), f64::from(line[1].1 - line[0].1));
        let room = ((dx.hypot(dy) - size.0).max(0.0) as usize).max(FIRST);
        let candidates = DISTANCES.into_iter().flat_map(|distance| {
            (FIRST..=room).step_by(STEP).flat_map(move |along| {
                let above = f64::from(distance);
                let sides = [above, -above - size.1];
                sides.map(|side| (Rectangle::beside(line, along as f64, side, size), distance))
            })
        });
        candidates.into_iter().find(|(it, _)| self.is_free(it, frame))
    }

    /// Where a level text beside a mark covers the least: a text or a mark counts more than a line. Gives its left and its top, and its
    /// distance from the mark.
    pub fn beside(&self, (x, y): (i32, i32), text: &str, frame: &Frame) -> (i32, i32, i32) {
        let (width, height) = (text_width(text, SMALL), TEXT_HEIGHT);
        let candidates = DISTANCES.into_iter().flat_map(|distance| {
            let gap = RADIUS + distance;
            let (right, left, middle) = (x + gap, x - gap - width, x - width / 2);
            let (above, below, level) = (y - gap - height, y + gap, y - height / 2);
            let places = [
                (right, level),
                (left, level),
                (middle, above),
                (middle, below),
                (right, above),
                (right, below),
                (left, above),
                (left, below),
            ];
            places.map(|(left, top)| (left, top, distance))
        });
        let covered = |&(left, top, _): &(i32, i32, i32)| {
            let it = Rectangle::level(left, top, width, height);
            let texts = self.taken.iter().filter(|other| it.overlaps(other)).count();
            let lines = self.lines.iter().filter(|line| it.meets(**line)).count();
            let is_outside = !it.is_within(frame.left, frame.top, frame.right, frame.bottom);
            100 * usize::from(is_outside) + 10 * texts + lines
        };
        // The first of those that cover as little.
        candidates.into_iter().min_by_key(covered).expect("there are candidates")
    }
}

/// Where level texts stand that are wanted at these heights: none nearer to another one than `gap`, and all between `top` and `bottom` if
/// there is room. In the order of `wanted`.
pub(crate) fn spread(wanted: &[i32], gap: i32, top: i32, bottom: i32) -> Vec<i32> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|at| wanted[*at]);
    let mut found = wanted.to_vec();
    let mut least = top;
    for at in &order {
        found[*at] = found[*at].max(least);
        least = found[*at] + gap;
    }
    let mut most = bottom;
    for at in order.iter().rev() {
        found[*at] = found[*at].min(most);
        most = found[*at] - gap;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Axis;

    #[test]
    fn texts_at_one_height_are_spread() {
        assert_eq!(spread(&[100, 50, 104], 14, 0, 400), [100, 50, 114]);
        // At the lower edge they go up instead.
        assert_eq!(spread(&[395, 398], 14, 0, 400), [386, 400]);
        assert_eq!(spread(&[], 14, 0, 400), Vec::<i32>::new());
    }

    #[test]
    fn a_text_stands_on_the_free_side_of_its_line() {
        let frame = frame();
        let (own, near) = ([(0, 400), (600, 100)], [(0, 390), (600, 90)]);
        let free = Drawing::default();
        let (above, distance) = free.along(own, "L2 100 GB/s", &frame).expect("it has room");
        assert!(above.at(0.0, 0.0).1 < 400.0 && distance == 3, "{above:?}");
        // Nine pixels above it (10 * cos 27 degrees) is another line: 13 pixels of text have room below alone.
        let crowded = Drawing { taken: Vec::new(), lines: vec![own, near] };
        let (below, distance) = crowded.along(own, "L2 100 GB/s", &frame).expect("it has room");
        let (x, y) = below.at(0.0, f64::from(TEXT_HEIGHT));
        assert!(y > 400.0 - x / 2.0 && distance == 3, "{below:?}");
    }

    fn frame() -> Frame {
        let axis = || Axis::logarithmic((1.0, 10.0));
        Frame { left: 0, right: 600, top: 0, bottom: 400, x: axis(), y: axis() }
    }

    #[test]
    fn labels_of_near_points_do_not_cover_each_other() {
        let frame = frame();
        let mut taken: Vec<Box4> = Vec::new();
        for at in [(300, 200), (306, 203), (310, 196), (302, 190)] {
            let found = place(at, "program", &frame, &taken);
            assert!(taken.iter().all(|other| !overlaps(found, *other)), "{found:?} of {taken:?}");
            taken.push(found);
        }
    }
}
