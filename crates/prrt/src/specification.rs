//! The examples of `docs/spec/prrt.md`, for the tests that write and read them.

const PAGE: &str = include_str!("../../../docs/spec/prrt.md");

/// The bytes of the example under this heading, each line of its block; a line's bytes end where two spaces are.
pub(crate) fn example_lines(heading: &str) -> Vec<Vec<u8>> {
    let examples = PAGE.split_once("## Examples in bytes\n").unwrap().1;
    let section =
        examples.split("### ").find(|section| section.lines().next() == Some(heading)).expect(heading);
    let block = section.split("```text\n").nth(1).unwrap().split("```").next().unwrap();
    let bytes =
        |line: &str| line.split("  ").next().unwrap_or_default().split_whitespace().map(octet).collect();
    block.lines().map(bytes).collect()
}

/// The bytes of the example under this heading, which is one datagram.
pub(crate) fn example(heading: &str) -> Vec<u8> {
    example_lines(heading).concat()
}

fn octet(text: &str) -> u8 {
    u8::from_str_radix(text, 16).unwrap()
}
