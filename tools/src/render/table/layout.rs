//! How wide each column becomes.

/// One column that wants a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// What its cells would fill.
    pub(super) wanted: usize,
    /// Below this it is of no use; at most what is wanted.
    pub(super) needed: usize,
    /// Whether it shares with its like what all others leave.
    pub(super) is_flexible: bool,
    /// Its turn in being left out, the lowest first; none for what is always there.
    pub(super) dropped_as: Option<u8>,
}

/// The width of each column, none for those that are left out. Together with the gaps they are
/// never wider than `total`, as far as one character for each column fits into it.
pub(super) fn widths(places: Vec<Place>, total: usize, gap: usize) -> Vec<Option<usize>> {
    let mut kept: Vec<Option<Place>> = places.into_iter().map(Some).collect();
    while room(&kept, total, gap).is_none() && drop_one(&mut kept) {}
    let mut widths: Vec<usize> = kept.iter().map(|place| place.map_or(0, |place| place.needed)).collect();
    match room(&kept, total, gap) {
        Some(mut room) => {
            grow(&kept, &mut widths, &mut room, false);
            grow(&kept, &mut widths, &mut room, true);
        }
        None => {
            let gaps = gaps(&kept, gap);
            while widths.iter().sum::<usize>() + gaps > total && shrink_widest(&mut widths) {}
        }
    }
    kept.iter().zip(widths).map(|(place, width)| place.map(|_| width)).collect()
}

fn gaps(kept: &[Option<Place>], gap: usize) -> usize {
    kept.iter().flatten().count().saturating_sub(1) * gap
}

/// What is left when every column has what it needs.
fn room(kept: &[Option<Place>], total: usize, gap: usize) -> Option<usize> {
    let needed: usize = kept.iter().flatten().map(|place| place.needed).sum();
    total.checked_sub(needed + gaps(kept, gap))
}

fn drop_one(kept: &mut [Option<Place>]) -> bool {
    let droppable = kept.iter_mut().filter(|place| place.is_some_and(|place| place.dropped_as.is_some()));
    let next = droppable.min_by_key(|place| place.and_then(|place| place.dropped_as));
    next.is_some_and(|place| place.take().is_some())
}

/// Gives what is left, one character each in turn, so that those of a kind gain the same.
fn grow(kept: &[Option<Place>], widths: &mut [usize], room: &mut usize, is_flexible: bool) {
    loop {
        let before = *room;
        for (place, width) in kept.iter().zip(widths.iter_mut()) {
            let Some(place) = place.filter(|place| place.is_flexible == is_flexible) else { continue };
            if *room > 0 && *width < place.wanted {
                *width += 1;
                *room -= 1;
            }
        }
        if *room == before {
            return;
        }
    }
}

/// Nothing was left to leave out: the widest gives way.
fn shrink_widest(widths: &mut [usize]) -> bool {
    match widths.iter_mut().max() {
        Some(widest) if *widest > 1 => {
            *widest -= 1;
            true
        }
        Some(_) | None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(wanted: usize, needed: usize, is_flexible: bool, dropped_as: Option<u8>) -> Place {
        Place { wanted, needed, is_flexible, dropped_as }
    }

    fn places() -> Vec<Place> {
        vec![
            place(10, 10, false, None),
            place(20, 8, false, Some(2)),
            place(6, 6, false, Some(1)),
            place(50, 11, true, None),
            place(70, 20, true, Some(0)),
        ]
    }

    #[track_caller]
    fn check(total: usize, expected: [usize; 5]) {
        let expected: Vec<_> = expected.into_iter().map(|width| (width > 0).then_some(width)).collect();
        assert_eq!(widths(places(), total, 2), expected, "{total}");
    }

    #[test]
    fn what_fits_is_whole() {
        check(1000, [10, 20, 6, 50, 70]);
        check(164, [10, 20, 6, 50, 70]);
        check(163, [10, 20, 6, 50, 69]);
    }

    #[test]
    fn columns_give_way_in_their_order() {
        check(90, [10, 20, 6, 19, 27]);
        check(63, [10, 8, 6, 11, 20]);
        check(62, [10, 20, 6, 20, 0]);
        check(40, [10, 15, 0, 11, 0]);
        check(33, [10, 8, 0, 11, 0]);
        check(32, [10, 0, 0, 20, 0]);
    }

    #[test]
    fn when_nothing_can_be_left_out_the_widest_is_cut() {
        check(20, [9, 0, 0, 9, 0]);
        check(4, [1, 0, 0, 1, 0]);
        check(0, [1, 0, 0, 1, 0]);
    }
}
