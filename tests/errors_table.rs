//! docs/errors.md has each status of the header once, in its order, with a test that produces it.

use std::path::Path;

use rocm_device_map::Status;

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The constants of the header's status enum, in its order.
fn header_statuses() -> Vec<(String, i32)> {
    let header = read("csrc/include/rocm_device_map.h");
    let (_, rest) = header
        .split_once("typedef int32_t rdm_status;")
        .expect("the header has the enum");
    let (body, _) = rest.split_once("};").expect("the enum ends");
    body.lines()
        .filter_map(|line| line.trim().strip_suffix(',').or(Some(line.trim())))
        .filter_map(|line| line.split_once(" = "))
        .filter(|(name, _)| name.starts_with("RDM_"))
        .map(|(name, value)| (name.to_owned(), value.parse().expect("a value is a number")))
        .collect()
}

struct Row {
    status: String,
    cells: Vec<String>,
}

fn table() -> Vec<Row> {
    read("docs/errors.md")
        .lines()
        .filter(|line| line.starts_with("| `RDM_"))
        .map(|line| {
            let cells: Vec<String> = line
                .trim_matches('|')
                .split(" | ")
                .map(|cell| cell.trim().trim_matches('`').to_owned())
                .collect();
            Row {
                status: cells[0].clone(),
                cells,
            }
        })
        .collect()
}

#[test]
fn the_table_has_every_status_of_the_header_once() {
    let header: Vec<String> = header_statuses()
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert!(header.len() >= 28, "{header:?}");
    let documented: Vec<String> = table().into_iter().map(|row| row.status).collect();
    assert_eq!(documented, header);
}

#[test]
fn every_status_says_when_and_what_to_do() {
    for row in table() {
        assert_eq!(row.cells.len(), 4, "{}: {:?}", row.status, row.cells);
        assert!(!row.cells[1].is_empty(), "{}", row.status);
        assert!(
            row.status == "RDM_OK" || !row.cells[2].is_empty(),
            "{}",
            row.status
        );
    }
}

#[test]
fn the_library_and_the_crate_know_every_status() {
    for (name, value) in header_statuses() {
        let status = Status::from(value);
        assert_eq!(status.name(), name);
        assert_eq!(status.code(), value);
        assert!(
            !matches!(status, Status::Other(_)),
            "{name} is not in the crate"
        );
        assert!(!status.description().is_empty());
    }
    assert_eq!(Status::from(9999).name(), "RDM_ERROR_UNKNOWN");
}

/// The text of a function from its name in a definition to its end.
fn body<'a>(text: &'a str, function: &str) -> Option<&'a str> {
    text.match_indices(function)
        .map(|(start, _)| &text[start..])
        .filter(|rest| rest[function.len()..].starts_with('('))
        .find_map(|rest| {
            let end = rest.find("\n}")?;
            let semicolon = rest.find(';').unwrap_or(end);
            // A definition's brace comes before its first semicolon.
            rest[..semicolon].contains('{').then(|| &rest[..end])
        })
}

#[test]
fn every_status_is_produced_by_the_test_that_is_named() {
    for row in table() {
        let (file, function) = row.cells[3]
            .split_once("::")
            .unwrap_or_else(|| panic!("{}: \"{}\" names no test", row.status, row.cells[3]));
        let text = read(file);
        let body = body(&text, function)
            .unwrap_or_else(|| panic!("{}: {file} has no function {function}", row.status));
        let variant = format!("Status::{:?}", status_of(&row.status));
        assert!(
            body.contains(&row.status) || body.contains(&variant),
            "{}: {function} of {file} does not expect it",
            row.status
        );
    }
}

fn status_of(name: &str) -> Status {
    let (_, value) = header_statuses()
        .into_iter()
        .find(|(constant, _)| constant == name)
        .expect("the table was compared with the header");
    Status::from(value)
}
