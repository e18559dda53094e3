use super::*;

const COLUMNS: [Column; 4] = [
    Column::id("ID"),
    Column::number("TOKENS"),
    Column::words("TYPE").dropped_as(0),
    Column::flexible("WHAT"),
];

fn rows() -> Vec<Vec<Cell>> {
    vec![
        vec![
            Cell::new("a"),
            Cell::new("12.3K"),
            Cell::new("general-purpose"),
            Cell::new("Größe der 漢字漢字漢字 prüfen, und zwar alle"),
        ],
        vec![
            Cell::new("x".repeat(256)),
            Cell::optional(None::<&str>),
            Cell::new("bash".repeat(40)),
            Cell::new("two\nlines"),
        ],
    ]
}

#[test]
fn columns_are_aligned_and_give_way() {
    let shown = [40, 60, 80].map(|width| table(Screen::plain(Some(width)), &COLUMNS, rows()));
    insta::assert_snapshot!(shown.join("\n\n"));
}

#[test]
fn without_a_width_lines_stay_lines() {
    insta::assert_snapshot!(table(Screen::plain(None), &COLUMNS, rows()));
}

#[test]
fn no_line_is_wider_than_the_screen() {
    for width in 8..200 {
        for line in table(Screen::plain(Some(width)), &COLUMNS, rows()).lines() {
            assert!(columns(line) <= usize::from(width), "{width}: {line}");
        }
    }
}

#[test]
fn colours_take_no_room() {
    let coloured = Screen { colours: true, ..Screen::plain(Some(60)) };
    let rows = || vec![vec![Cell::toned("a", Tone::Good), Cell::new("1"), Cell::new("b"), Cell::new("c")]];
    let shown = table(coloured, &COLUMNS, rows());
    let row = shown.lines().last().unwrap();
    assert_eq!(row, "\u{1b}[32ma\u{1b}[39m        1  b     c");
}
