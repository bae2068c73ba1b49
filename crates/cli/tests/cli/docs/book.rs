//! The book as mdBook makes it.
use super::repository;
use mdbook_driver::MDBook;
use mdbook_driver::book::{BookItem, Chapter};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_page_is_made_and_its_links_lead_to_what_was_made() {
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("book");
    let mut book = MDBook::load(repository().join("docs/book")).expect("the book's pages are there");
    book.config.build.build_dir.clone_from(&made);
    book.build().expect("mdBook makes the book");
    let pages: BTreeMap<PathBuf, String> = book.iter().filter_map(chapter).map(|page| read(&made, page)).collect();
    assert!(pages.len() > 30, "{:?}", pages.keys());
    let wrong: Vec<String> = pages.iter().flat_map(|(page, text)| dead_ends(&made, page, text, &pages)).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn chapter(item: &BookItem) -> Option<&Chapter> {
    match item {
        BookItem::Chapter(chapter) => Some(chapter),
        _ => None,
    }
}

/// A page's path below the book's folder, and its text.
fn read(made: &Path, chapter: &Chapter) -> (PathBuf, String) {
    let page = chapter.path.as_ref().expect("no chapter is a draft").with_extension("html");
    let text = fs::read_to_string(made.join(&page)).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    (page, text)
}

/// The links and pictures of a page's own text that lead nowhere.
fn dead_ends(made: &Path, page: &Path, text: &str, pages: &BTreeMap<PathBuf, String>) -> Vec<String> {
    let main = text.split_once("<main>").and_then(|(_, rest)| rest.split_once("</main>")).expect("a page has a text").0;
    let targets = ["href=\"", "src=\""].into_iter().flat_map(|attribute| main.split(attribute).skip(1));
    let targets = targets.filter_map(|rest| rest.split_once('"')).map(|(target, _)| target);
    let inside = targets.filter(|target| !target.contains(':'));
    let dead = inside.filter(|target| {
        let (file, id) = target.split_once('#').map_or((*target, None), |(file, id)| (file, Some(id)));
        let to = if file.is_empty() { page.to_owned() } else { page.parent().unwrap_or(Path::new("")).join(file) };
        match (id, pages.get(&to)) {
            (Some(id), Some(text)) => !text.contains(&format!("id=\"{id}\"")),
            _ => !made.join(&to).is_file(),
        }
    });
    dead.map(|target| format!("{}: {target} leads nowhere", page.display())).collect()
}
