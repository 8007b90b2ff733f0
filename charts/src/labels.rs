//! Where labels beside marks find room.

use crate::frame::{Frame, RADIUS, SMALL, text_width};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Axis;

    #[test]
    fn labels_of_near_points_do_not_cover_each_other() {
        let frame = Frame {
            left: 0,
            right: 600,
            top: 0,
            bottom: 400,
            x: Axis::logarithmic((1.0, 10.0)),
            y: Axis::logarithmic((1.0, 10.0)),
        };
        let mut taken: Vec<Box4> = Vec::new();
        for at in [(300, 200), (306, 203), (310, 196), (302, 190)] {
            let found = place(at, "program", &frame, &taken);
            assert!(taken.iter().all(|other| !overlaps(found, *other)), "{found:?} of {taken:?}");
            taken.push(found);
        }
    }
}
