//! The committed bindings are what bindgen makes of the header now.
//!
//! Needs libclang, so it is built with the feature `bindgen` only. With `RDM_UPDATE_BINDINGS=1` it
//! writes the committed file instead of comparing.

#![cfg(feature = "bindgen")]

const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/crate/sys/bindings.rs");
const MADE_NOW: &str = include_str!(concat!(env!("OUT_DIR"), "/bindings.rs"));

#[test]
fn committed_bindings_are_up_to_date() {
    if std::env::var_os("RDM_UPDATE_BINDINGS").is_some() {
        std::fs::write(COMMITTED, MADE_NOW).expect("the bindings can be written");
        return;
    }
    let committed = std::fs::read_to_string(COMMITTED).expect("the bindings are there");
    let mut lines = committed.lines().zip(MADE_NOW.lines()).enumerate();
    if let Some((number, (old, new))) = lines.find(|(_, (old, new))| old != new) {
        panic!(
            "crate/sys/bindings.rs is not what bindgen makes of the header; `make bindings` makes it \
             anew. Line {} is\n  {old}\nand would be\n  {new}",
            number + 1
        );
    }
    assert_eq!(
        committed.len(),
        MADE_NOW.len(),
        "crate/sys/bindings.rs is cut short or has more than bindgen makes; `make bindings`"
    );
}
