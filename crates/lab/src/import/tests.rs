use super::*;
use proptest::prelude::*;

fn vectors(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/pingpong");
    root.join(name)
}

fn import(published: &[u8], received: &[u8]) -> Result<(Run, Vec<CellSamples>), ImportError> {
    let directory = tempfile::tempdir().unwrap();
    let paths = ["pub.csv", "sub.csv"].map(|name| directory.path().join(name));
    std::fs::write(&paths[0], published).unwrap();
    std::fs::write(&paths[1], received).unwrap();
    pingpong(&paths[0], &paths[1])
}

fn assert_refused(published: &str, received: &str, wanted: &str) {
    let error = import(published.as_bytes(), received.as_bytes()).unwrap_err().to_string();
    assert!(error.contains(wanted), "{error:?} lacks {wanted:?}");
    assert!(!error.contains('\n'), "one sentence: {error}");
}

#[test]
fn the_recordings_give_their_golden_figures() {
    let golden = [
        ("m5atom_serial", 12.829694, 14.970970, 10.838289, 0.986918, [12.775, 13.954, 14.019]),
        ("m5atom_udp_wifi", 5.813293, 123.242448, 3.980342, 4.688583, [5.398, 7.309, 9.722]),
    ];
    for (name, mean, max, min, std, percentiles) in golden {
        let (run, samples) =
            pingpong(&vectors(name).join("pub.csv"), &vectors(name).join("sub.csv")).unwrap();
        let cell = &run.cells[0];
        assert_eq!(cell.peer, name);
        assert_eq!((cell.sent, cell.received, cell.lost), (2000, 2000, 0));
        assert_eq!((cell.duplicated, cell.reordered), (0, Some(0)));
        assert_eq!(samples[0].len(), 2000);
        assert_eq!(cell.rate_hz, Some(20.0));
        let summary = cell.latency_ns.unwrap();
        let near = |ns: f64, ms: f64, digit: f64| (ns / 1e6 - ms).abs() <= digit * 0.5 + 1e-9;
        assert!(near(summary.mean, mean, 1e-6), "{}", summary.mean);
        assert!(near(summary.max as f64, max, 1e-6));
        assert!(near(summary.min as f64, min, 1e-6));
        assert!(near(summary.std.unwrap(), std, 1e-6), "{:?}", summary.std);
        let found = [summary.p50, summary.p95, summary.p99];
        for (found, wanted) in found.into_iter().zip(percentiles) {
            assert!(near(found.unwrap() as f64, wanted, 1e-3), "{name} {found:?} {wanted}");
        }
    }
}

#[test]
fn the_table_reads_like_the_published_one() {
    let directory = vectors("m5atom_serial");
    let (run, _) = pingpong(&directory.join("pub.csv"), &directory.join("sub.csv")).unwrap();
    let expected = "\
m5atom_serial: 2000 published, 2000 received, 0 lost, 0 duplicated, 0 reordered, 0 later than one period of 50 ms
round trip [ms]        mean         max         min         std         p50         p95         p99
";
    let text = render(&run);
    assert!(text.starts_with(expected), "{text}");
    assert!(text.contains("12.829694   14.970970   10.838289    0.986918   12.77"), "{text}");
    assert_eq!(run.host.started_at, "2024-01-05T05:00:03Z");
}

#[test]
fn lost_duplicated_reordered_and_late_answers_are_counted() {
    let published = "0,0,10\n1,100,11\n2,200,12\n3,300,13\n";
    let received = "0,120,11\n1,130,10\n2,230,12\n3,240,11\n";
    let (run, samples) = import(published.as_bytes(), received.as_bytes()).unwrap();
    let cell = &run.cells[0];
    assert_eq!((cell.sent, cell.received, cell.lost), (4, 3, 1));
    assert_eq!((cell.duplicated, cell.reordered), (1, Some(1)));
    assert_eq!((cell.deadline_ns, cell.late), (Some(100), 1));
    let latencies: Vec<i64> = samples[0].iter().map(Sample::latency_ns).collect();
    assert_eq!(latencies, [130, 20, 30], "of first arrivals, in order of publishing");
}

#[test]
fn a_byte_order_mark_crlf_and_blank_lines_at_the_end_are_accepted() {
    let plain = import(b"0,1,0\n1,2,1", b"0,5,0\n1,6,1").unwrap().1;
    let windows = import(b"\xef\xbb\xbf0,1,0\r\n1,2,1\r\n\r\n", b"0, 5, 0\r\n1,6,1\r\n").unwrap();
    assert_eq!(windows.1, plain);
}

#[test]
fn what_is_not_the_format_is_refused_with_file_and_line() {
    let good = "0,100,0\n1,200,1\n";
    assert_refused(good, "0,150,0\n1,250\n", "sub.csv line 2: 2 fields instead of 3");
    assert_refused("0,100,0,7\n", good, "pub.csv line 1: 4 fields instead of 3");
    assert_refused("0,100,0\n\n1,200,1\n", good, "pub.csv line 2: 0 fields instead of 3");
    assert_refused("row,ns,index\n0,1,0\n", good, "line 1: the row number \"row\" is not a whole");
    assert_refused("0,abc,0\n", good, "the time \"abc\" is not a whole number");
    assert_refused("0,1.5e9,0\n", good, "the time \"1.5e9\"");
    assert_refused("0,100,-1\n", good, "the index \"-1\"");
    assert_refused("0,9223372036854775808,0\n", good, "does not fit 63 bits");
    assert_refused("0,99999999999999999999999,0\n", good, "below 2^64");
    assert_refused("0,100,0\n\u{0}\u{0}\u{0}", good, "line 2: a NUL byte");
    assert_refused("", good, "pub.csv is empty");
    assert_refused(good, "\n \r\n", "sub.csv is empty");
    assert_refused("0,100,0\n1,99,1\n", good, "pub.csv line 2: the time is 1 ns before");
    assert_refused("0,1,5\n1,2,5\n", good, "line 2: index 5 was already published in line 1");
    assert_refused(good, "0,150,0\n1,250,9\n", "sub.csv line 2: index 9 is not in");
    let latin = import(b"0,100,0\n1,200,\xe9\n", good.as_bytes()).unwrap_err().to_string();
    assert!(latin.contains("line 2: not UTF-8 text"), "{latin}");
}

#[test]
fn a_missing_file_is_named() {
    let missing = Path::new("/nonexistent/pub.csv");
    let error = pingpong(missing, missing).unwrap_err().to_string();
    assert!(error.starts_with("cannot read /nonexistent/pub.csv:"), "{error}");
}

#[test]
fn answers_before_their_question_make_the_run_invalid_instead_of_faster() {
    let (run, _) = import(b"0,100,0\n1,200,1\n", b"0,150,0\n1,199,1\n").unwrap();
    assert!(!run.cells[0].valid);
    assert_eq!(run.cells[0].latency_ns, None);
    assert!(render(&run).contains("FAIL 1 of 2 answers came before their question"));
}

#[test]
fn a_recording_without_any_answer_in_common_is_refused_or_invalid_but_never_empty() {
    let (run, _) = import(b"0,1,0\n", b"0,2,0\n").unwrap();
    assert_eq!(run.cells[0].rate_hz, None, "one message has no rate");
    assert!(run.cells[0].valid);
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(Path::new("x"), &bytes);
    }

    #[test]
    fn rows_of_arbitrary_numbers_never_panic_and_always_add_up(
        sent in proptest::collection::vec((any::<u64>(), 0u64..8), 0..8),
        arrived in proptest::collection::vec((any::<u64>(), 0u64..8), 0..8),
    ) {
        let text = |rows: &[(u64, u64)]| {
            rows.iter().map(|(ns, index)| format!("0,{ns},{index}\n")).collect::<String>()
        };
        if let Ok((run, samples)) = import(text(&sent).as_bytes(), text(&arrived).as_bytes()) {
            let cell = &run.cells[0];
            prop_assert_eq!(cell.sent, cell.received + cell.lost);
            prop_assert_eq!(arrived.len() as u64, cell.received + cell.duplicated);
            prop_assert_eq!(samples[0].len() as u64, cell.received);
            let _ = render(&run);
        }
    }
}
