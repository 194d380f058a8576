//! What the doctor knows and says is what the library reads and docs/doctor.md describes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::*;

fn page() -> String {
    fs::read_to_string(format!("{REPOSITORY}/docs/doctor.md")).expect("the page is there")
}

fn c_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            c_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "c") {
            found.push(path);
        }
    }
}

/// The literals of a source that are whole names of variables, and not of statuses.
fn variables_in(source: &str) -> impl Iterator<Item = &str> {
    source.split('"').filter(|literal| {
        let is_name = literal
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
        let is_status =
            literal.starts_with("RDM_ERROR") || ["RDM_OK", "RDM_NOT_READY"].contains(literal);
        literal.starts_with("RDM_") && is_name && !is_status
    })
}

/// A variable that the library reads, and that the doctor does not know, would be called a mistake.
#[test]
fn every_variable_that_the_library_reads_is_known() {
    let mut files = Vec::new();
    c_files(&Path::new(REPOSITORY).join("csrc"), &mut files);
    let mut read = BTreeSet::new();
    for file in &files {
        let source = fs::read_to_string(file).expect("a text");
        read.extend(variables_in(&source).map(str::to_owned));
    }
    assert!(read.len() > 8, "{read:?}");
    let report = examine(&[("RDM_DRIVER", "sim")]);
    for name in &read {
        report.variable(name);
    }
}

/// The ids in a source of the advice: literals in the form of one, `*_` before those that begin with
/// the driver's name.
fn ids_in(source: &str) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for literal in source.split('"').skip(1).step_by(2) {
        let id = literal.replace("{name}_", "*_").replace("{}_", "*_");
        let in_form = id
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_' || byte == b'*');
        if in_form && id.contains('_') && id != "snake_case" {
            ids.insert(id);
        }
    }
    // Those that are made from a kind alone.
    for call in source.split("id(\"").skip(1) {
        let kind = call.split('"').next().unwrap_or_default();
        ids.remove(kind);
        ids.insert(format!("*_{kind}"));
    }
    ids
}

#[test]
fn every_problem_is_described_in_the_documentation() {
    let folder = format!("{}/src/commands/doctor", env!("CARGO_MANIFEST_DIR"));
    let mut ids = BTreeSet::new();
    for file in [
        "advice.rs",
        "advice/driver.rs",
        "advice/settings.rs",
        "advice/sim.rs",
    ] {
        let source = fs::read_to_string(format!("{folder}/{file}")).expect("the source is there");
        ids.extend(ids_in(&source));
    }
    assert!(ids.len() > 30, "{ids:?}");
    let page = page();
    for id in &ids {
        // One line ends with the id's own suffix in a check, and names no problem.
        let is_suffix = id.starts_with('_');
        assert!(
            is_suffix || page.contains(&format!("| `{id}` |")),
            "docs/doctor.md says nothing of {id}"
        );
    }
    // And nothing is described that is not there.
    for line in page.lines().filter(|line| line.starts_with("| `")) {
        let name = line.split('`').nth(1).unwrap_or_default();
        if name.starts_with("*_") || name.starts_with("sim_") {
            assert!(ids.contains(name), "no problem has the id {name}");
        }
    }
}

#[test]
fn the_json_object_has_its_documented_keys() {
    let page = page();
    let report = examine(&[("RDM_DRIVER", "sim"), ("HIP_VISIBLE_DEVICES", "0,x")]);
    report.expect(&["mask_invalid"], true);
    let mut paths = BTreeSet::new();
    collect_keys("", &report.json, &mut paths);
    for path in paths {
        assert!(
            page.contains(&format!("| `{path}` |")),
            "docs/doctor.md says nothing of {path}"
        );
    }
}

fn collect_keys(prefix: &str, value: &Value, paths: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                let path = match prefix {
                    "" => key.clone(),
                    prefix => format!("{prefix}.{key}"),
                };
                paths.insert(path.clone());
                collect_keys(&path, value, paths);
            }
        }
        Value::Array(items) => {
            for item in items {
                collect_keys(&format!("{prefix}[]"), item, paths);
            }
        }
        _ => {}
    }
}
