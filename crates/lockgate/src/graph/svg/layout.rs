//! The layout of boxes and lines.

use super::{BOX, ROW};

/// The gaps between boxes in a row, between boxes in a column, and between columns.
const IN_ROW: f64 = 14.0;
const BELOW: f64 = 12.0;
const BETWEEN: f64 = 52.0;
/// Above this number of intermediate points, lines are drawn straight.
const MOST_PASSES: usize = 5000;
/// How many times the columns are reordered.
const SWEEPS: usize = 6;

/// A box with a text.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// The text in the box.
    pub(super) label: String,
    /// The tooltip.
    pub(super) tooltip: String,
    /// Its CSS classes.
    pub(super) class: String,
    pub(super) width: f64,
}

/// A positioned box.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) item: Item,
    pub(super) x: f64,
    pub(super) y: f64,
}

/// Positioned boxes and lines.
#[derive(Clone, Debug, Default)]
pub(super) struct Picture {
    pub(super) boxes: Vec<Placed>,
    pub(super) lines: Vec<Vec<(f64, f64)>>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// Lays out boxes side by side, wrapping into rows. With `follow`, connects them with arrows.
pub(super) fn row(items: Vec<Item>, follow: bool) -> Picture {
    let gap = if follow { 2.0 * IN_ROW } else { IN_ROW };
    let mut picture = Picture { height: BOX, ..Picture::default() };
    let (mut x, mut y) = (0.0, 0.0);
    for item in items {
        let wraps = x > 0.0 && x + item.width > ROW;
        if wraps {
            (x, y) = (if follow { 2.0 * IN_ROW } else { 0.0 }, y + BOX + BELOW);
        }
        if follow && let Some(last) = picture.boxes.last() {
            // In a new row, the arrow enters from the left edge.
            let from = if wraps { (0.0, y + BOX / 2.0) } else { (last.x + last.item.width, y + BOX / 2.0) };
            picture.lines.push(vec![from, (x, y + BOX / 2.0)]);
        }
        let width = item.width;
        picture.boxes.push(Placed { item, x, y });
        picture.width = picture.width.max(x + width);
        picture.height = y + BOX;
        x += width + gap;
    }
    picture
}

/// A slot in a column, which contains a box or a line that passes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    /// The task, if the slot contains a box.
    task: Option<usize>,
    /// The position within the column.
    order: usize,
}

/// Lays out boxes in columns by their layers, with lines to their dependents.
pub(super) fn layered(items: Vec<Item>, needs: &[Vec<usize>], layers: &[usize]) -> Picture {
    let columns = layers.iter().max().map_or(0, |most| most + 1);
    let mut slots: Vec<Slot> = (0..items.len()).map(|task| Slot { task: Some(task), order: 0 }).collect();
    let mut column: Vec<Vec<usize>> = vec![Vec::new(); columns];
    (0..items.len()).for_each(|task| column[layers[task]].push(task));
    let passes: usize =
        needs.iter().enumerate().flat_map(|(at, needs)| needs.iter().map(move |need| layers[at] - layers[*need] - 1)).sum();
    // Each line, as the slots that it passes through.
    let mut routes: Vec<Vec<usize>> = Vec::new();
    for (at, needed) in needs.iter().enumerate() {
        for need in needed {
            let mut route = vec![*need];
            if passes <= MOST_PASSES {
                for passed in &mut column[layers[*need] + 1..layers[at]] {
                    route.push(slots.len());
                    passed.push(slots.len());
                    slots.push(Slot { task: None, order: 0 });
                }
            }
            route.push(at);
            routes.push(route);
        }
    }
    order_layers(&mut column, &mut slots, &routes);
    place(items, &column, &slots, &routes)
}

/// Reorders the slots of each column by their neighbors, left to right and back, to reduce crossings.
fn order_layers(column: &mut [Vec<usize>], slots: &mut [Slot], routes: &[Vec<usize>]) {
    let mut left: Vec<Vec<usize>> = vec![Vec::new(); slots.len()];
    let mut right: Vec<Vec<usize>> = vec![Vec::new(); slots.len()];
    for pair in routes.iter().flat_map(|route| route.windows(2)) {
        right[pair[0]].push(pair[1]);
        left[pair[1]].push(pair[0]);
    }
    let number =
        |members: &[usize], slots: &mut [Slot]| members.iter().enumerate().for_each(|(order, slot)| slots[*slot].order = order);
    column.iter().for_each(|members| number(members, slots));
    for sweep in 0..SWEEPS {
        let neighbours = if sweep % 2 == 0 { &left } else { &right };
        let count = column.len();
        for step in 0..count {
            let members = &mut column[if sweep % 2 == 0 { step } else { count - 1 - step }];
            let mut keyed: Vec<(f64, usize)> = members
                .iter()
                .map(|slot| {
                    let near = &neighbours[*slot];
                    let sum: usize = near.iter().map(|other| slots[*other].order).sum();
                    // A slot without neighbors keeps its position.
                    let key = if near.is_empty() { slots[*slot].order as f64 } else { sum as f64 / near.len() as f64 };
                    (key, *slot)
                })
                .collect();
            keyed.sort_by(|one, two| one.0.total_cmp(&two.0));
            *members = keyed.into_iter().map(|(_, slot)| slot).collect();
            number(members, slots);
        }
    }
}

fn place(items: Vec<Item>, column: &[Vec<usize>], slots: &[Slot], routes: &[Vec<usize>]) -> Picture {
    let tall = |members: &[usize]| members.iter().map(|slot| height(&slots[*slot])).sum::<f64>() - BELOW;
    let height_of_all = column.iter().map(|members| tall(members)).fold(BOX, f64::max);
    let mut left = vec![0.0; slots.len()];
    let mut right = vec![0.0; slots.len()];
    let mut middle = vec![0.0; slots.len()];
    let mut x = 0.0;
    for members in column {
        let widest = members.iter().filter_map(|slot| slots[*slot].task).map(|task| items[task].width).fold(0.0, f64::max);
        let mut y = (height_of_all - tall(members)) / 2.0;
        for slot in members {
            let height = height(&slots[*slot]);
            let width = slots[*slot].task.map_or(widest, |task| items[task].width);
            (left[*slot], right[*slot], middle[*slot]) = (x, x + width, y + (height - BELOW) / 2.0);
            y += height;
        }
        x += widest + BETWEEN;
    }
    let lines = routes.iter().map(|route| {
        let mut points = Vec::with_capacity(route.len() * 2);
        for (at, slot) in route.iter().enumerate() {
            if at > 0 {
                points.push((left[*slot], middle[*slot]));
            }
            if at + 1 < route.len() {
                points.push((right[*slot], middle[*slot]));
            }
        }
        points
    });
    let lines = lines.collect();
    let boxes = items.into_iter().enumerate().map(|(task, item)| Placed { x: left[task], y: middle[task] - BOX / 2.0, item });
    Picture { boxes: boxes.collect(), lines, width: (x - BETWEEN).max(0.0), height: height_of_all }
}

fn height(slot: &Slot) -> f64 {
    if slot.task.is_some() { BOX + BELOW } else { BELOW + 6.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(count: usize) -> Vec<Item> {
        (0..count).map(|at| Item { label: at.to_string(), tooltip: String::new(), class: String::new(), width: 100.0 }).collect()
    }

    fn overlap(one: &Placed, two: &Placed) -> bool {
        one.x < two.x + two.item.width && two.x < one.x + one.item.width && one.y < two.y + BOX && two.y < one.y + BOX
    }

    #[test]
    fn boxes_do_not_overlap_and_stay_inside_the_picture() {
        let needs: Vec<Vec<usize>> =
            (0..60_usize).map(|at| (0..at).filter(|need| (at * 7 + need * 3) % 11 == 0).collect()).collect();
        let layers = super::super::layers::layers(&needs);
        for picture in [layered(items(60), &needs, &layers), row(items(60), true), row(items(60), false)] {
            for (at, one) in picture.boxes.iter().enumerate() {
                assert!(picture.boxes[at + 1..].iter().all(|two| !overlap(one, two)), "{one:?}");
                assert!(one.x >= 0.0 && one.x + one.item.width <= picture.width + 0.01, "{one:?}");
                assert!(one.y >= -0.01 && one.y + BOX <= picture.height + 0.01, "{one:?}");
            }
        }
    }

    #[test]
    fn edge_crossings_are_removed() {
        // The lines would cross without reordering.
        let needs = [vec![], vec![], vec![1], vec![0]];
        let picture = layered(items(4), &needs, &[0, 0, 1, 1]);
        assert!((picture.boxes[2].y - picture.boxes[1].y).abs() < 0.01 && (picture.boxes[3].y - picture.boxes[0].y).abs() < 0.01);
    }
}
