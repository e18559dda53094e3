use proptest::prelude::*;

use super::*;

const BYTES_MAX: usize = 64;

fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<SseEvent>, Result<(), SseTooLarge>) {
    let mut decoder = SseDecoder::new(BYTES_MAX);
    let mut events = Vec::new();
    for piece in pieces {
        if let Err(fault) = decoder.feed(piece, &mut events) {
            return (events, Err(fault));
        }
    }
    match decoder.finish() {
        Ok(last) => {
            events.extend(last);
            (events, Ok(()))
        }
        Err(fault) => (events, Err(fault)),
    }
}

#[track_caller]
fn check(stream: &str, expected: &[(&str, &str)]) {
    let expected: Vec<SseEvent> = expected
        .iter()
        .map(|&(name, data)| SseEvent { name: name.into(), data: data.as_bytes().to_vec() })
        .collect();
    assert_eq!(decode([stream.as_bytes()]), (expected, Ok(())), "{stream:?}");
}

#[test]
fn every_line_ending_ends_a_line() {
    for ending in ["\n", "\r", "\r\n"] {
        check(&"data: a|data: b||data: c||".replace('|', ending), &[("", "a\nb"), ("", "c")]);
    }
}

#[test]
fn fields_are_read_as_the_format_says() {
    check("data:a\n\n", &[("", "a")]);
    check("data:  a\n\n", &[("", " a")]);
    check("data\n\n", &[("", "")]);
    check("data:\ndata:\n\n", &[("", "\n")]);
    check("event: error\ndata: x\n\ndata: y\n\n", &[("error", "x"), ("", "y")]);
    check("id: 7\nretry: 10\nunknown: z\ndata: a:b\n\n", &[("", "a:b")]);
    check("datax: a\n\n", &[]);
}

#[test]
fn comments_and_events_without_data_are_nothing() {
    check(": ping\n\n:\n\nevent: only-a-name\n\ndata: a\n: ping\n\n", &[("", "a")]);
}

#[test]
fn a_byte_order_mark_counts_only_at_the_beginning() {
    check("\u{FEFF}data: a\n\n", &[("", "a")]);
    check("\u{FEFF}\ndata: a\n\n", &[("", "a")]);
    check("data: a\n\n\u{FEFF}data: b\n\n", &[("", "a")]);
}

#[test]
fn the_end_of_the_stream_ends_the_last_event() {
    check("data: [DONE]", &[("", "[DONE]")]);
    check("data: a\n", &[("", "a")]);
    check("", &[]);
}

#[test]
fn bytes_that_are_not_utf8_are_passed_on() {
    let (events, _) = decode([b"data: \xF0\x9F\n\n".as_slice()]);
    assert_eq!(events, [SseEvent { name: String::new(), data: b"\xF0\x9F".to_vec() }]);
}

#[test]
fn lines_and_events_are_bounded() {
    let fault = Err(SseTooLarge { bytes_max: BYTES_MAX });
    let long_line = format!("data: ok\n\n{}", "x".repeat(BYTES_MAX + 1));
    assert_eq!(decode([long_line.as_bytes()]).1, fault);
    assert_eq!(decode([long_line.as_bytes()]).0.len(), 1);
    assert_eq!(decode(["data: 1234567890123456\n".repeat(5).as_bytes()]).1, fault);
    check(&format!("data:{}\n\n", "x".repeat(BYTES_MAX - 5)), &[("", &"x".repeat(BYTES_MAX - 5))]);
}

proptest! {
    #[test]
    fn however_the_bytes_are_cut_the_events_are_the_same(
        lines in prop::collection::vec("(data|event|id)?:? ?[a-zé漢\u{1F600}\u{FEFF}]{0,6}|", 0..12),
        endings in prop::collection::vec(prop::sample::select(vec!["\n", "\r", "\r\n"]), 12),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let text: String = lines.iter().zip(&endings).flat_map(|(line, ending)| [line.as_str(), ending]).collect();
        let bytes = text.as_bytes();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        prop_assert_eq!(decode(pieces), decode([bytes]));
        prop_assert_eq!(decode(bytes.chunks(1)), decode([bytes]));
    }

    // What a fuzzer would do: any bytes at all, cut anywhere, among them those that mean something.
    #[test]
    fn any_bytes_cut_anywhere_are_the_same_events(
        bytes in prop::collection::vec(
            prop_oneof![any::<u8>(), prop::sample::select(b"\r\n\n: dataevent\xEF\xBB\xBF{}".to_vec())], 0..300,
        ),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        let whole = decode([bytes.as_slice()]);
        prop_assert_eq!(decode(pieces), whole.clone());
        prop_assert_eq!(decode(bytes.chunks(1)), whole);
    }

    #[test]
    fn any_bytes_at_all_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let (events, _) = decode([bytes.as_slice()]);
        prop_assert!(events.iter().all(|event| event.data.len() <= BYTES_MAX));
    }
}
