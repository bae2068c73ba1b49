//! Links of README, book and the repository's other pages: each leads to a file that is there, and to a heading that it has.
use super::repository;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The book, which mdBook turns into pages of its own: links from it stay in this folder.
const BOOK: &str = "docs/book/src";

#[test]
fn every_link_leads_somewhere() {
    let pages = pages();
    assert!(pages.len() > 40, "{pages:?}");
    let complaints: Vec<String> = pages.iter().flat_map(|page| wrong(page)).collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn every_page_of_the_book_is_in_its_summary() {
    let summary = read(&Path::new(BOOK).join("SUMMARY.md"));
    let listed: BTreeSet<String> = links(&summary).into_iter().map(|(_, link)| link).collect();
    let is_page = |page: &PathBuf| page.starts_with(BOOK) && !page.ends_with("SUMMARY.md");
    for page in pages().iter().filter(|page| is_page(page)) {
        let name = page.file_name().expect("a page has a name").to_string_lossy();
        assert!(listed.contains(name.as_ref()), "{} is not in SUMMARY.md", page.display());
    }
}

#[test]
fn every_study_is_in_the_list_of_experiments() {
    let list = Path::new("experiments/README.md");
    let listed: BTreeSet<String> = links(&read(list)).into_iter().map(|(_, link)| link).collect();
    let folders = entries("experiments").into_iter().filter(|path| repository().join(path).is_dir());
    let files = folders.flat_map(|folder| entries(&folder));
    let is_study =
        |file: &PathBuf| file.extension().is_some_and(|e| e == "toml") && read(file).starts_with("figure = ");
    for study in files.filter(is_study) {
        let link = study.strip_prefix("experiments").expect("a file of the folder").display().to_string();
        assert!(listed.contains(&link), "{link} is not in {}", list.display());
    }
}

/// All Markdown of the repository that people read, by its path in it.
fn pages() -> Vec<PathBuf> {
    let folders =
        ["", "docs", "docs/decisions", BOOK, "examples", "examples/my-queue", "experiments", "crates/qdisc/c"];
    let all = folders.into_iter().flat_map(entries);
    all.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// What is in a folder of the repository, by its path in it.
fn entries(folder: impl AsRef<Path>) -> Vec<PathBuf> {
    let folder = folder.as_ref();
    let entries = fs::read_dir(repository().join(folder)).expect("a folder of the repository");
    entries.map(|entry| folder.join(entry.expect("an entry").file_name())).collect()
}

fn read(page: &Path) -> String {
    fs::read_to_string(repository().join(page)).expect("a page")
}

/// The links and images of a page, each with its line.
fn links(text: &str) -> Vec<(usize, String)> {
    let line = |at: usize| text[..at].lines().count() + 1;
    let link = |(event, range): (Event<'_>, std::ops::Range<usize>)| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            Some((line(range.start), dest_url.into_string()))
        }
        _ => None,
    };
    Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter().filter_map(link).collect()
}

/// What is wrong with the links of a page.
fn wrong(page: &Path) -> Vec<String> {
    let check = |(line, link): (usize, String)| {
        let told = |what: &str| Some(format!("{}:{line}: {link}: {what}", page.display()));
        if link.starts_with("https://") || link.starts_with("http://") || link.starts_with("mailto:") {
            return None;
        }
        let (file, heading) = link.split_once('#').map_or((link.as_str(), None), |(file, id)| (file, Some(id)));
        let to = if file.is_empty() { page.to_owned() } else { joined(page.parent().unwrap_or(Path::new("")), file) };
        if page.starts_with(BOOK) && !to.starts_with(BOOK) {
            return told("leads out of the book");
        }
        if !repository().join(&to).exists() {
            return told("there is no such file");
        }
        match heading {
            Some(id) if !headings(&read(&to)).contains(id) => told("there is no such heading"),
            _ => None,
        }
    };
    links(&read(page)).into_iter().filter_map(check).collect()
}

/// A path without `..`.
fn joined(folder: &Path, file: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for part in folder.join(file).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path
}

/// The identifiers of a page's headings, as mdBook and repository hosts make them: the text in lower case, letters, digits, `_` and `-`
/// only, blanks as `-`; a number after one that occurs again.
fn headings(text: &str) -> BTreeSet<String> {
    let (mut found, mut heading): (BTreeSet<String>, Option<String>) = (BTreeSet::new(), None);
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match (event, &mut heading) {
            (Event::Start(Tag::Heading { .. }), _) => heading = Some(String::new()),
            (Event::Text(text) | Event::Code(text), Some(heading)) => heading.push_str(&text),
            (Event::End(TagEnd::Heading(_)), Some(text)) => {
                let kept = text.trim().to_lowercase().replace(' ', "-");
                let id: String = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, '_' | '-')).collect();
                let numbered = (1..).map(|n| format!("{id}-{n}"));
                let free = std::iter::once(id.clone()).chain(numbered).find(|id| !found.contains(id));
                found.extend(free);
                heading = None;
            }
            _ => {}
        }
    }
    found
}

#[test]
fn identifiers_of_headings() {
    let ids = headings("# Two `words` (tcp, udp)\n## Same\n## Same\n");
    assert_eq!(ids.into_iter().collect::<Vec<_>>(), ["same", "same-1", "two-words-tcp-udp"]);
}
