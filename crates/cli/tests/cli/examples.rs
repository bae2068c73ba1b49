//! The scenarios in `examples/`: each shows what its comment and the book say of it, as its own expectations put it.
use crate::support::{Place, json, text};
use std::fs;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// The scenarios, by name.
fn examples() -> Vec<String> {
    let entries = fs::read_dir(folder()).expect("the examples");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"));
    let mut names: Vec<String> = names.filter_map(|name| Some(name.strip_suffix(".toml")?.to_owned())).collect();
    names.sort();
    names
}

#[test]
fn each_example_shows_what_it_promises() {
    let place = Place::new("examples");
    let names = examples();
    assert_eq!(names, ["cellular", "dsl-household", "incast", "lossy-uplink", "satellite", "wifi-last-hop"]);
    for name in names {
        let file = folder().join(format!("{name}.toml"));
        let output = place.run(&["check", &file.to_string_lossy(), "--json"]);
        assert!(output.status.success(), "{name}: {}\n{}", text(&output.stdout), text(&output.stderr));
        let judgements = json(&text(&output.stdout));
        let count = judgements.as_array().map_or(0, Vec::len);
        assert!(count >= 2, "{name} expects {count} things");
    }
}

#[test]
fn each_example_is_in_the_book_with_its_picture() {
    let book = folder().join("../docs/book/src");
    let page = fs::read_to_string(book.join("examples.md")).expect("the page");
    for name in examples() {
        assert!(page.contains(&format!("examples/{name}.toml")), "{name} is not on the page");
        let picture = format!("images/example-{name}.svg");
        assert!(page.contains(&format!("({picture})")), "{picture} is not on the page");
        let svg = fs::read_to_string(book.join(&picture)).expect("the picture");
        assert!(svg.starts_with("<svg"), "{picture} is no SVG");
    }
}
