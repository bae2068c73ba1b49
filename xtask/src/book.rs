//! The book as mdBook makes it. Its links are followed in what was made.
use mdbook_driver::MDBook;
use mdbook_driver::book::{BookItem, Chapter};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Makes the book where its settings say; fails with the links that lead nowhere.
pub(crate) fn make() -> Result<String, String> {
    let book = MDBook::load(crate::root().join("docs/book")).map_err(|error| format!("docs/book: {error:#}"))?;
    book.build().map_err(|error| format!("docs/book: {error:#}"))?;
    let made = book.build_dir_for("html");
    let pages: Pages = book.iter().filter_map(chapter).map(|page| read(&made, page)).collect::<Result<_, _>>()?;
    let wrong: Vec<String> = pages.iter().flat_map(|(page, text)| dead_ends(&made, page, text, &pages)).collect();
    let folder = made.canonicalize().unwrap_or(made);
    if wrong.is_empty() { Ok(format!("{} pages in {}", pages.len(), folder.display())) } else { Err(wrong.join("\n")) }
}

fn chapter(item: &BookItem) -> Option<&Chapter> {
    match item {
        BookItem::Chapter(chapter) => Some(chapter),
        _ => None,
    }
}

/// A page's path below the book's folder, and its text.
fn read(made: &Path, chapter: &Chapter) -> Result<(PathBuf, String), String> {
    let page = chapter.path.as_ref().ok_or_else(|| format!("{} is a draft", chapter.name))?.with_extension("html");
    let text = fs::read_to_string(made.join(&page)).map_err(|error| format!("{}: {error}", page.display()))?;
    Ok((page, text))
}

/// The playground, which is beside the book in the site only.
const PLAYGROUND: &str = "play/index.html#";

/// Whether the playground has what this fragment names.
fn is_scene(fragment: &str) -> bool {
    let file = fragment.strip_prefix("scene=").map(|name| format!("crates/playground/scenes/{name}.toml"));
    file.is_some_and(|file| crate::root().join(file).is_file())
}

/// What was made, by its path.
type Pages = BTreeMap<PathBuf, String>;

/// The links and pictures of a page's own text that lead nowhere.
fn dead_ends(made: &Path, page: &Path, text: &str, pages: &Pages) -> Vec<String> {
    let Some((main, _)) = text.split_once("<main>").and_then(|(_, rest)| rest.split_once("</main>")) else {
        return vec![format!("{} has no text", page.display())];
    };
    let targets = ["href=\"", "src=\""].into_iter().flat_map(|attribute| main.split(attribute).skip(1));
    let targets = targets.filter_map(|rest| rest.split_once('"')).map(|(target, _)| target);
    let inside = targets.filter(|target| !target.contains(':'));
    let dead = inside.filter(|target| {
        if let Some(fragment) = target.strip_prefix(PLAYGROUND) {
            return !is_scene(fragment);
        }
        let (file, id) = target.split_once('#').map_or((*target, None), |(file, id)| (file, Some(id)));
        let to = if file.is_empty() { page.to_owned() } else { page.parent().unwrap_or(Path::new("")).join(file) };
        match (id, pages.get(&to)) {
            (Some(id), Some(text)) => !text.contains(&format!("id=\"{id}\"")),
            _ => !made.join(&to).is_file(),
        }
    });
    dead.map(|target| format!("{}: {target} leads nowhere", page.display())).collect()
}
